"""trust: is the verdict right? Coverage of the intervals and errors by verdict, on tasks with a known truth.

Verdicts are recomputed from the stored inputs, by the current rules. Intervals that miss the truth by less than a
thousandth of |J| are counted separately: if every reward is 1, J is at its bound and no interval reaches it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from average_dice.estimators import RECOMMENDED, Estimate, Interval
from average_dice.experiments.base import Experiment, Plan, Summary
from average_dice.experiments.jobs import AXES, Job, Row, settings_along
from average_dice.experiments.measurements import BOOTSTRAP, planned
from average_dice.experiments.ranking import UNSEEN_TASKS
from average_dice.experiments.summaries import RELATIVE_FLOOR, markdown_table, terminal_table
from average_dice.inference.diagnostics import Diagnostics, Heavy
from average_dice.inference.verdict import LEVELS, Verdict, judge
from average_dice.tasks import find_task

_HEADINGS = (
    "tasks",
    "verdict",
    "cases",
    "95 % interval contains the truth",
    "or misses by < 0.1 % of J",
    "median error / J",
    "ninth decile",
)


@dataclass(frozen=True)
class TrustPlan(Plan):
    """The recommended estimator with its interval from `bootstrap` resamples, at every setting of `axes`."""

    tasks: tuple[str, ...]
    logs: int
    bootstrap: int
    axes: tuple[str, ...] = AXES


class Trust(Experiment[TrustPlan]):
    """Intervals and verdicts of the recommended estimator where the truth is known."""

    name = "trust"
    description = "Intervals and verdicts of the recommended estimator, at the settings of robustness."
    plan_type = TrustPlan

    def jobs(self, plan: TrustPlan) -> Iterator[Job]:
        method = planned(RECOMMENDED, options={BOOTSTRAP: float(plan.bootstrap)})
        for log, task in product(range(plan.logs), plan.tasks):
            for setting in settings_along(plan.axes, find_task(task)):
                yield self.job(task, setting, log, 1, method)

    def summary(self, directory: Path) -> Summary:
        found = by_verdict(self.some_results(directory))
        lines = [_cells(line) for line in found]
        return Summary(
            terminal_table("Verdicts where the truth is known", _HEADINGS, lines),
            {
                "trust.md": markdown_table(_HEADINGS, lines),
                "trust_table.json": json.dumps([asdict(line) for line in found], indent=2) + "\n",
            },
        )


@dataclass(frozen=True)
class VerdictLine:
    """The cases with one verdict: their number, the coverage of their intervals, and their errors."""

    tasks: str
    verdict: str
    cases: int
    contained: float  # the share of intervals that contain the truth
    nearly: float  # or miss it by less than a thousandth of |J|
    median_error: float  # relative to |J|
    worst_tenth: float  # the ninth decile of the same


def by_verdict(rows: Sequence[Row]) -> list[VerdictLine]:
    """The lines of the table: all tasks together, then the tasks that were not used to choose the rules."""
    lines = []
    unseen = [row for row in rows if row["task"] in UNSEEN_TASKS]
    for name, some in (("all tasks", rows), (", ".join(sorted(UNSEEN_TASKS)), unseen)):
        for level in LEVELS:
            cases = [row for row in some if verdict_of(row).level == level]
            if cases:
                lines.append(_line(name, level, cases))
    return lines


def verdict_of(row: Row) -> Verdict:
    """The verdict by today's rules, from the stored inputs."""
    found: dict[str, Any] = json.loads(row["diagnostics"])
    heaviest = tuple(Heavy(**one) for one in found["log"].pop("heaviest"))
    for name in ("weights", "by_step"):
        found["log"][name] = tuple(found["log"][name])
    interval = None if found["lower"] is None else Interval(found["lower"], found["upper"], 0.95, "as stored")
    estimate = Estimate(row["value"], interval, diagnostics=found["fit"])
    return judge(estimate, Diagnostics(**found["log"], heaviest=heaviest), found["episodes"])


def _line(tasks: str, level: str, cases: list[Row]) -> VerdictLine:
    misses = np.array([_miss(row) for row in cases])
    errors = np.array([abs(row["error"]) / abs(row["truth"]) for row in cases])
    return VerdictLine(
        tasks,
        level,
        len(cases),
        float(np.mean(misses == 0)),
        float(np.mean(misses <= RELATIVE_FLOOR)),
        float(np.median(errors)),
        float(np.quantile(errors, 0.9)),
    )


def _miss(row: Row) -> float:
    """The distance of the truth from the interval, relative to |J|; infinite without an interval."""
    found = json.loads(row["diagnostics"])
    if found["lower"] is None:
        return np.inf
    return float(max(found["lower"] - row["truth"], row["truth"] - found["upper"], 0.0) / abs(row["truth"]))


def _cells(line: VerdictLine) -> tuple[str, ...]:
    return (
        line.tasks,
        line.verdict,
        str(line.cases),
        f"{100 * line.contained:.0f} %",
        f"{100 * line.nearly:.0f} %",
        f"{100 * line.median_error:.2g} %",
        f"{100 * line.worst_tenth:.2g} %",
    )


TRUST = Trust()
