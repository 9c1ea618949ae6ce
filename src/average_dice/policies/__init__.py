"""Policies: what they must be able to do, the kinds we bring, their files, and behaviour policies made from them."""

from .base import Policy, mean_over_actions
from .behaviour import mixed_with_uniform, with_scaled_variance
from .categorical import CategoricalPolicy
from .files import load_policy, save_policy
from .gaussian import GaussianPolicy
from .network import Network

__all__ = [
    "CategoricalPolicy",
    "GaussianPolicy",
    "Network",
    "Policy",
    "load_policy",
    "mean_over_actions",
    "mixed_with_uniform",
    "save_policy",
    "with_scaled_variance",
]
