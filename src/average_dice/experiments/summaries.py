"""Errors by task, method and setting, from the rows of a store. Figures, tables and claims start from here."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from average_dice.experiments.jobs import AXES, Row, Setting
from average_dice.tasks import TASKS, find_task

RELATIVE_FLOOR = 1e-3  # of |J|: smaller errors count as this in ratios, because the truth is not more precise
END = 0.2  # the end of training is this share of its steps, to average out oscillations,
LONGEST_END = 1_000  # but at most this many steps: a method that still improves is not judged by earlier values


def grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Any, list[Row]]:
    """The rows with the same key, in the order in which keys first appear."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def rmse(rows: Iterable[Row]) -> float:
    """√ mean error² of the runs that have a value; NaN without any. Report with it how many have none."""
    errors = np.array([row["error"] for row in rows])
    errors = errors[np.isfinite(errors)]
    return float(np.sqrt(np.mean(errors**2))) if len(errors) else float("nan")


def error_at_the_end(runs: Iterable[Row], after: int | None = None) -> float:
    """√ mean error² over runs and over the checkpoints at the end of training; NaN where a run has no value.

    A value that oscillates in training is right at a single checkpoint by luck. `after`: the error as if training had
    ended after this many steps.
    """
    squares = [np.mean((_values_at_the_end(row, after) - row["truth"]) ** 2) for row in runs]
    return float(np.sqrt(np.mean(squares))) if squares else float("nan")


def _values_at_the_end(row: Row, after: int | None) -> np.ndarray:
    """The values at the last checkpoints; one value if the method does not train."""
    if row["value"] is None or not row["curve_step"]:
        return np.array([np.nan if row["value"] is None else row["value"]])
    steps = np.array(row["curve_step"])
    last = steps[-1] if after is None else steps[steps <= after].max()
    at_the_end = (steps <= last) & (steps > last - max(min(END * last, LONGEST_END), 1))
    return np.array(row["curve_value"], float)[at_the_end]


def label(row: Row) -> str:
    """The method, and the options that differ from its defaults."""
    options = json.loads(row["options"])
    return row["estimator"] + "".join(f" {name}={value:g}" for name, value in options.items() if name != "held_out")


def tasks_of(rows: Iterable[Row]) -> list[str]:
    """The tasks that occur, in the order of `TASKS`."""
    found = {row["task"] for row in rows}
    return [task for task in TASKS if task in found]


def beside(rows: Iterable[Row], axis: str) -> list[Row]:
    """The rows that differ from the main setting along this axis only."""
    found = []
    for row in rows:
        middle = asdict(Setting.of(find_task(row["task"])))
        if all(row[name] == middle[name] for name in AXES if name != axis):
            found.append(row)
    return found


def setting_of(row: Row) -> tuple[str, float, int, int, float]:
    """The task and the setting."""
    return row["task"], row["discount"], row["transitions"], row["max_steps"], row["noise"]


def overview(rows: Sequence[Row], experiment: str) -> Group:
    """A table of root mean squared errors: one line for each method, one column for each task."""
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


def markdown_table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a vertical bar within a cell is escaped."""
    rows = [headings, ("---",) * len(headings), *lines]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def terminal_table(title: str, headings: Sequence[str], lines: Iterable[Sequence[str]]) -> Table:
    """The same for a terminal."""
    table = Table(*headings, title=title, title_justify="left")
    for line in lines:
        table.add_row(*line)
    return table


def _cell(runs: list[Row]) -> str:
    found = sum(row["value"] is not None for row in runs)
    if not found:
        return "–"
    error = rmse(runs)
    shown = f"{error:.3f}" if 0.001 <= error < 10 else f"{error:.0e}" if error else "0"  # at most five characters
    return shown + (f"\n{found}/{len(runs)}" if found < len(runs) else "")
