"""The recommended estimator against every other, on the settings of robustness.

For each task and setting, the root mean squared error of both on the logs that both have; then the geometric mean of
their ratio. Its interval is Student's t over the tasks, since another task is what a reader will have: logs of one task
share what makes it easy or hard. An error below a thousandth of |J| counts as that: some rewards make a method exact by
accident, and the truth is not known better.

A method may have values on fewer than half of our logs: few trainings, or many failures. An error on one log can be
small by luck, so it is then set against our error over all of our logs, which is not granted that luck: the ratio is
rather too large than too small, and the method takes no part in the worst case.

While the recommended estimator was being made, only some of this was looked at. The rest is kept apart by name:
`UNSEEN_TASKS`, on every task the settings that `is_unseen_setting` knows, and the logs from `FIRST_UNSEEN_LOG` on.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text
from scipy import stats

from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED
from average_dice.experiments.summaries import RELATIVE_FLOOR, Row, grouped, results, setting_of
from average_dice.files import write_text_whole
from average_dice.tasks.task import find_task

UNSEEN_TASKS = ("HalfCheetah-v5", "Walker2d-v5")
MUJOCO = ("Hopper-v5", "HalfCheetah-v5", "Walker2d-v5", "Ant-v5")
FIRST_UNSEEN_LOG = 5

HEADINGS = ("estimator", "ratio", "95 %", "MuJoCo", "others", "unseen", "unseen tasks", "settings", "logs")
FAR = 3.0  # times the error of the best
LEVEL = 0.95

Errors = dict[int, float]  # by log
Cell = tuple[str, float, int, int, float]  # task, discount, transitions, length, noise


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
    return row["task"] in UNSEEN_TASKS or is_unseen_setting(row) or row["log"] >= FIRST_UNSEEN_LOG


@dataclass(frozen=True)
class Rival:
    """The error of the recommended estimator over that of another, with its interval, from so many cells and logs."""

    estimator: str
    ratio: float
    lower: float
    upper: float
    mujoco: float  # the same on the tasks of MuJoCo, and on the others
    others: float
    unseen: float  # on what was not looked at, and on the tasks that were not
    unseen_tasks: float
    cells: int
    logs: int  # at least


@dataclass(frozen=True)
class Comparison:
    """The rivals, the nearest first; and the cells in which the best of them is more than `FAR` times better."""

    rivals: tuple[Rival, ...]
    far: tuple[str, ...]
    num_cells: int

    @property
    def far_share(self) -> float:
        return len(self.far) / self.num_cells


def compare(directory: Path) -> Comparison:
    """From whatever results of robustness the folder has."""
    rows = results(directory, "robustness")
    by_name = grouped(rows, lambda row: row["estimator"])
    ours = _errors(by_name.pop(RECOMMENDED, ()))
    if not ours:
        raise SettingError(f"{directory}: no results of robustness with {RECOMMENDED} there. Run it first.")
    floors = {setting_of(row): RELATIVE_FLOOR * abs(row["truth"]) for row in rows}
    pairs = {name: _pairs(ours, _errors(found)) for name, found in by_name.items()}
    ours_unseen = _errors(row for row in rows if row["estimator"] == RECOMMENDED and is_unseen(row))
    rivals = []
    for name, found in pairs.items():
        if found:
            unseen = _pairs(ours_unseen, _errors(row for row in by_name[name] if is_unseen(row)))
            lower, upper = _interval(found, floors)
            rivals.append(
                Rival(
                    name,
                    _mean_ratio(found, floors),
                    lower,
                    upper,
                    mujoco=_mean_ratio({c: p for c, p in found.items() if c[0] in MUJOCO}, floors),
                    others=_mean_ratio({c: p for c, p in found.items() if c[0] not in MUJOCO}, floors),
                    unseen=_mean_ratio(unseen, floors),
                    unseen_tasks=_mean_ratio({c: p for c, p in unseen.items() if c[0] in UNSEEN_TASKS}, floors),
                    cells=len(found),
                    logs=min(len(pair.other) for pair in found.values()),
                )
            )
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
    return Comparison(tuple(sorted(rivals, key=lambda rival: -rival.ratio)), tuple(far), len(ours))


def render(found: Comparison) -> Group:
    """For a terminal."""
    table = Table(
        *HEADINGS,
        title=f"error of {RECOMMENDED} over that of",
        title_justify="left",
    )
    for rival in found.rivals:
        table.add_row(*_cells(rival))
    return Group(table, Text(_worst(found)), *(Text(f"  {line}", style="dim") for line in found.far))


def write_comparison(found: Comparison, directory: Path) -> Path:
    """Writes `comparison.md` and `comparison.json`."""
    lines = [f"| {' | '.join(HEADINGS)} |", "| --- " * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(_cells(rival)) + " |" for rival in found.rivals]
    lines += ["", _worst(found), "", *(f"- {line}" for line in found.far)]
    for name, text in (
        ("comparison.md", "\n".join(lines)),
        ("comparison.json", json.dumps(asdict(found), indent=2, ensure_ascii=False)),
    ):
        write_text_whole(directory / name, text + "\n")
    return directory / "comparison.md"


def _errors(rows: Iterable[Row]) -> dict[Cell, Errors]:
    """Of each cell, the root mean squared error over seeds on each log that has a value."""
    runs = grouped((row for row in rows if np.isfinite(row["error"])), lambda row: (setting_of(row), row["log"]))
    found: dict[Cell, Errors] = {}
    for (cell, log), seeds in runs.items():
        found.setdefault(cell, {})[log] = float(np.sqrt(np.mean([row["error"] ** 2 for row in seeds])))
    return found


@dataclass(frozen=True, eq=False)
class Pair:
    """Our errors and theirs in a cell, on the same logs unless they are uneven."""

    mine: np.ndarray
    other: np.ndarray

    @property
    def uneven(self) -> bool:
        return len(self.mine) != len(self.other)


def _pairs(ours: Mapping[Cell, Errors], theirs: Mapping[Cell, Errors]) -> dict[Cell, Pair]:
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
    """Of the root mean squared errors."""
    mine, other = (max(float(np.sqrt(np.mean(errors**2))), floor) for errors in (pair.mine, pair.other))
    return mine / other


def _mean_ratio(pairs: Mapping[Cell, Pair], floors: Mapping[Cell, float]) -> float:
    logs = [np.log(_ratio(pair, floors[cell])) for cell, pair in pairs.items()]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def _interval(pairs: Mapping[Cell, Pair], floors: Mapping[Cell, float]) -> tuple[float, float]:
    """Student's t of the logarithm over tasks; not a number with a single task."""
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


def _worst(found: Comparison) -> str:
    return (
        f"More than {FAR:g} times the error of the best of them: {len(found.far)} of {found.num_cells} settings "
        f"({100 * found.far_share:.0f} %)."
    )


def _named(cell: Cell) -> str:
    task, discount, transitions, max_steps, noise = cell
    return f"{task}, γ = {discount:g}, {transitions:,} transitions, {max_steps} steps, noise {noise:g}"
