"""The demo: two embedded logs of simulated tasks, one with discrete and one with continuous actions.

Each was made by `average-dice collect TASK --seed 0 --out FILE`. The target policy and its true value are those that
the package ships for the task.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from average_dice.data import LoggedDataset, read_dataset, write_dataset
from average_dice.policies import save_policy
from average_dice.tasks import NetworkPolicy, target_policy, true_value, truth_record

DEMOS = ("CartPole-v1", "Hopper-v5")


@dataclass(frozen=True, eq=False)
class Demo:
    """A log, the target policy, and its true value J(π)."""

    dataset: LoggedDataset
    policy: NetworkPolicy
    discount: float
    truth: float
    standard_error: float
    num_episodes: int  # on-policy episodes behind the true value


def load_demo(name: str, discount: float = 0.95) -> Demo:
    """The embedded log of a task, by the name of the task."""
    with as_file(files(__name__) / f"{name}.parquet") as path:
        log = read_dataset(path)
    record = truth_record(name)
    assert record is not None, name
    truth, standard_error = true_value(name, discount)
    return Demo(log, target_policy(name), discount, truth, standard_error, record["episodes"])


def save_demo(folder: Path, name: str, shown: Demo) -> None:
    """Writes the log and the policy of a demo to files of that name."""
    write_dataset(shown.dataset, folder / f"{name}.parquet")
    save_policy(shown.policy, folder / f"{name}.safetensors")
