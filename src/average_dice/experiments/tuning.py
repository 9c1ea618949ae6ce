"""tuning: the paper's grid of hyperparameters for its own method, and the error of each way of choosing among them.

With the truth: the combination with the smallest root mean squared error on the *other* logs, for all tasks together
(geometric mean over tasks, whose scales differ) and for each task. The error of the best of eighty on the same logs
would be far too small. Without the truth: the combination with the smallest loss on held-out episodes of the log
itself, which every user can compute. The error is that on the log for which the choice was made, over all logs and over
the checkpoints at the end of training.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from average_dice.errors import SettingError
from average_dice.experiments.base import Experiment, Plan, Summary
from average_dice.experiments.jobs import PAPER, Job, Row, Setting
from average_dice.experiments.measurements import planned
from average_dice.experiments.summaries import error_at_the_end, grouped, markdown_table, tasks_of, terminal_table
from average_dice.tasks import find_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Combination = tuple[float, float, float]  # λ₁, λ₂, learning rate
PUBLISHED: Combination = (0.001, 0.5, 5e-4)  # of the paper
_HEADINGS = ("task", "chosen for all tasks, with the truth", "for the task, with the truth", "without", "published")


@dataclass(frozen=True)
class TuningPlan(Plan):
    """Every combination of λ₁ (`ridges`), λ₂ (`mass_weights`) and learning rate, fitted to 80 % of the episodes.

    The other 20 % (`held_out`) give the loss by which a user can choose without the truth.
    """

    tasks: tuple[str, ...]
    logs: int
    seeds: int
    steps: int
    every: int
    ridges: tuple[float, ...] = (0.0, 0.001, 0.01, 0.1)
    mass_weights: tuple[float, ...] = (0.5, 2.0, 10.0, 20.0)
    learning_rates: tuple[float, ...] = (5e-5, 1e-4, 5e-4, 1e-3, 5e-3)
    held_out: float = 0.2

    def check(self) -> None:
        if not 0 < self.held_out <= 0.5:
            raise SettingError(f"held_out must lie between 0 and 0.5, not {self.held_out!r}.")
        if 0 in self.learning_rates:
            raise SettingError("learning_rates must be above 0.")


class Tuning(Experiment[TuningPlan]):
    """The paper's method on a grid of its hyperparameters."""

    name = "tuning"
    description = "Hyperparameters of the paper's method, chosen with and without the truth."
    plan_type = TuningPlan

    def jobs(self, plan: TuningPlan) -> Iterator[Job]:
        grid = [
            {"ridge": ridge, "mass_weight": mass_weight, "learning_rate": rate, "held_out": plan.held_out}
            for ridge, mass_weight, rate in product(plan.ridges, plan.mass_weights, plan.learning_rates)
        ]
        methods = [planned(PAPER, plan.steps, plan.every, options) for options in grid]
        for log, task, method in product(range(plan.logs), plan.tasks, methods):
            yield self.job(task, Setting.of(find_task(task)), log, plan.seeds, method)

    def summary(self, directory: Path) -> Summary:
        lines = chosen(self.some_results(directory))
        shown = terminal_table("λ₁, λ₂, learning rate → root mean squared error", _HEADINGS, lines)
        return Summary(shown, {"tuning.md": markdown_table(_HEADINGS, lines)})

    def figures(self, directory: Path) -> "dict[str, Figure]":
        return {"tuning": heat_maps(self.results(directory))}


def chosen(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The lines of the table: a task, and for each way of choosing the combination with its error."""
    tasks = tasks_of(rows)
    runs = grouped(rows, lambda row: (row["task"], combination(row), row["log"]))
    combinations = sorted({combination(row) for row in rows})

    def error(task: str, one: Combination, logs: Sequence[int]) -> float:
        return error_at_the_end(run for log in logs for run in runs.get((task, one, log), ()))

    def loss(task: str, one: Combination, log: int) -> float:
        of_runs = [held_out_loss(run) for run in runs.get((task, one, log), ())]
        return float(np.mean(of_runs)) if of_runs else np.nan

    lines = []
    for task in tasks:
        logs = sorted({row["log"] for row in rows if row["task"] == task})
        logs = [log for log in logs if all((task, one, log) in runs for one in combinations)]  # finished ones
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


def combination(row: Row) -> Combination:
    """The hyperparameters of a run."""
    options = json.loads(row["options"])
    return options["ridge"], options["mass_weight"], options["learning_rate"]


def held_out_loss(row: Row) -> float:
    """The loss on held-out episodes; NaN if the run diverged."""
    return json.loads(row["diagnostics"] or "{}").get("held_out_loss", np.nan)


def _log_mean(errors: Sequence[float]) -> float:
    return float(np.mean(np.log(errors)))


def _smallest(measured: Mapping[Combination, float]) -> Combination | None:
    return min((one for one in measured if np.isfinite(measured[one])), key=measured.__getitem__, default=None)


def _cell(ways: Sequence[Combination | None], errors: Sequence[float]) -> str:
    """The choice, if it is the same for every log, and the error on these logs."""
    different = set(ways)
    if None in different or not errors:
        return "–"
    if np.isnan(errors).any():
        return f"diverges on {np.isnan(errors).sum()} of {len(errors)} logs"
    (first, *others) = sorted(one for one in different if one)
    what = f"{len(different)} different" if others else f"{first[0]:g}, {first[1]:g}, {first[2]:g}"
    return f"{what} → {np.sqrt(np.mean(np.square(errors))):.3g}"


def heat_maps(rows: Iterable[Row]) -> "Figure":
    """Means over tasks by λ₁ and λ₂, a panel for each learning rate: the error above, the held-out loss below."""
    from matplotlib.figure import Figure

    from average_dice.experiments.plotting import mean_over_tasks

    cells = grouped(rows, combination)
    ridges, weights, rates = (sorted(set(values)) for values in zip(*cells, strict=True))
    figure = Figure(figsize=(2.1 * len(rates) + 1, 4.4), layout="constrained")
    grid = figure.subplots(2, len(rates), squeeze=False)
    measures: tuple[tuple[str, Callable[[list[Row]], float]], ...] = (
        ("log₁₀ RMSE", lambda cell: mean_over_tasks(cell, _log_error)),
        ("log₁₀ held-out loss", lambda cell: mean_over_tasks(cell, _log_loss)),
    )
    for (name, measure), line in zip(measures, grid, strict=True):
        maps = np.full((len(rates), len(ridges), len(weights)), np.nan)
        for (ridge, weight, rate), cell in cells.items():
            maps[rates.index(rate), ridges.index(ridge), weights.index(weight)] = measure(cell)
        known = maps[np.isfinite(maps)] if np.isfinite(maps).any() else np.zeros(1)
        for rate, axes, values in zip(rates, line, maps, strict=True):
            image = axes.imshow(values, vmin=known.min(), vmax=known.max(), cmap="viridis_r")
            axes.grid(visible=False)
            axes.set_xticks(range(len(weights)), [f"{x:g}" for x in weights])
            axes.set_yticks(range(len(ridges)), [f"{x:g}" for x in ridges])
            axes.set_title(f"learning rate {rate:g}")
            axes.set_xlabel("λ₂")
        line[0].set_ylabel("λ₁")
        figure.colorbar(image, ax=line, label=name)
    return figure


def _log_error(runs: list[Row]) -> float:
    """NaN if a run has no value: a combination that diverges must not seem good."""
    return float(np.log10(error_at_the_end(runs)))


def _log_loss(runs: list[Row]) -> float:
    return float(np.log10(np.mean([held_out_loss(row) for row in runs])))


TUNING = Tuning()
