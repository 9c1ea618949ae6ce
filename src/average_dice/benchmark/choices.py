"""The hyperparameters that tuning chooses, with the truth and without it, and what each choice costs.

With the truth: the combination with the smallest root mean squared error, for all tasks together (geometric mean over
tasks, which differ in scale) and for each. Without: the one with the smallest loss on held-out episodes, which is what
a user could do.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from rich.table import Table

from ..errors import SettingError
from ..files import write_text_whole
from .summaries import Row, grouped, results, rmse, tasks_of

Combination = tuple[float, float, float]  # λ₁, λ₂, rate
PUBLISHED: Combination = (0.001, 0.5, 5e-4)
HEADINGS = ("task", "chosen for all tasks, with the truth", "for the task, with the truth", "without", "published")


def chosen(directory: Path) -> list[tuple[str, ...]]:
    """The lines of the table: a task, and for each way to choose the combination with its error."""
    rows = results(directory, "tuning")
    if not rows:
        raise SettingError(f"{directory}: no results of tuning there yet.")
    tasks = tasks_of(rows)
    cells = grouped(rows, lambda row: (row["task"], _combination(row)))
    errors = {cell: rmse(runs) for cell, runs in cells.items() if all(np.isfinite(run["error"]) for run in runs)}
    losses = {cell: _held_out(runs) for cell, runs in cells.items()}
    everywhere = [one for one in _combinations(rows) if all((task, one) in errors for task in tasks)]

    def geometric_mean(one: Combination) -> float:
        return float(np.exp(np.mean([np.log(errors[task, one]) for task in tasks])))

    common = min(everywhere, key=geometric_mean, default=None)
    lines = []
    for task in tasks:
        ran = [one for one in _combinations(rows) if (task, one) in cells]
        best = _smallest(ran, lambda one: errors.get((task, one), np.nan))  # noqa: B023
        blind = _smallest(ran, lambda one: losses[task, one])  # noqa: B023
        lines.append((task, *(_cell(one, errors.get((task, one))) for one in (common, best, blind, PUBLISHED))))
    return lines


def as_table(lines: Iterable[tuple[str, ...]]) -> Table:
    """For a terminal."""
    table = Table(*HEADINGS, title="λ₁, λ₂, rate → root mean squared error", title_justify="left")
    for line in lines:
        table.add_row(*line)
    return table


def write_choices(lines: Iterable[tuple[str, ...]], directory: Path) -> Path:
    """Writes `tuning.md`."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *lines]
    write_text_whole(directory / "tuning.md", "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n")
    return directory / "tuning.md"


def _combination(row: Row) -> Combination:
    options = json.loads(row["options"])
    return options["ridge"], options["mass_weight"], options["learning_rate"]


def _combinations(rows: Iterable[Row]) -> list[Combination]:
    return sorted({_combination(row) for row in rows})


def _held_out(runs: Iterable[Row]) -> float:
    return float(np.mean([json.loads(run["diagnostics"] or "{}").get("held_out_loss", np.nan) for run in runs]))


def _smallest(combinations: Iterable[Combination], measure: Callable[[Combination], float]) -> Combination | None:
    return min((one for one in combinations if np.isfinite(measure(one))), key=measure, default=None)


def _cell(one: Combination | None, error: float | None) -> str:
    if one is None or error is None:
        return "–"
    return f"{one[0]:g}, {one[1]:g}, {one[2]:g} → {error:.3g}"
