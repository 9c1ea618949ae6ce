"""The methods, one a file, and the registry that gives them their names."""

from .average_dice import (
    AverageDICE,
    label_on_state,
    product_on_state_and_step,
    ratio_on_state,
    weighted_product_on_state_and_step,
)
from .average_dice_lambda import AverageDICELambda
from .average_reward import AverageReward
from .base import Critic, Estimate, Estimator, Fit, TrainedEstimator
from .behaviour_return import BehaviourReturn
from .blend import Blend
from .cop_td import COPTD
from .cop_td_features import COPTDFeatures
from .deep_td import DeepTD
from .doubly_robust import DoublyRobust, MarginalisedDoublyRobust
from .etd import EmphaticTD
from .fqe import FittedQ
from .importance_sampling import ImportanceSampling
from .lstd_q import LSTDQ
from .mis_kernel import KernelMIS
from .mwl_kernel import KernelMWL
from .registry import BASELINES, RECOMMENDED, REGISTRY, Entry, find
from .saddle_point import SaddlePoint
from .sr_dice import SRDICE
from .weighting import (
    ValueRule,
    as_printed,
    flow_mass,
    flow_normalised,
    flow_normalised_pairs,
    normalised_to_one,
    plain_pairs,
    plain_value,
    unit_mass,
)

__all__ = [
    "BASELINES",
    "COPTD",
    "LSTDQ",
    "RECOMMENDED",
    "REGISTRY",
    "SRDICE",
    "AverageDICE",
    "AverageDICELambda",
    "AverageReward",
    "BehaviourReturn",
    "Blend",
    "COPTDFeatures",
    "Critic",
    "DeepTD",
    "DoublyRobust",
    "EmphaticTD",
    "Entry",
    "Estimate",
    "Estimator",
    "Fit",
    "FittedQ",
    "ImportanceSampling",
    "KernelMIS",
    "KernelMWL",
    "MarginalisedDoublyRobust",
    "SaddlePoint",
    "TrainedEstimator",
    "ValueRule",
    "as_printed",
    "find",
    "flow_mass",
    "flow_normalised",
    "flow_normalised_pairs",
    "label_on_state",
    "normalised_to_one",
    "plain_pairs",
    "plain_value",
    "product_on_state_and_step",
    "ratio_on_state",
    "unit_mass",
    "weighted_product_on_state_and_step",
]
