"""The methods by family, one per file, and the registry of their names.

`ratio/`, `value/`, `importance/`, `doubly_robust/`, `baseline/` and `blend/` hold the methods. `base.py` has
the contract of a method, `results.py` its results, `value_rules.py` how a value follows from a ratio.
"""

from typing import Any

from average_dice.estimators import registry
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm, TrainedEstimator, prepared_once
from average_dice.estimators.baseline.average_reward import AverageReward
from average_dice.estimators.baseline.behaviour_return import BehaviourReturn
from average_dice.estimators.blend.blend import Blend
from average_dice.estimators.doubly_robust.marginalised import MarginalisedDoublyRobust
from average_dice.estimators.doubly_robust.per_decision import DoublyRobust
from average_dice.estimators.importance.importance_sampling import ImportanceSampling
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.ratio.average_dice_lambda import AverageDICELambda
from average_dice.estimators.ratio.cop_td import COPTD
from average_dice.estimators.ratio.cop_td_features import COPTDFeatures
from average_dice.estimators.ratio.discount_correction import DiscountCorrection
from average_dice.estimators.ratio.mis_kernel import KernelMIS
from average_dice.estimators.ratio.mwl_kernel import KernelMWL
from average_dice.estimators.ratio.saddle_point import SaddlePoint
from average_dice.estimators.ratio.sr_dice import SRDICE
from average_dice.estimators.ratio.targets import (
    label_on_state,
    product_on_state_and_step,
    ratio_on_state,
    weighted_product_on_state_and_step,
)
from average_dice.estimators.registry import BASELINES, RECOMMENDED, REGISTRY, Entry, find, is_baseline, uses_behaviour
from average_dice.estimators.results import Critic, Estimate, Fit, Interval, LoggedValues
from average_dice.estimators.value.deep_td import DeepTD
from average_dice.estimators.value.emphatic_td import EmphaticTD
from average_dice.estimators.value.fitted_q import FittedQ
from average_dice.estimators.value.lstd_q import LSTDQ
from average_dice.estimators.value_rules import (
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
    "DiscountCorrection",
    "DoublyRobust",
    "EmphaticTD",
    "Entry",
    "Estimate",
    "Estimator",
    "Fit",
    "FittedQ",
    "ImportanceSampling",
    "Interval",
    "KernelMIS",
    "KernelMWL",
    "LoggedValues",
    "MarginalisedDoublyRobust",
    "Prepared",
    "PreparedClosedForm",
    "SaddlePoint",
    "TrainedEstimator",
    "ValueRule",
    "as_printed",
    "find",
    "flow_mass",
    "flow_normalised",
    "flow_normalised_pairs",
    "is_baseline",
    "label_on_state",
    "normalised_to_one",
    "plain_pairs",
    "plain_value",
    "prepared_once",
    "product_on_state_and_step",
    "ratio_on_state",
    "unit_mass",
    "uses_behaviour",
    "weighted_product_on_state_and_step",
]


def __getattr__(name: str) -> Any:
    """A class that the registry imports has its short path, also if it is not listed above."""
    found = getattr(registry, name, None)
    if isinstance(found, type) and issubclass(found, Estimator):
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
