"""The methods, one a file, and the registry that gives them their names."""

from .average_dice import AverageDICE, label_on_state, product_on_state_and_step, ratio_on_state
from .average_reward import AverageReward
from .base import Estimate, Estimator, Fit
from .behaviour_return import BehaviourReturn
from .registry import BASELINES, RECOMMENDED, REGISTRY, Entry, find
from .weighting import (
    ValueRule,
    as_printed,
    flow_mass,
    flow_normalised,
    normalised_to_one,
    plain_value,
    unit_mass,
)

__all__ = [
    "BASELINES",
    "RECOMMENDED",
    "REGISTRY",
    "AverageDICE",
    "AverageReward",
    "BehaviourReturn",
    "Entry",
    "Estimate",
    "Estimator",
    "Fit",
    "ValueRule",
    "as_printed",
    "find",
    "flow_mass",
    "flow_normalised",
    "label_on_state",
    "normalised_to_one",
    "plain_value",
    "product_on_state_and_step",
    "ratio_on_state",
    "unit_mass",
]
