"""Presets: the size of each experiment, as TOML files that users can read, copy and change."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY, find
from average_dice.experiments.base import Experiment, P
from average_dice.experiments.jobs import AXES
from average_dice.tasks import TASKS, find_task

SHIPPED = ("smoke", "standard", "paper")
OTHERS = "others"  # in `steps`: all other methods that train


def load_plan(preset: str | Path, experiment: Experiment[P]) -> P:
    """The plan of an experiment in a shipped preset or in your own file. Errors name the field."""
    section = experiment.name
    try:
        content = tomllib.loads(_text(preset))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{preset}: not a TOML file: {error}.") from None
    given = content.get(section)
    if not isinstance(given, dict):
        raise SettingError(f"{preset}: has no section [{section}]. Add one, or give another preset.")
    wanted = {field.name: field for field in fields(experiment.plan_type)}
    try:
        if unknown := sorted(set(given) - set(wanted)):
            raise SettingError(f"unknown {', '.join(unknown)}. Known are {', '.join(wanted)}.")
        required = [name for name, field in wanted.items() if field.default is field.default_factory is MISSING]
        if missing := [name for name in required if name not in given]:
            raise SettingError(f"{', '.join(missing)} missing.")
        values = {name: _checked(name, value, wanted[name].type) for name, value in given.items()}
        if isinstance(steps := values.get("steps"), dict) and OTHERS in steps:
            values["steps"] = _with_others(steps, values["estimators"])
        plan = experiment.plan_type(**values)
        plan.check()
        if not any(experiment.jobs(plan)):
            raise SettingError("nothing to run: give steps for the estimators that train.")
    except SettingError as error:
        raise SettingError(f"{preset}, [{section}]: {error}") from None
    return plan


def _text(preset: str | Path) -> str:
    if str(preset) in SHIPPED:
        return (files(__name__) / f"{preset}.toml").read_text(encoding="utf-8")
    if not Path(preset).is_file():
        raise SettingError(f"{preset}: neither a preset ({', '.join(SHIPPED)}) nor a file.")
    try:
        return Path(preset).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SettingError(f"{preset}: not a text file in UTF-8. Save it as UTF-8.") from None


def _checked(name: str, value: Any, kind: Any) -> Any:
    """The value in the form that the plan needs."""
    if kind is int:
        return _count(name, value)
    if kind is float:
        return _number(name, value)
    match name:
        case "tasks":
            return tuple(TASKS) if value == "all" else tuple(find_task(task).name for task in _names(name, value))
        case "estimators":
            return find(value if isinstance(value, str) else _names(name, value))
        case "axes":
            if unknown := [axis for axis in _names(name, value) if axis not in AXES]:
                raise SettingError(f"unknown axis {', '.join(unknown)}. Known are {', '.join(AXES)}.")
            return tuple(value)
        case "steps":
            return _steps(value)
    return tuple(_number(name, number) for number in _list(name, value))


def _steps(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise SettingError(f"steps must name the methods, as in {{td = 1000}}, not {value!r}.")
    named = [name for name in value if name != OTHERS]
    for estimator in find(named) if named else ():
        if not REGISTRY[estimator].make().trains:
            raise SettingError(f"{estimator} does not train. Remove its steps.")
    return {name: _count(f"steps of {name}", number) for name, number in value.items()}


def _with_others(steps: Mapping[str, int], estimators: tuple[str, ...]) -> dict[str, int]:
    """The same steps for every method that trains and is not named."""
    trained = {name: steps[OTHERS] for name in estimators if REGISTRY[name].make().trains}
    return trained | {name: number for name, number in steps.items() if name != OTHERS}


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise SettingError(f"{name} must be a list of at least one, not {value!r}.")
    if twice := [one for index, one in enumerate(value) if one in value[:index]]:
        raise SettingError(f"{name} has {twice[0]!r} twice.")
    return value


def _names(name: str, value: Any) -> list[str]:
    if not all(isinstance(one, str) for one in _list(name, value)):
        raise SettingError(f"{name} must be names, not {value!r}.")
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value < float("inf")):
        raise SettingError(f"{name} must be numbers of at least 0, not {value!r}.")
    return float(value)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{name} must be a whole number above 0, not {value!r}.")
    return value
