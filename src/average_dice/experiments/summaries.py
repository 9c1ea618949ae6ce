"""What the rows of a store say: errors by task, method and setting. Figures and claims start from here."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY
from average_dice.experiments.jobs import Setting
from average_dice.experiments.measurements import true_value
from average_dice.experiments.plans import Plan, read_plan
from average_dice.experiments.store import keys_of, read_rows
from average_dice.tasks.task import TASKS, find_task

Row = dict[str, Any]

RELATIVE_FLOOR = 1e-3  # of |J|: where errors are divided by each other, one below it counts as that
END = 0.2  # so much of the training is its end,
LONGEST_END = 1_000  # but no more steps than these: what is still on its way is not charged for where it was


def results(directory: Path, experiment: str) -> list[Row]:
    """The rows of an experiment, with `error` = value − truth, NaN where there is no value.

    The truth is the one that is shipped now, which may be known better than when the row was written. So rows of target
    policies that have been replaced since do not count, nor do those of other defaults.
    """
    rows = read_rows(directory, experiment).to_pylist()
    keys = keys_of(experiment, plan_of(directory, experiment)) if rows else frozenset()
    rows = [row for row in rows if row["unit"] in keys]
    for row in rows:
        row["truth"], row["truth_standard_error"] = true_value(row["task"], row["discount"])
        row["error"] = np.nan if row["value"] is None else row["value"] - row["truth"]
    return rows


def plan_of(directory: Path, experiment: str) -> Plan:
    """What the rows of an experiment are of."""
    path = directory / f"{experiment}.json"
    try:
        plan = read_plan(experiment, json.loads(path.read_text(encoding="utf-8"))["plan"])
    except (OSError, ValueError, KeyError, TypeError):
        raise SettingError(f"{path}: not there, or not the manifest of a result store.") from None
    if unknown := set(getattr(plan, "estimators", ())) - set(REGISTRY):
        raise SettingError(f"{path}: has methods that are not known here: {', '.join(sorted(unknown))}.")
    return plan


def grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Any, list[Row]]:
    """The rows with the same key, in the order in which keys first appear."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def rmse(rows: Iterable[Row]) -> float:
    """√ mean error² of the runs that have a value; NaN without any. Say with it how many have none."""
    errors = np.array([row["error"] for row in rows])
    errors = errors[np.isfinite(errors)]
    return float(np.sqrt(np.mean(errors**2))) if len(errors) else float("nan")


def error_at_the_end(runs: Iterable[Row], after: int | None = None) -> float:
    """√ mean error² over runs and over the looks at the end of training; NaN where a run has no value.

    What swings while it trains is right at a single look by luck. `after` so many steps: as if it had ended there.
    """
    squares = [np.mean((_values_at_the_end(row, after) - row["truth"]) ** 2) for row in runs]
    return float(np.sqrt(np.mean(squares))) if squares else float("nan")


def _values_at_the_end(row: Row, after: int | None) -> np.ndarray:
    """Of what does not train, the only value."""
    if row["value"] is None or not row["curve_step"]:
        return np.array([np.nan if row["value"] is None else row["value"]])
    steps = np.array(row["curve_step"])
    last = steps[-1] if after is None else steps[steps <= after].max()
    at_the_end = (steps <= last) & (steps > last - max(min(END * last, LONGEST_END), 1))
    return np.array(row["curve_value"], float)[at_the_end]


def label(row: Row) -> str:
    """The method, and what differs from its defaults."""
    options = json.loads(row["options"])
    return row["estimator"] + "".join(f" {name}={value:g}" for name, value in options.items() if name != "held_out")


def tasks_of(rows: Iterable[Row]) -> list[str]:
    """The tasks that occur, in our order."""
    found = {row["task"] for row in rows}
    return [task for task in TASKS if task in found]


def beside(rows: Iterable[Row], axis: str) -> list[Row]:
    """The rows that differ from the main setting in nothing but one axis."""
    found = []
    for row in rows:
        middle = asdict(Setting.of(find_task(row["task"])))
        if all(row[name] == value for name, value in middle.items() if name != axis):
            found.append(row)
    return found


def overview(directory: Path, experiment: str) -> Group:
    """A table of root mean squared errors: methods down, tasks across."""
    rows = results(directory, experiment)
    if not rows:
        raise SettingError(f"{directory}: no results of {experiment} there yet.")
    tasks = tasks_of(rows)
    settings = {setting_of(row) for row in rows}
    over = " over all settings" if len(settings) > len(tasks) else ""
    title = f"{experiment}: root mean squared error of J(π){over}"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for task in tasks:
        table.add_column(task.split("-v")[0], justify="right", overflow="fold")
    cells = grouped(rows, lambda row: (label(row), row["task"]))
    for method in dict.fromkeys(label(row) for row in rows):
        table.add_row(method, *(_cell(cells.get((method, task), [])) for task in tasks))
    note = f"{len(rows):,} runs, up to {len({row['log'] for row in rows})} logs of {len(settings)} settings"
    if any(row["value"] is None for row in rows):
        note += "; k/n: only k of n runs have a value"
    return Group(Text(title, style="italic"), table, Text(note, style="dim"))


def setting_of(row: Row) -> tuple[str, float, int, int, float]:
    """Where the log comes from, but for its number, and the discount."""
    return row["task"], row["discount"], row["transitions"], row["max_steps"], row["noise"]


def _cell(runs: list[Row]) -> str:
    found = sum(row["value"] is not None for row in runs)
    if not found:
        return "–"
    error = rmse(runs)
    shown = f"{error:.3f}" if 0.001 <= error < 10 else f"{error:.0e}" if error else "0"  # at most five characters
    return shown + (f"\n{found}/{len(runs)}" if found < len(runs) else "")
