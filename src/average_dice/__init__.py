"""Average-DICE: what would a new policy earn, judging by logged data alone?

The names below follow the way of the data: a log, a policy, the problem that they pose, methods that solve it, and the
evaluation that most users call. Everything else is in the modules, by a short path: `ad.estimators.FittedQ`,
`ad.labels.plain`, `ad.models.Table`, `ad.testing.check_estimator`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from average_dice.version import __version__ as __version__

if TYPE_CHECKING:
    from average_dice import data as data
    from average_dice import estimators as estimators
    from average_dice import experiments as experiments
    from average_dice import features as features
    from average_dice import inference as inference
    from average_dice import labels as labels
    from average_dice import models as models
    from average_dice import policies as policies
    from average_dice import tasks as tasks
    from average_dice import testing as testing
    from average_dice.answers import Answer as Answer
    from average_dice.behaviour import estimate_behaviour as estimate_behaviour
    from average_dice.comparison import Comparison as Comparison
    from average_dice.comparison import compare as compare
    from average_dice.data import LogBlocks as LogBlocks
    from average_dice.data import LoggedDataset as LoggedDataset
    from average_dice.data import from_d3rlpy as from_d3rlpy
    from average_dice.data import from_d4rl as from_d4rl
    from average_dice.data import from_dataframe as from_dataframe
    from average_dice.data import from_gymnasium as from_gymnasium
    from average_dice.data import from_minari as from_minari
    from average_dice.data import from_open_bandit as from_open_bandit
    from average_dice.data import read_dataset as read_dataset
    from average_dice.data import write_dataset as write_dataset
    from average_dice.errors import AverageDiceError as AverageDiceError
    from average_dice.errors import DatasetError as DatasetError
    from average_dice.errors import NotApplicable as NotApplicable
    from average_dice.errors import NotEnoughMemory as NotEnoughMemory
    from average_dice.errors import PolicyError as PolicyError
    from average_dice.errors import SettingError as SettingError
    from average_dice.estimators import AverageDICE as AverageDICE
    from average_dice.estimators import AverageReward as AverageReward
    from average_dice.estimators import BehaviourReturn as BehaviourReturn
    from average_dice.estimators import Blend as Blend
    from average_dice.estimators import Estimate as Estimate
    from average_dice.estimators import Estimator as Estimator
    from average_dice.estimators import Fit as Fit
    from average_dice.estimators import Interval as Interval
    from average_dice.estimators import Prepared as Prepared
    from average_dice.evaluation import evaluate as evaluate
    from average_dice.evaluation_result import Evaluation as Evaluation
    from average_dice.inference.refutation import Refutation as Refutation
    from average_dice.inference.refutation import Refutations as Refutations
    from average_dice.notes import Note as Note
    from average_dice.notes import NoteCode as NoteCode
    from average_dice.planning import Plan as Plan
    from average_dice.planning import plan as plan
    from average_dice.policies import CategoricalPolicy as CategoricalPolicy
    from average_dice.policies import GaussianPolicy as GaussianPolicy
    from average_dice.policies import Policy as Policy
    from average_dice.policies import as_policy as as_policy
    from average_dice.policies import load_policy as load_policy
    from average_dice.policies import save_policy as save_policy
    from average_dice.problem import Problem as Problem
    from average_dice.refutation import refute as refute
    from average_dice.return_distribution import ReturnDistribution as ReturnDistribution
    from average_dice.return_distribution import distribution as distribution
    from average_dice.selection import Selection as Selection
    from average_dice.selection import select as select
    from average_dice.sensitivity_analysis import Sensitivity as Sensitivity
    from average_dice.sensitivity_analysis import sensitivity as sensitivity
    from average_dice.tasks.environments import collect as collect

# In the order of the pipeline. Each is imported when it is first used: `average-dice --help` must not wait for JAX.
_HOME = {
    "LoggedDataset": "data",
    "from_dataframe": "data",
    "read_dataset": "data",
    "LogBlocks": "data",
    "write_dataset": "data",
    "estimate_behaviour": "behaviour",
    "from_minari": "data",
    "from_d4rl": "data",
    "from_d3rlpy": "data",
    "from_gymnasium": "data",
    "from_open_bandit": "data",
    "collect": "tasks.environments",
    "Policy": "policies",
    "CategoricalPolicy": "policies",
    "GaussianPolicy": "policies",
    "as_policy": "policies",
    "load_policy": "policies",
    "save_policy": "policies",
    "Problem": "problem",
    "Estimator": "estimators",
    "Prepared": "estimators",
    "Fit": "estimators",
    "Estimate": "estimators",
    "Interval": "estimators",
    "Note": "notes",
    "NoteCode": "notes",
    "AverageDICE": "estimators",
    "Blend": "estimators",
    "AverageReward": "estimators",
    "BehaviourReturn": "estimators",
    "Answer": "answers",
    "Evaluation": "evaluation_result",
    "evaluate": "evaluation",
    "Comparison": "comparison",
    "compare": "comparison",
    "Plan": "planning",
    "plan": "planning",
    "Refutation": "inference.refutation",
    "Refutations": "inference.refutation",
    "refute": "refutation",
    "Selection": "selection",
    "select": "selection",
    "Sensitivity": "sensitivity_analysis",
    "sensitivity": "sensitivity_analysis",
    "ReturnDistribution": "return_distribution",
    "distribution": "return_distribution",
    "AverageDiceError": "errors",
    "DatasetError": "errors",
    "PolicyError": "errors",
    "SettingError": "errors",
    "NotApplicable": "errors",
    "NotEnoughMemory": "errors",
}
_MODULES = (
    "data",
    "policies",
    "labels",
    "features",
    "models",
    "estimators",
    "inference",
    "tasks",
    "experiments",
    "testing",
)

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"average_dice.{name}")
    if name in _HOME:
        return getattr(import_module(f"average_dice.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
