"""main: every method at γ = 0.95 on every task, and its squared error against training steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY
from average_dice.experiments.base import Experiment, Plan
from average_dice.experiments.jobs import Job, Row, Setting
from average_dice.experiments.measurements import planned
from average_dice.experiments.summaries import grouped
from average_dice.tasks import Task, find_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class MainPlan(Plan):
    """Closed forms on `logs` logs of each task; trained methods on the first `trained_logs`, with `seeds` seeds each.

    `steps`: the training length of each method, with a checkpoint of its learning curve after `every` steps. A method
    that trains and has no steps is left out.
    """

    tasks: tuple[str, ...]
    estimators: tuple[str, ...]
    logs: int
    trained_logs: int
    seeds: int
    every: int
    steps: Mapping[str, int] = field(default_factory=dict)

    def settings(self, task: Task) -> list[Setting]:
        """The settings of a task at which every method is fitted."""
        return [Setting.of(task)]

    def check(self) -> None:
        if unused := sorted(set(self.steps) - set(self.estimators)):
            raise SettingError(f"steps of {', '.join(unused)}, which is not among the estimators.")


class Main(Experiment[MainPlan]):
    """Every method at one discount; methods that train with their learning curves."""

    name = "main"
    description = "Every method at γ = 0.95: error against training steps."
    plan_type = MainPlan

    def jobs(self, plan: MainPlan) -> Iterator[Job]:
        return jobs_of_every_method(self, plan)

    def figures(self, directory: Path) -> "dict[str, Figure]":
        return {"main": error_against_steps(self.results(directory))}


@dataclass(frozen=True)
class ReleasedPlan(MainPlan):
    """The same sizes on other logs."""

    def settings(self, task: Task) -> list[Setting]:
        return [Setting.as_released(task)]


class Released(Main):
    """The main experiment on logs collected as by the authors' released code."""

    name = "released"
    description = "The same on logs as the authors' released code collects them: full episodes, twice the deviation."
    plan_type = ReleasedPlan

    def figures(self, directory: Path) -> "dict[str, Figure]":
        return {"released": error_against_steps(self.results(directory))}


def jobs_of_every_method(experiment: Experiment[Any], plan: MainPlan) -> Iterator[Job]:
    """For each log, one job for all closed forms, and one for each method that trains."""
    closed = tuple(planned(name) for name in plan.estimators if not REGISTRY[name].make().trains)
    named = (name for name in plan.estimators if name in plan.steps)
    longest_first = sorted(named, key=lambda name: -plan.steps[name])  # last, all workers would wait for it
    trained = [planned(name, plan.steps[name], plan.every) for name in longest_first]
    for log, task in product(range(max(plan.logs, plan.trained_logs)), plan.tasks):
        for setting in plan.settings(find_task(task)):
            if log < plan.logs and closed:
                yield experiment.job(task, setting, log, 1, *closed)
            if log < plan.trained_logs:
                for method in trained:
                    yield experiment.job(task, setting, log, plan.seeds, method)


def error_against_steps(rows: list[Row]) -> "Figure":
    """Squared errors against training steps, one panel for each task: medians over runs, with quartiles.

    Dashed lines are closed forms. The axis of steps is logarithmic: some methods train ten times as long as others.
    """
    from average_dice.experiments import plotting

    labels = plotting.labels_of(rows)
    estimators = plotting.drawn(rows)
    checkpoints = [step for row in rows for step in row["curve_step"] or () if step] or [1, 10]

    def panel(axes: "Axes", rows: list[Row]) -> None:
        by_estimator = grouped(rows, lambda row: row["estimator"])
        for estimator in estimators:
            runs = by_estimator.get(estimator, [])
            colour = plotting.colour_of(estimator)
            if any(row["curve_step"] for row in runs):
                plotting.learning_curve(axes, runs, labels[estimator], colour)
            elif errors := [row["error"] ** 2 for row in runs if row["value"] is not None]:
                level = max(float(np.median(errors)), plotting.FLOOR)
                width = 2.0 if plotting.is_thick(estimator) else 1.0
                axes.axhline(level, color=colour, ls="--", lw=width, label=labels[estimator])
        axes.set_xscale("log")
        axes.set_xlim(min(checkpoints), max(checkpoints))

    return plotting.panels(rows, panel, "training steps", "squared error of J(π)")


MAIN = Main()
RELEASED = Released()
