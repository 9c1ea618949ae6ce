"""Average-DICE: what would a new policy earn, judging by logged data alone?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import policies as policies
    from .comparison import Comparison as Comparison
    from .comparison import compare as compare
    from .data import LoggedDataset as LoggedDataset
    from .data import read_dataset as read_dataset
    from .data import write_dataset as write_dataset
    from .errors import AverageDiceError as AverageDiceError
    from .errors import DatasetError as DatasetError
    from .errors import NotApplicable as NotApplicable
    from .errors import PolicyError as PolicyError
    from .errors import SettingError as SettingError
    from .estimators import AverageDICE as AverageDICE
    from .estimators import AverageReward as AverageReward
    from .estimators import BehaviourReturn as BehaviourReturn
    from .estimators import Estimate as Estimate
    from .estimators import Estimator as Estimator
    from .estimators import Fit as Fit
    from .evaluation import Evaluation as Evaluation
    from .evaluation import evaluate as evaluate
    from .policies import CategoricalPolicy as CategoricalPolicy
    from .policies import GaussianPolicy as GaussianPolicy
    from .policies import Policy as Policy
    from .policies import load_policy as load_policy
    from .policies import save_policy as save_policy
    from .problem import Problem as Problem
    from .selection import Selection as Selection
    from .selection import select as select

# In the order of the pipeline. Each is imported when it is first used: `average-dice --help` must not wait for JAX.
_HOME = {
    "LoggedDataset": "data",
    "read_dataset": "data",
    "write_dataset": "data",
    "Policy": "policies",
    "CategoricalPolicy": "policies",
    "GaussianPolicy": "policies",
    "load_policy": "policies",
    "save_policy": "policies",
    "Problem": "problem",
    "Estimator": "estimators",
    "Fit": "estimators",
    "Estimate": "estimators",
    "AverageDICE": "estimators",
    "AverageReward": "estimators",
    "BehaviourReturn": "estimators",
    "Evaluation": "evaluation",
    "evaluate": "evaluation",
    "Comparison": "comparison",
    "compare": "comparison",
    "Selection": "selection",
    "select": "selection",
    "AverageDiceError": "errors",
    "DatasetError": "errors",
    "PolicyError": "errors",
    "SettingError": "errors",
    "NotApplicable": "errors",
}

__all__ = [*_HOME, "policies"]


def __getattr__(name: str) -> Any:
    if name == "policies":
        return import_module(".policies", __name__)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
