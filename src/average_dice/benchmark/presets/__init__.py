"""Presets: how much of each experiment is run, as TOML files that a person can read, copy and change."""

import tomllib
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import SettingError
from ...estimators import REGISTRY, find
from ..experiments import AXES, Plan, find_experiment
from ..runs import trains
from ..tasks import TASKS, find_task

SHIPPED = ("smoke", "standard", "paper")


def load_plan(preset: str | Path, experiment: str) -> Plan:
    """The plan of an experiment in a shipped preset or in a user's own file; every mistake in it is named."""
    kind = find_experiment(experiment)
    text = _text(preset)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{preset}: not a TOML file: {error}.") from None
    if experiment not in content:
        raise SettingError(f"{preset}: has no section [{experiment}].")
    given = content[experiment]
    wanted = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(given) - set(wanted)):
        raise SettingError(f"{preset}, [{experiment}]: unknown {', '.join(unknown)}. Known are {', '.join(wanted)}.")
    required = [name for name, field in wanted.items() if field.default is field.default_factory is MISSING]
    if missing := [name for name in required if name not in given]:
        raise SettingError(f"{preset}, [{experiment}]: {', '.join(missing)} missing.")
    return kind(**{name: _checked(f"{preset}, [{experiment}]", name, value) for name, value in given.items()})


def _text(preset: str | Path) -> str:
    if str(preset) in SHIPPED:
        return (files(__name__) / f"{preset}.toml").read_text()
    if not Path(preset).is_file():
        raise SettingError(f"{preset}: neither a preset ({', '.join(SHIPPED)}) nor a file.")
    return Path(preset).read_text()


def _checked(place: str, name: str, value: Any) -> Any:
    """The value as the plan wants it."""
    match name:
        case "tasks":
            return tuple(TASKS) if value == "all" else tuple(find_task(task).name for task in _list(place, name, value))
        case "estimators":
            return find(value if isinstance(value, str) else _list(place, name, value))
        case "axes":
            if unknown := [axis for axis in _list(place, name, value) if axis not in AXES]:
                raise SettingError(f"{place}: unknown axis {', '.join(unknown)}. Known are {', '.join(AXES)}.")
            return tuple(value)
        case "steps" if isinstance(value, dict):
            for estimator, steps in value.items():
                find([estimator])
                if not trains(REGISTRY[estimator].make()):
                    raise SettingError(f"{place}: {estimator} does not train, so it takes no steps.")
                _count(place, f"steps of {estimator}", steps)
            return value
        case "ridges" | "mass_weights" | "learning_rates":
            if not all(isinstance(number, int | float) and number >= 0 for number in _list(place, name, value)):
                raise SettingError(f"{place}: {name} must be numbers of at least 0, not {value}.")
            return tuple(float(number) for number in value)
        case "held_out":
            if not (isinstance(value, float) and 0 < value <= 0.5):
                raise SettingError(f"{place}: held_out must lie between 0 and 0.5, not {value}.")
            return value
    return _count(place, name, value)


def _list(place: str, name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise SettingError(f"{place}: {name} must be a list of at least one, not {value!r}.")
    return value


def _count(place: str, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{place}: {name} must be a whole number above 0, not {value!r}.")
    return value
