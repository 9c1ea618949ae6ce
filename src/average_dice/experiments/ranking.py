"""comparison: the recommended estimator against every other, on the settings of robustness.

For each task and setting, the root mean squared errors of both on their common logs; then the geometric mean of the
ratios of these errors. Its interval is Student's t over the tasks: errors on logs of one task are correlated, and a
user has another task. An error below a thousandth of |J| counts as a thousandth: some rewards make a method exact by
accident, and the truth is not known more precisely.

A method may have values on fewer than half of our logs, because few were trained or many failed. Its error on one log
can be small by luck. Such a method is compared with our error over all of our logs, which makes the ratio too large
rather than too small, and it is left out of the worst case.

The recommended estimator was developed on part of these results only. The rest is *unseen*: `UNSEEN_TASKS`, on every
task the settings of `is_unseen_setting`, and the logs from `FIRST_UNSEEN_LOG` on.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.text import Text
from scipy import stats

from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED
from average_dice.experiments.base import Analysis, Summary
from average_dice.experiments.jobs import PAPER, Row
from average_dice.experiments.robustness import ROBUSTNESS
from average_dice.experiments.summaries import (
    RELATIVE_FLOOR,
    beside,
    grouped,
    markdown_table,
    rmse,
    setting_of,
    tasks_of,
    terminal_table,
)
from average_dice.tasks import find_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNSEEN_TASKS = ("HalfCheetah-v5", "Walker2d-v5")
MUJOCO = ("Hopper-v5", "HalfCheetah-v5", "Walker2d-v5", "Ant-v5")
FIRST_UNSEEN_LOG = 5  # only earlier logs were used in development

_HEADINGS = ("estimator", "ratio", "95 %", "MuJoCo", "others", "unseen", "unseen tasks", "settings", "logs")
FAR = 3.0  # times the error of the best other method: a loss that a user would notice, by our choice
LEVEL = 0.95  # of the interval, the usual confidence level

ErrorByLog = dict[int, float]
Cell = tuple[str, float, int, int, float]  # task, discount, transitions, max_steps, noise


def is_unseen_setting(row: Row) -> bool:
    """γ = 0.9, 8,000 transitions, the second length and the second noise of the task."""
    task = find_task(row["task"])
    return (
        row["discount"] == 0.9
        or row["transitions"] == 8_000
        or row["max_steps"] == task.lengths[1]
        or row["noise"] == task.noises[1]
    )


def is_unseen(row: Row) -> bool:
    """Whether the row was not used in developing the recommended estimator."""
    return row["task"] in UNSEEN_TASKS or is_unseen_setting(row) or row["log"] >= FIRST_UNSEEN_LOG


@dataclass(frozen=True)
class Rival:
    """The error of the recommended estimator over that of another, with its interval."""

    estimator: str
    ratio: float
    lower: float
    upper: float
    mujoco: float  # the ratio on the tasks of MuJoCo
    others: float  # on all other tasks
    unseen: float  # on all unseen rows
    unseen_tasks: float
    cells: int  # tasks and settings behind it
    logs: int  # in each cell, at least


@dataclass(frozen=True)
class Ranking:
    """The other methods, the best first, and the cells where the best of them is more than `FAR` times better."""

    rivals: tuple[Rival, ...]
    far: tuple[str, ...]
    num_cells: int

    @property
    def far_share(self) -> float:
        """The share of settings where another method has less than a third of the error."""
        return len(self.far) / self.num_cells


class RecommendedAgainstOthers(Analysis):
    """The error of the recommended estimator over that of every other method."""

    name = "comparison"
    description = "The recommended estimator against every other, from the results of robustness. Runs nothing."

    def summary(self, directory: Path) -> Summary:
        found = rank(directory)
        lines = [_cells(rival) for rival in found.rivals]
        table = terminal_table(f"error of {RECOMMENDED} over that of", _HEADINGS, lines)
        far = "\n".join(["", _worst(found), "", *(f"- {line}" for line in found.far)]) + "\n"
        return Summary(
            Group(table, Text(_worst(found)), *(Text(f"  {line}", style="dim") for line in found.far)),
            {
                "comparison.md": markdown_table(_HEADINGS, lines) + far,
                "comparison.json": json.dumps(asdict(found), indent=2, ensure_ascii=False) + "\n",
            },
        )

    def figures(self, directory: Path) -> "dict[str, Figure]":
        return {"comparison": error_along_two_axes(ROBUSTNESS.results(directory))}


def rank(directory: Path) -> Ranking:
    """From the results of robustness in the folder."""
    rows = ROBUSTNESS.results(directory)
    by_name = grouped(rows, lambda row: row["estimator"])
    ours = _errors(by_name.pop(RECOMMENDED, ()))
    if not ours:
        raise SettingError(
            f"{directory}: no results of robustness with {RECOMMENDED}. "
            f"Run it first: average-dice benchmark robustness --out {shlex.quote(str(directory))}"
        )
    floors = {setting_of(row): RELATIVE_FLOOR * abs(row["truth"]) for row in rows}
    pairs = {name: _pairs(ours, _errors(found)) for name, found in by_name.items()}
    ours_unseen = _errors(row for row in rows if row["estimator"] == RECOMMENDED and is_unseen(row))
    rivals = []
    for name, found in pairs.items():
        if found:
            unseen = _pairs(ours_unseen, _errors(row for row in by_name[name] if is_unseen(row)))
            rivals.append(_rival(name, found, unseen, floors))
    far = []
    for cell in ours:
        ratios = {
            name: _ratio(found[cell], floors[cell])
            for name, found in pairs.items()
            if cell in found and not found[cell].uneven
        }
        if ratios and max(ratios.values()) > FAR:
            best = max(ratios, key=ratios.__getitem__)
            far.append(f"{_named(cell)}: {ratios[best]:.1f} times {best}")
    return Ranking(tuple(sorted(rivals, key=lambda rival: -rival.ratio)), tuple(far), len(ours))


def _rival(
    name: str, pairs: "Mapping[Cell, Pair]", unseen: "Mapping[Cell, Pair]", floors: Mapping[Cell, float]
) -> Rival:
    lower, upper = _interval(pairs, floors)
    return Rival(
        name,
        _mean_ratio(pairs, floors),
        lower,
        upper,
        mujoco=_mean_ratio({c: p for c, p in pairs.items() if c[0] in MUJOCO}, floors),
        others=_mean_ratio({c: p for c, p in pairs.items() if c[0] not in MUJOCO}, floors),
        unseen=_mean_ratio(unseen, floors),
        unseen_tasks=_mean_ratio({c: p for c, p in unseen.items() if c[0] in UNSEEN_TASKS}, floors),
        cells=len(pairs),
        logs=min(len(pair.other) for pair in pairs.values()),
    )


def _errors(rows: Iterable[Row]) -> dict[Cell, ErrorByLog]:
    """For each cell, the root mean squared error over seeds on each log that has a value."""
    runs = grouped((row for row in rows if np.isfinite(row["error"])), lambda row: (setting_of(row), row["log"]))
    found: dict[Cell, ErrorByLog] = {}
    for (cell, log), seeds in runs.items():
        found.setdefault(cell, {})[log] = float(np.sqrt(np.mean([row["error"] ** 2 for row in seeds])))
    return found


@dataclass(frozen=True, eq=False)
class Pair:
    """Our errors and those of the other method in a cell, on the same logs unless the pair is uneven."""

    mine: np.ndarray
    other: np.ndarray

    @property
    def uneven(self) -> bool:
        """Whether the two methods have values on different numbers of logs."""
        return len(self.mine) != len(self.other)


def _pairs(ours: Mapping[Cell, ErrorByLog], theirs: Mapping[Cell, ErrorByLog]) -> dict[Cell, Pair]:
    pairs = {}
    for cell in ours:
        common = sorted(set(ours[cell]) & set(theirs.get(cell, {})))
        if common:
            my_logs = common if 2 * len(common) >= len(ours[cell]) else sorted(ours[cell])
            pairs[cell] = Pair(
                np.array([ours[cell][log] for log in my_logs]),
                np.array([theirs[cell][log] for log in common]),
            )
    return pairs


def _ratio(pair: Pair, floor: float) -> float:
    """The ratio of the root mean squared errors."""
    mine, other = (max(float(np.sqrt(np.mean(errors**2))), floor) for errors in (pair.mine, pair.other))
    return mine / other


def _mean_ratio(pairs: Mapping[Cell, Pair], floors: Mapping[Cell, float]) -> float:
    logs = [np.log(_ratio(pair, floors[cell])) for cell, pair in pairs.items()]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def _interval(pairs: Mapping[Cell, Pair], floors: Mapping[Cell, float]) -> tuple[float, float]:
    """Student's t of the mean logarithm over tasks; NaN with a single task."""
    tasks = dict.fromkeys(cell[0] for cell in pairs)
    of_tasks = ({cell: pair for cell, pair in pairs.items() if cell[0] == task} for task in tasks)
    means = np.array([np.log(_mean_ratio(of_task, floors)) for of_task in of_tasks])
    if len(means) < 2:
        return float("nan"), float("nan")
    reach = stats.t.ppf(0.5 + LEVEL / 2, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return float(np.exp(means.mean() - reach)), float(np.exp(means.mean() + reach))


def _cells(rival: Rival) -> tuple[str, ...]:
    return (
        rival.estimator,
        f"{rival.ratio:.2f}",
        f"{rival.lower:.2f} to {rival.upper:.2f}",
        f"{rival.mujoco:.2f}",
        f"{rival.others:.2f}",
        f"{rival.unseen:.2f}",
        f"{rival.unseen_tasks:.2f}",
        str(rival.cells),
        str(rival.logs),
    )


def _worst(found: Ranking) -> str:
    return (
        f"More than {FAR:g} times the error of the best of them: {len(found.far)} of {found.num_cells} settings "
        f"({100 * found.far_share:.0f} %)."
    )


def _named(cell: Cell) -> str:
    task, discount, transitions, max_steps, noise = cell
    return f"{task}, γ = {discount:g}, {transitions:,} transitions, {max_steps} steps, noise {noise:g}"


def error_along_two_axes(rows: list[Row]) -> "Figure":
    """The paper's method, TD, Average-DICE on features and the recommended estimator along γ and steps.

    Errors are relative to |J|, as geometric means over tasks. Steps until truncation differ between tasks: the smallest
    of each task are drawn at one place, and so on.
    """
    from matplotlib.figure import Figure

    from average_dice.experiments import plotting

    labels = plotting.labels_of(rows)
    figure = Figure(figsize=(8, 3), layout="constrained")
    all_axes = figure.subplots(1, 2)
    for axis, axes in zip(("discount", "max_steps"), all_axes, strict=True):
        along = beside(rows, axis)
        grids = {task: sorted({row[axis] for row in along if row["task"] == task}) for task in tasks_of(along)}
        for row in along:
            row["place"] = grids[row["task"]].index(row[axis])
        for estimator in (PAPER, "td", "average-dice-features", RECOMMENDED):
            cells = grouped((row for row in along if row["estimator"] == estimator), lambda row: row["place"])
            logs = {place: plotting.mean_over_tasks(cell, _log_relative) for place, cell in sorted(cells.items())}
            heights = {place: np.exp(log) for place, log in logs.items() if np.isfinite(log)}
            if heights:
                style: Any = {"color": plotting.colour_of(estimator), "ms": 3, "label": labels[estimator]}
                axes.plot(list(heights), list(heights.values()), "o-", **style)
        num_places = max((len(grid) for grid in grids.values()), default=0)
        ticks = [sorted({grid[place] for grid in grids.values() if place < len(grid)}) for place in range(num_places)]
        axes.set_xticks(range(len(ticks)), ["/".join(f"{x:g}" for x in tick) for tick in ticks])
        axes.set_xlabel(plotting.AXIS_NAMES[axis])
        axes.set_yscale("log")
    all_axes[0].set_ylabel("RMSE over |J|, geometric mean over tasks")
    plotting.legend(figure, all_axes)
    return figure


def _log_relative(runs: list[Row]) -> float:
    return float(np.log(max(rmse(runs) / abs(runs[0]["truth"]), RELATIVE_FLOOR)))


COMPARISON = RecommendedAgainstOthers()
