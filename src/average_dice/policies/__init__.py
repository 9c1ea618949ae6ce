"""Policies: the protocol, kinds of policies, their files, adapters of other libraries, and ready-made ones."""

from average_dice.policies.adapters.registry import as_policy
from average_dice.policies.base import Policy, mean_over_actions
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.conditional_gaussian import ConditionalGaussianPolicy
from average_dice.policies.density import DensityPolicy
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.files import load_policy, save_policy
from average_dice.policies.gaussian import GaussianPolicy
from average_dice.policies.network import Network
from average_dice.policies.perturbed import mixed_with_uniform, with_scaled_variance
from average_dice.policies.ready_made import constant, epsilon_greedy, logged_behaviour, mixture, uniform
from average_dice.policies.smoothed import SmoothedPolicy, smoothed
from average_dice.policies.unbound import UnboundPolicy

__all__ = [
    "CategoricalPolicy",
    "ConditionalGaussianPolicy",
    "DensityPolicy",
    "DeterministicPolicy",
    "GaussianPolicy",
    "Network",
    "Policy",
    "SmoothedPolicy",
    "UnboundPolicy",
    "as_policy",
    "constant",
    "epsilon_greedy",
    "load_policy",
    "logged_behaviour",
    "mean_over_actions",
    "mixed_with_uniform",
    "mixture",
    "save_policy",
    "smoothed",
    "uniform",
    "with_scaled_variance",
]
