"""The shipped target policies, each with a record of how it was trained and what it truly earns.

`NAME.safetensors` is the policy, `NAME.json` the record that `average-dice train` wrote, `NAME.truth.json` the true
values that `average-dice truth` wrote.
"""

import hashlib
import json
from importlib.resources import as_file, files
from typing import Any

from average_dice.errors import SettingError
from average_dice.policies import CategoricalPolicy, GaussianPolicy, load_policy
from average_dice.tasks.task import find_task


def target_policy(name: str) -> CategoricalPolicy | GaussianPolicy:
    """The shipped policy of a task."""
    with as_file(files(__name__) / f"{find_task(name).name}.safetensors") as path:
        if not path.exists():
            raise SettingError(f"no policy is shipped for {name} yet. Train one: average-dice train {name} --out FILE")
        return load_policy(path)


def policy_hash(name: str) -> str:
    """Tells one shipped policy of a task from another."""
    content = (files(__name__) / f"{find_task(name).name}.safetensors").read_bytes()
    return hashlib.sha256(content).hexdigest()[:12]


def training_record(name: str) -> dict[str, Any] | None:
    """How the shipped policy was trained and what it returns; None if none is shipped."""
    return _read(f"{find_task(name).name}.json")


def truth_record(name: str) -> dict[str, Any] | None:
    """The true values of the shipped policy, with standard errors; None if none are shipped."""
    return _read(f"{find_task(name).name}.truth.json")


def _read(name: str) -> dict[str, Any] | None:
    file = files(__name__) / name
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
