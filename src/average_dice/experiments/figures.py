"""The figures of the experiments, from the store alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from average_dice.estimators import RECOMMENDED
from average_dice.experiments.plans import AXES
from average_dice.experiments.summaries import (
    RELATIVE_FLOOR,
    Row,
    beside,
    error_at_the_end,
    grouped,
    results,
    rmse,
    tasks_of,
)
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
COLOURS = {
    "average-dice-paper": "#d62728",
    "average-dice-neural": "#8c1515",
    "average-dice-features": "#ff7f50",
    "average-dice-dr": "#e377c2",
    "average-dice-blend": "#0b6623",
    "td": "black",
    "sr-dice": "#ff9900",
    "cop-td": "#1f77b4",
    "best-dice": "#2ca02c",
    "dual-dice": "#9467bd",
    "gen-dice": "#8c564b",
    "gradient-dice": "#17becf",
    "mwl": "#bcbd22",
    "mql": "#ff69b4",
    "fqe": "#3b5b92",
    "wpdis": "#5f9ea0",
    "average-reward": "#aaaaaa",
    "behaviour-return": "#cc99ff",
}
THICK = ("average-dice-paper", RECOMMENDED)
# Without curves, so they are level lines.
LEVEL_LINES = ("average-reward", "behaviour-return", "wpdis", "fqe", "average-dice-features", RECOMMENDED)
LINES = (
    "average-reward",
    "behaviour-return",
    "wpdis",
    "fqe",
    "td",
    "average-dice-paper",
    "average-dice-features",
    RECOMMENDED,
)
AXIS_NAMES = {
    "discount": "discount γ",
    "transitions": "transitions",
    "max_steps": "length of episodes",
    "noise": "noise of the behaviour policy",
}


def draw(directory: Path, experiment: str) -> list[Path]:
    """Draws the figures of an experiment into the folder and returns their paths; of `comparison`, from robustness."""
    rows = results(directory, "robustness" if experiment == "comparison" else experiment)
    with mpl.rc_context(STYLE):
        figures = FIGURES[experiment](rows)
        paths = []
        for name, figure in figures.items():
            paths.append(directory / f"{name}.svg")
            with written_whole(paths[-1]) as temporary:
                figure.savefig(temporary, format="svg", bbox_inches="tight", metadata={"Date": None})
    return paths


def main_figure(rows: list[Row]) -> dict[str, Figure]:
    """Squared error against training steps, one panel a task: medians over runs, with quartiles.

    All that trains, and the levels of some closed forms. Some train ten times as long as others: the axis of steps is
    one of logarithms from the first look on.
    """
    labels = _labels(rows)
    looks = [step for row in rows for step in row["curve_step"] or () if step] or [1, 10]

    def panel(axes: Axes, rows: list[Row]) -> None:
        for estimator, runs in grouped(rows, lambda row: row["estimator"]).items():
            if any(row["curve_step"] for row in runs):
                _curve(axes, runs, labels[estimator], COLOURS.get(estimator))
            elif estimator in LEVEL_LINES:
                level = float(np.median([row["error"] ** 2 for row in runs if row["value"] is not None] or [np.nan]))
                width = 2.0 if estimator in THICK else 1.0
                axes.axhline(max(level, FLOOR), color=COLOURS[estimator], ls="--", lw=width, label=labels[estimator])
        axes.set_xscale("log")
        axes.set_xlim(min(looks), max(looks))

    return {"main": _panels(rows, panel, "training steps", "squared error of J(π)")}


def ablation_figure(rows: list[Row]) -> dict[str, Figure]:
    """The paper's method with and without the regulariser of the mass."""
    weights = sorted({json.loads(row["options"])["mass_weight"] for row in rows})

    def panel(axes: Axes, rows: list[Row]) -> None:
        for weight, runs in grouped(rows, lambda row: json.loads(row["options"])["mass_weight"]).items():
            colour = mpl.colormaps["coolwarm"](weights.index(weight) / max(len(weights) - 1, 1))
            _curve(axes, runs, f"λ₂ = {weight:g}", colour)

    return {"ablation": _panels(rows, panel, "training steps", "squared error of J(π)")}


def robustness_figure(rows: list[Row]) -> dict[str, Figure]:
    """Root mean squared error along each axis, a row of panels for each task: all that trains, some closed forms."""
    labels = _labels(rows)
    trained = sorted({row["estimator"] for row in rows if row["curve_step"]} - set(LINES))
    tasks = tasks_of(rows)
    figure = Figure(figsize=(10, 1.9 * len(tasks) + 0.6), layout="constrained")
    grid = figure.subplots(len(tasks), len(AXES), squeeze=False)
    for task, line in zip(tasks, grid, strict=True):
        for axis, axes in zip(AXES, line, strict=True):
            along = beside((row for row in rows if row["task"] == task), axis)
            grid_values = sorted({row[axis] for row in along})
            cells = grouped(along, lambda row: (row["estimator"], row[axis]))  # noqa: B023
            for estimator in (*LINES, *trained):
                heights = [max(rmse(cells.get((estimator, x), [])), FLOOR**0.5) for x in grid_values]
                if not np.isnan(heights).all():
                    style: Any = {"color": COLOURS.get(estimator), "lw": 2.0 if estimator in THICK else 1.0}
                    axes.plot(range(len(grid_values)), heights, "o-", ms=3, label=labels[estimator], **style)
            axes.set_xticks(range(len(grid_values)), [f"{x:g}" for x in grid_values])
            axes.set_yscale("log")
            axes.set_xlabel(AXIS_NAMES[axis])
        line[0].set_ylabel(f"{task}\nRMSE")
    _legend(figure, grid.flat)
    return {"robustness": figure}


def tuning_figure(rows: list[Row]) -> dict[str, Figure]:
    """Means over tasks by λ₁ and λ₂, a panel for each learning rate: above the error, below the held-out loss."""
    for row in rows:
        row["grid"] = json.loads(row["options"])
        row["held_out_loss"] = json.loads(row["diagnostics"] or "{}").get("held_out_loss", np.nan)
    rates, ridges, weights = (
        sorted({row["grid"][name] for row in rows}) for name in ("learning_rate", "ridge", "mass_weight")
    )
    figure = Figure(figsize=(2.1 * len(rates) + 1, 4.4), layout="constrained")
    grid = figure.subplots(2, len(rates), squeeze=False)
    measures: tuple[tuple[str, Callable[[list[Row]], float]], ...] = (
        ("log₁₀ RMSE", lambda cell: _mean_over_tasks(cell, _log_error)),
        ("log₁₀ held-out loss", lambda cell: _mean_over_tasks(cell, _log_loss)),
    )
    for (name, measure), line in zip(measures, grid, strict=True):
        maps = np.full((len(rates), len(ridges), len(weights)), np.nan)
        cells = grouped(rows, lambda row: tuple(row["grid"][n] for n in ("learning_rate", "ridge", "mass_weight")))
        for (rate, ridge, weight), cell in cells.items():
            maps[rates.index(rate), ridges.index(ridge), weights.index(weight)] = measure(cell)
        known = maps[np.isfinite(maps)] if np.isfinite(maps).any() else np.zeros(1)
        for rate, axes, values in zip(rates, line, maps, strict=True):
            image = axes.imshow(values, vmin=known.min(), vmax=known.max(), cmap="viridis_r")
            axes.grid(visible=False)
            axes.set_xticks(range(len(weights)), [f"{x:g}" for x in weights])
            axes.set_yticks(range(len(ridges)), [f"{x:g}" for x in ridges])
            axes.set_title(f"rate {rate:g}")
            axes.set_xlabel("λ₂")
        line[0].set_ylabel("λ₁")
        figure.colorbar(image, ax=line, label=name)
    return {"tuning": figure}


def comparison_figure(rows: list[Row]) -> dict[str, Figure]:
    """The paper's method, TD and the recommended estimator along γ and length: geometric means over tasks.

    Errors are relative to |J|. Lengths differ between tasks: their first to last stand above each other.
    """
    labels = _labels(rows)
    figure = Figure(figsize=(8, 3), layout="constrained")
    panels = figure.subplots(1, 2)
    for axis, axes in zip(("discount", "max_steps"), panels, strict=True):
        along = beside(rows, axis)
        grids = {task: sorted({row[axis] for row in along if row["task"] == task}) for task in tasks_of(along)}
        for row in along:
            row["place"] = grids[row["task"]].index(row[axis])
        for estimator in ("average-dice-paper", "td", "average-dice-features", RECOMMENDED):
            cells = grouped((row for row in along if row["estimator"] == estimator), lambda row: row["place"])
            heights = {place: _mean_over_tasks(cell, _log_relative) for place, cell in sorted(cells.items())}
            if heights:
                means = np.exp(list(heights.values()))
                axes.plot(list(heights), means, "o-", ms=3, color=COLOURS[estimator], label=labels[estimator])
        ticks = [sorted({grid[place] for grid in grids.values() if place < len(grid)}) for place in _places(grids)]
        axes.set_xticks(range(len(ticks)), ["/".join(f"{x:g}" for x in tick) for tick in ticks])
        axes.set_xlabel(AXIS_NAMES[axis])
        axes.set_yscale("log")
    panels[0].set_ylabel("RMSE over |J|, geometric mean over tasks")
    _legend(figure, panels)
    return {"comparison": figure}


FIGURES: dict[str, Callable[[list[Row]], dict[str, Figure]]] = {
    "main": main_figure,
    "robustness": robustness_figure,
    "tuning": tuning_figure,
    "ablation": ablation_figure,
    "comparison": comparison_figure,
}

FLOOR = 1e-9  # squared errors below this are drawn here: an axis of logarithms has no zero


def _labels(rows: list[Row]) -> dict[str, str]:
    """Each method with the number of its logs, and how many of its runs have no value and are not drawn."""
    labels = {}
    for estimator, runs in grouped(rows, lambda row: row["estimator"]).items():
        number, missing = len({row["log"] for row in runs}), sum(row["value"] is None for row in runs)
        name = f"{estimator} ★" if estimator == RECOMMENDED else estimator
        labels[estimator] = f"{name} ({number} log{'s' if number > 1 else ''}"
        labels[estimator] += f", {missing} of {len(runs)} runs failed)" if missing else ")"
    return labels


def _curve(axes: Axes, runs: list[Row], name: str, colour: Any) -> None:
    with_curves = [row for row in runs if row["curve_step"]]  # a run that diverged has none
    if not with_curves:
        return
    steps = np.array(max((row["curve_step"] for row in with_curves), key=len))
    curves = np.array([_to_the_end(row, len(steps)) for row in with_curves], float)
    known = np.isfinite(curves).any(axis=0)  # self-normalised values may not exist before the first step
    steps, errors = steps[known], np.maximum((curves[:, known] - runs[0]["truth"]) ** 2, FLOOR)
    low, middle, high = np.nanquantile(errors, (0.25, 0.5, 0.75), axis=0)
    axes.plot(steps, middle, lw=2.0 if runs[0]["estimator"] in THICK else 1.2, color=colour, label=name)
    axes.fill_between(steps, low, high, color=colour, alpha=0.12, lw=0)


def _to_the_end(row: Row, length: int) -> list[float]:
    """A curve that stopped early stays at what was kept."""
    return [*row["curve_value"], *[row["value"]] * (length - len(row["curve_value"]))]


def _panels(rows: list[Row], panel: Callable[[Axes, list[Row]], None], x: str, y: str) -> Figure:
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
    _legend(figure, grid.flat)
    return figure


def _legend(figure: Figure, panels: Any) -> None:
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=5, frameon=False)


def _mean_over_tasks(cell: list[Row], measure: Callable[[list[Row]], float]) -> float:
    return float(np.mean([measure(runs) for runs in grouped(cell, lambda row: row["task"]).values()]))


def _places(grids: dict[str, list[Any]]) -> range:
    return range(max((len(grid) for grid in grids.values()), default=0))


def _log_relative(runs: list[Row]) -> float:
    return float(np.log(max(rmse(runs) / abs(runs[0]["truth"]), RELATIVE_FLOOR)))


def _log_error(runs: list[Row]) -> float:
    """NaN where a run has no value: who falls must not look good by it."""
    return float(np.log10(error_at_the_end(runs)))


def _log_loss(runs: list[Row]) -> float:
    return float(np.log10(np.mean([row["held_out_loss"] for row in runs])))
