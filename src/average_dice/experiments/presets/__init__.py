"""Presets: how much of each experiment is run, as TOML files that a person can read, copy and change."""

import tomllib
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY, find
from average_dice.experiments.plans import AXES, Main, Plan, find_experiment
from average_dice.tasks.task import TASKS, find_task

SHIPPED = ("smoke", "standard", "paper")


def load_plan(preset: str | Path, experiment: str) -> Plan:
    """The plan of an experiment in a shipped preset or in a user's own file; every mistake in it is named."""
    kind = find_experiment(experiment)
    try:
        content = tomllib.loads(_text(preset))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{preset}: not a TOML file: {error}.") from None
    given = content.get(experiment)
    if not isinstance(given, dict):
        raise SettingError(f"{preset}: has no section [{experiment}].")
    wanted = {field.name: field for field in fields(kind)}
    try:
        if unknown := sorted(set(given) - set(wanted)):
            raise SettingError(f"unknown {', '.join(unknown)}. Known are {', '.join(wanted)}.")
        required = [name for name, field in wanted.items() if field.default is field.default_factory is MISSING]
        if missing := [name for name in required if name not in given]:
            raise SettingError(f"{', '.join(missing)} missing.")
        plan = kind(**{name: _checked(name, value, wanted[name].type is int) for name, value in given.items()})
        if isinstance(plan, Main) and (unused := set(plan.steps) - set(plan.estimators)):
            raise SettingError(f"steps of {', '.join(sorted(unused))}, which is not among the estimators.")
        if not any(plan.units(experiment)):
            raise SettingError("nothing to run: give steps for the estimators that train.")
    except SettingError as error:
        raise SettingError(f"{preset}, [{experiment}]: {error}") from None
    return plan


def _text(preset: str | Path) -> str:
    if str(preset) in SHIPPED:
        return (files(__name__) / f"{preset}.toml").read_text(encoding="utf-8")
    if not Path(preset).is_file():
        raise SettingError(f"{preset}: neither a preset ({', '.join(SHIPPED)}) nor a file.")
    try:
        return Path(preset).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SettingError(f"{preset}: not a text file in UTF-8.") from None


def _checked(name: str, value: Any, is_count: bool) -> Any:
    """The value as the plan wants it."""
    if is_count:
        return _count(name, value)
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
            if not isinstance(value, dict):
                raise SettingError(f"steps must name the methods, as in {{td = 1000}}, not {value!r}.")
            for estimator in find(list(value)) if value else ():
                if not REGISTRY[estimator].make().trains:
                    raise SettingError(f"{estimator} does not train, so it takes no steps.")
                _count(f"steps of {estimator}", value[estimator])
            return value
        case "held_out":
            if not (isinstance(value, float) and 0 < value <= 0.5):
                raise SettingError(f"held_out must lie between 0 and 0.5, not {value!r}.")
            return value
    return tuple(_number(name, number, above_zero=name == "learning_rates") for number in _list(name, value))


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


def _number(name: str, value: Any, above_zero: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value < float("inf")):
        raise SettingError(f"{name} must be numbers of at least 0, not {value!r}.")
    if above_zero and value == 0:
        raise SettingError(f"{name} must be above 0.")
    return float(value)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{name} must be a whole number above 0, not {value!r}.")
    return value
