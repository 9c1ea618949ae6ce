"""Is the verdict right? On tasks whose truth is known: how often intervals contain it, and the errors, by verdict.

Verdicts are given anew from what is stored, by the rules as they are now. Intervals that miss the truth by less than a
thousandth of |J| are counted apart: where every reward is 1, J is at its bound and no interval reaches beyond.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from average_dice.errors import SettingError
from average_dice.estimators import Estimate
from average_dice.experiments.ranking import UNSEEN_TASKS
from average_dice.experiments.summaries import RELATIVE_FLOOR, Row, results
from average_dice.files import write_text_whole
from average_dice.inference.diagnostics import Diagnostics, Heavy
from average_dice.inference.verdict import LEVELS, Verdict, judge

EVERYWHERE = "all tasks"


@dataclass(frozen=True)
class Line:
    """Of the cases with this verdict: how many, the share whose interval contains the truth, or nearly, the errors."""

    tasks: str
    verdict: str
    cases: int
    contained: float
    nearly: float  # contained, or missed by less than a thousandth of |J|
    median_error: float  # relative to |J|
    worst_tenth: float  # the ninth decile of the same


def judged(directory: Path) -> list[Line]:
    """The lines of the table: all tasks together, then those that were kept apart while the rules were chosen."""
    rows = results(directory, "trust")
    if not rows:
        raise SettingError(f"{directory}: no results of trust there yet.")
    lines = []
    apart = [row for row in rows if row["task"] in UNSEEN_TASKS]
    for name, some in ((EVERYWHERE, rows), (", ".join(sorted(UNSEEN_TASKS)), apart)):
        for level in LEVELS:
            cases = [row for row in some if verdict_of(row).level == level]
            if cases:
                lines.append(_line(name, level, cases))
    return lines


def verdict_of(row: Row) -> Verdict:
    """By what is stored of the evaluation."""
    found: dict[str, Any] = json.loads(row["diagnostics"])
    heaviest = tuple(Heavy(**one) for one in found["log"].pop("heaviest"))
    for name in ("weights", "by_step"):
        found["log"][name] = tuple(found["log"][name])
    estimate = Estimate(row["value"], found["lower"], found["upper"], 0.95, diagnostics=found["fit"])
    return judge(estimate, Diagnostics(**found["log"], heaviest=heaviest), found["episodes"])


def as_table(lines: Sequence[Line]) -> Table:
    """For a terminal."""
    table = Table(*HEADINGS, title="Verdicts where the truth is known", title_justify="left")
    for line in lines:
        table.add_row(*_cells(line))
    return table


def write_trust(lines: Sequence[Line], directory: Path) -> Path:
    """Writes `trust.md` and `trust_table.json`."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(_cells(line) for line in lines)]
    write_text_whole(directory / "trust.md", "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n")
    write_text_whole(directory / "trust_table.json", json.dumps([asdict(line) for line in lines], indent=2) + "\n")
    return directory / "trust.md"


HEADINGS = (
    "tasks",
    "verdict",
    "cases",
    "95 % interval contains the truth",
    "or misses by < 0.1 % of J",
    "median error / J",
    "ninth decile",
)


def _cells(line: Line) -> tuple[str, ...]:
    return (
        line.tasks,
        line.verdict,
        str(line.cases),
        f"{100 * line.contained:.0f} %",
        f"{100 * line.nearly:.0f} %",
        f"{100 * line.median_error:.2g} %",
        f"{100 * line.worst_tenth:.2g} %",
    )


def _line(tasks: str, level: str, cases: list[Row]) -> Line:
    misses = np.array([_miss(row) for row in cases])
    errors = np.array([abs(row["error"]) / abs(row["truth"]) for row in cases])
    return Line(
        tasks,
        level,
        len(cases),
        float(np.mean(misses == 0)),
        float(np.mean(misses <= RELATIVE_FLOOR)),
        float(np.median(errors)),
        float(np.quantile(errors, 0.9)),
    )


def _miss(row: Row) -> float:
    """How far the truth lies outside of the interval, relative to |J|; without an interval, infinitely far."""
    found = json.loads(row["diagnostics"])
    if found["lower"] is None:
        return np.inf
    return float(max(found["lower"] - row["truth"], row["truth"] - found["upper"], 0.0) / abs(row["truth"]))
