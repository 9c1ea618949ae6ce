"""robustness: every method along one axis at a time: discount, transitions, truncation, noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from average_dice.experiments.base import Experiment
from average_dice.experiments.jobs import AXES, Job, Row, Setting, settings_along
from average_dice.experiments.main import MainPlan, jobs_of_every_method
from average_dice.experiments.summaries import beside, grouped, rmse, tasks_of
from average_dice.tasks import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RobustnessPlan(MainPlan):
    """The plan of main at every setting of the `axes`."""

    axes: tuple[str, ...] = AXES

    def settings(self, task: Task) -> list[Setting]:
        return settings_along(self.axes, task)


class Robustness(Experiment[RobustnessPlan]):
    """Every method along one axis at a time: discount, transitions, steps until truncation, noise."""

    name = "robustness"
    description = "Every method along discount, transitions, steps until truncation and noise, one at a time."
    plan_type = RobustnessPlan

    def jobs(self, plan: RobustnessPlan) -> Iterator[Job]:
        return jobs_of_every_method(self, plan)

    def figures(self, directory: Path) -> "dict[str, Figure]":
        return {"robustness": error_along_axes(self.results(directory))}


def error_along_axes(rows: list[Row]) -> "Figure":
    """Root mean squared errors along each axis, one row of panels for each task."""
    from matplotlib.figure import Figure

    from average_dice.experiments import plotting

    labels, estimators, tasks = plotting.labels_of(rows), plotting.drawn(rows), tasks_of(rows)
    figure = Figure(figsize=(10, 1.9 * len(tasks) + 0.6), layout="constrained")
    grid = figure.subplots(len(tasks), len(AXES), squeeze=False)

    def panel(axes: "Axes", rows: list[Row], axis: str) -> None:
        places = sorted({row[axis] for row in rows})
        cells = grouped(rows, lambda row: (row["estimator"], row[axis]))
        for estimator in estimators:
            errors = [rmse(cells.get((estimator, x), [])) for x in places]
            found = [(place, error) for place, error in enumerate(errors) if np.isfinite(error)]
            if found:
                xs, ys = zip(*found, strict=True)
                width = 2.0 if plotting.is_thick(estimator) else 1.0
                style: Any = {"color": plotting.colour_of(estimator), "lw": width, "ms": 3, "label": labels[estimator]}
                axes.plot(xs, np.maximum(ys, plotting.FLOOR**0.5), "o-", **style)
        axes.set_xticks(range(len(places)), [f"{x:g}" for x in places])
        axes.set_yscale("log")
        axes.set_xlabel(plotting.AXIS_NAMES[axis])

    for task, line in zip(tasks, grid, strict=True):
        of_task = [row for row in rows if row["task"] == task]
        for axis, axes in zip(AXES, line, strict=True):
            panel(axes, beside(of_task, axis), axis)
        line[0].set_ylabel(f"{task}\nRMSE")
    plotting.legend(figure, grid.flat)
    return figure


ROBUSTNESS = Robustness()
