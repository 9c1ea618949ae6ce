"""The hyperparameters that tuning chooses, with the truth and without it, and what each choice costs.

With the truth: the combination with the smallest root mean squared error on the other logs, for all tasks together
(geometric mean over tasks, which differ in scale) and for each; the best of eighty on the same logs would look far
better than it is. Without: the one with the smallest loss on held-out episodes of the log itself, which is what a user
could do. The error is that on the log for which the choice was made, over all logs, and over the looks at
the end of training.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from average_dice.errors import SettingError
from average_dice.experiments.summaries import Row, error_at_the_end, grouped, results, tasks_of
from average_dice.files import write_text_whole

Combination = tuple[float, float, float]  # λ₁, λ₂, rate
PUBLISHED: Combination = (0.001, 0.5, 5e-4)
HEADINGS = ("task", "chosen for all tasks, with the truth", "for the task, with the truth", "without", "published")


def chosen(directory: Path) -> list[tuple[str, ...]]:
    """The lines of the table: a task, and for each way to choose the combination with its error."""
    rows = results(directory, "tuning")
    if not rows:
        raise SettingError(f"{directory}: no results of tuning there yet.")
    tasks = tasks_of(rows)
    runs = grouped(rows, lambda row: (row["task"], _combination(row), row["log"]))
    combinations = _combinations(rows)

    def error(task: str, one: Combination, logs: Sequence[int]) -> float:
        return error_at_the_end(run for log in logs for run in runs.get((task, one, log), ()))

    def loss(task: str, one: Combination, log: int) -> float:
        return _held_out(runs.get((task, one, log), ()))

    lines = []
    for task in tasks:
        logs = sorted({row["log"] for row in rows if row["task"] == task})
        logs = [log for log in logs if all((task, one, log) in runs for one in combinations)]  # those run to the end
        ways: list[list[Combination | None]] = [[], [], [], []]
        for log in logs:
            others = [other for other in logs if other != log]
            for_all = _smallest({one: _log_mean([error(each, one, others) for each in tasks]) for one in combinations})
            for_it = _smallest({one: error(task, one, others) for one in combinations})
            blind = _smallest({one: loss(task, one, log) for one in combinations})
            for way, one in zip(ways, (for_all, for_it, blind, PUBLISHED), strict=True):
                way.append(one)
        errors = [
            [error(task, one, [log]) for one, log in zip(way, logs, strict=True) if one and (task, one, log) in runs]
            for way in ways
        ]
        lines.append((task, *map(_cell, ways, errors)))
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


def _held_out(runs: Sequence[Row]) -> float:
    losses = [json.loads(run["diagnostics"] or "{}").get("held_out_loss", np.nan) for run in runs]
    return float(np.mean(losses)) if losses else np.nan


def _log_mean(errors: Sequence[float]) -> float:
    return float(np.mean(np.log(errors)))


def _smallest(measured: Mapping[Combination, float]) -> Combination | None:
    return min((one for one in measured if np.isfinite(measured[one])), key=measured.__getitem__, default=None)


def _cell(chosen: Sequence[Combination | None], errors: Sequence[float]) -> str:
    """What was chosen for each log, if it is always the same, and the error on these logs."""
    different = set(chosen)
    if None in different or not errors:
        return "–"
    if np.isnan(errors).any():
        return f"diverges on {np.isnan(errors).sum()} of {len(errors)} logs"
    (first, *others) = sorted(one for one in different if one)
    what = f"{len(different)} different" if others else f"{first[0]:g}, {first[1]:g}, {first[2]:g}"
    return f"{what} → {np.sqrt(np.mean(np.square(errors))):.3g}"
