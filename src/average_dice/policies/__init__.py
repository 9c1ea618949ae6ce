"""Policies: the protocol, three kinds of policies, their files, and policies made from others."""

from average_dice.policies.base import Policy, mean_over_actions
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.files import load_policy, save_policy
from average_dice.policies.gaussian import GaussianPolicy
from average_dice.policies.network import Network
from average_dice.policies.perturbed import mixed_with_uniform, with_scaled_variance
from average_dice.policies.smoothed import SmoothedPolicy, smoothed

__all__ = [
    "CategoricalPolicy",
    "DeterministicPolicy",
    "GaussianPolicy",
    "Network",
    "Policy",
    "SmoothedPolicy",
    "load_policy",
    "mean_over_actions",
    "mixed_with_uniform",
    "save_policy",
    "smoothed",
    "with_scaled_variance",
]
