"""The shipped target policies, each with a record of its training and its true values.

`NAME.safetensors` is the policy, `NAME.json` the record that `average-dice train` wrote, `NAME.truth.json` the true
values that `average-dice truth` wrote.
"""

import hashlib
import json
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from average_dice.errors import SettingError
from average_dice.policies import load_policy
from average_dice.tasks.task import NetworkPolicy, find_task, require_stochastic


def target_policy(name: str) -> NetworkPolicy:
    """The shipped policy of a task."""
    with as_file(files(__name__) / f"{find_task(name).name}.safetensors") as path:
        if not path.exists():
            raise SettingError(f"no policy is shipped for {name} yet. Train one: average-dice train {name} --out FILE")
        return require_stochastic(load_policy(path))


@cache
def policy_hash(name: str) -> str:
    """The hash of the shipped policy of a task: another policy has another one."""
    content = (files(__name__) / f"{find_task(name).name}.safetensors").read_bytes()
    return hashlib.sha256(content).hexdigest()[:12]


def training_record(name: str) -> dict[str, Any] | None:
    """How the shipped policy was trained and its mean return; None if none is shipped."""
    return _read(f"{find_task(name).name}.json")


def truth_record(name: str) -> dict[str, Any] | None:
    """The true values of the shipped policy, with standard errors; None if none are shipped."""
    return _read(f"{find_task(name).name}.truth.json")


@cache
def true_value(name: str, discount: float) -> tuple[float, float]:
    """J(π) of the shipped policy, and its standard error."""
    record = truth_record(name)
    for row in record["values"] if record else ():
        if row["discount"] == discount:
            return row["value"], row["standard_error"]
    raise SettingError(
        f"no true value of {name} is shipped at a discount of {discount:g}. Use one of `average-dice tasks`."
    )


def _read(name: str) -> dict[str, Any] | None:
    file = files(__name__) / name
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
