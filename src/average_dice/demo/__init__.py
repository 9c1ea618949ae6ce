"""The embedded demonstration: two real logs, one with discrete and one with continuous actions.

Each was made by `average-dice collect TASK --seed 0 --out FILE`; the policy to judge and what it truly earns are those
that the package ships for the task.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files

from average_dice.data import LoggedDataset, read_dataset
from average_dice.policies import CategoricalPolicy, GaussianPolicy
from average_dice.tasks.shipped import target_policy, truth_record

DEMOS = ("CartPole-v1", "Hopper-v5")


@dataclass(frozen=True, eq=False)
class Demo:
    """A log, the policy to judge by it, and what that policy truly earns."""

    dataset: LoggedDataset
    policy: CategoricalPolicy | GaussianPolicy
    discount: float
    truth: float
    standard_error: float
    num_episodes: int  # that the truth was measured on


def load_demo(name: str, discount: float = 0.95) -> Demo:
    """One of the embedded logs, by the name of its task."""
    with as_file(files(__name__) / f"{name}.parquet") as path:
        log = read_dataset(path)
    record = truth_record(name)
    assert record is not None, name
    (row,) = (row for row in record["values"] if row["discount"] == discount)
    return Demo(log, target_policy(name), discount, row["value"], row["standard_error"], record["episodes"])
