"""What the figures of experiments share. Only this module and `Analysis.figures` import Matplotlib.

Which estimators are drawn, and in which colours, is in the registry of estimators.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from average_dice.estimators import RECOMMENDED, REGISTRY
from average_dice.experiments.base import Analysis
from average_dice.experiments.jobs import PAPER, Row
from average_dice.experiments.summaries import grouped, tasks_of
from average_dice.files import written_whole

mpl.use("Agg")
STYLE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.hashsalt": "average-dice",  # the same rows give the same file
}
# For estimators whose entry in the registry names no colour.
PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#72b7b2", "#eeca3b", "#e45756", "#79706e", "#ff9da6")
FLOOR = 1e-9  # smaller squared errors are drawn here: a logarithmic axis has no zero
AXIS_NAMES = {
    "discount": "discount γ",
    "transitions": "transitions",
    "max_steps": "steps until truncation",
    "noise": "noise of the behaviour policy",
}


def draw(analysis: Analysis, directory: Path) -> list[Path]:
    """Draws the figures of an analysis into the folder and returns their paths."""
    with mpl.rc_context(STYLE):
        paths = []
        for name, figure in analysis.figures(directory).items():
            paths.append(directory / f"{name}.svg")
            with written_whole(paths[-1]) as temporary:
                figure.savefig(temporary, format="svg", bbox_inches="tight", metadata={"Date": None})
    return paths


def drawn(rows: Iterable[Row]) -> list[str]:
    """The estimators with a learning curve, and the closed forms that the registry marks, in the registry's order."""
    present, trained = set(), set()
    for row in rows:
        present.add(row["estimator"])
        if row["curve_step"]:
            trained.add(row["estimator"])
    return [name for name, entry in REGISTRY.items() if name in trained or (name in present and entry.in_figures)]


def colour_of(estimator: str) -> str:
    """That of the registry; otherwise one of the palette, by the position in the registry."""
    without = [name for name, entry in REGISTRY.items() if entry.colour is None]
    return REGISTRY[estimator].colour or PALETTE[without.index(estimator) % len(PALETTE)]


def is_thick(estimator: str) -> bool:
    """The paper's method and the recommended one stand out."""
    return estimator in (PAPER, RECOMMENDED)


def labels_of(rows: list[Row]) -> dict[str, str]:
    """Each method with the number of its logs, and the number of runs without a value, which are not drawn."""
    labels = {}
    for estimator, runs in grouped(rows, lambda row: row["estimator"]).items():
        number, missing = len({row["log"] for row in runs}), sum(row["value"] is None for row in runs)
        name = f"{estimator} ★" if estimator == RECOMMENDED else estimator
        labels[estimator] = f"{name} ({number} log{'s' if number > 1 else ''}"
        labels[estimator] += f", {missing} of {len(runs)} runs failed)" if missing else ")"
    return labels


def learning_curve(axes: Axes, runs: list[Row], name: str, colour: Any) -> None:
    """Squared errors against steps: the median over runs, with quartiles."""
    with_curves = [row for row in runs if row["curve_step"]]  # a run that diverged has no curve
    if not with_curves:
        return
    steps = np.array(max((row["curve_step"] for row in with_curves), key=len))
    curves = np.array([_to_the_end(row, len(steps)) for row in with_curves], float)
    known = np.isfinite(curves).any(axis=0)  # self-normalised values may not exist before the first step
    if not known.any():
        return
    steps, errors = steps[known], np.maximum((curves[:, known] - runs[0]["truth"]) ** 2, FLOOR)
    low, middle, high = np.nanquantile(errors, (0.25, 0.5, 0.75), axis=0)
    axes.plot(steps, middle, lw=2.0 if is_thick(runs[0]["estimator"]) else 1.2, color=colour, label=name)
    axes.fill_between(steps, low, high, color=colour, alpha=0.12, lw=0)


def _to_the_end(row: Row, length: int) -> list[float]:
    """After early stopping, the curve stays at the value that was kept."""
    return [*row["curve_value"], *[row["value"]] * (length - len(row["curve_value"]))]


def panels(rows: list[Row], panel: Callable[[Axes, list[Row]], None], x: str, y: str) -> Figure:
    """One panel for each task."""
    tasks = tasks_of(rows)
    columns = min(4, len(tasks))
    lines = -(-len(tasks) // columns)
    figure = Figure(figsize=(2.7 * columns, 2.3 * lines + 0.8), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, task in zip(grid.flat, tasks, strict=False):
        panel(axes, [row for row in rows if row["task"] == task])
        axes.set_yscale("log")
        axes.set_title(task)
        axes.set_xlabel(x)
    for axes in grid.flat[len(tasks) :]:
        axes.set_axis_off()
    for line in grid:
        line[0].set_ylabel(y)
    legend(figure, grid.flat)
    return figure


def legend(figure: Figure, all_axes: Iterable[Axes]) -> None:
    """One legend below all panels; none if nothing is drawn."""
    entries: dict[str, Any] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=5, frameon=False)


def mean_over_tasks(cell: list[Row], measure: Callable[[list[Row]], float]) -> float:
    """The mean over tasks of a measure of the task's runs."""
    return float(np.mean([measure(runs) for runs in grouped(cell, lambda row: row["task"]).values()]))
