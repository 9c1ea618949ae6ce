"""The embedded demonstration: a small real log, the policy to judge by it, and what that policy truly earns."""

import json
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

from ..data import LoggedDataset, read_dataset
from ..policies import CategoricalPolicy, GaussianPolicy, load_policy


@dataclass(frozen=True, eq=False)
class Demo:
    """A log, a policy, and `truth`: the discount, the true value, its standard error, and how it was measured."""

    title: str
    dataset: LoggedDataset
    policy: CategoricalPolicy | GaussianPolicy
    truth: dict[str, Any]


def cartpole() -> Demo:
    """CartPole-v1 and a hand-made stochastic controller, logged with 30 % of uniform actions mixed in."""
    folder = files(__name__)
    with (
        as_file(folder / "cartpole.parquet") as log,
        as_file(folder / "cartpole.safetensors") as policy,
    ):
        truth = json.loads((folder / "cartpole.json").read_text())
        return Demo("CartPole-v1, a hand-made stochastic controller", read_dataset(log), load_policy(policy), truth)
