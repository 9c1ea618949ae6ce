"""Errors and intervals on the simulated clinic: `make clinic`. It continues after an interruption.

Two parts, both into `results/clinic.parquet`, one row for each log, policy, discount and method:

- errors: the value by each method, for the four target policies;
- intervals: the recommended estimator with its interval and its verdict, on other logs. Log i has target i mod 4.

The tables go into `docs/clinic.md`, from what is stored: `python tools/clinic.py --tables` writes them without a run.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import track

from average_dice.errors import NotApplicable
from average_dice.estimators import RECOMMENDED, REGISTRY, Estimate, prepared_once
from average_dice.estimators.blend._table_critics import TableCritics
from average_dice.experiments.summaries import markdown_table
from average_dice.files import write_text_whole, written_whole
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.uncertainty import IntervalSettings, uncertainty
from average_dice.inference.verdict import judge
from average_dice.problem import Problem
from average_dice.resampling import Resample
from average_dice.testing.clinic import STATE_CODE, VITAL_SIGNS, clinic

PATIENTS, DISCOUNTS, NUM_LOGS = (500, 1_000, 2_000), (1.0, 0.99), 10
INTERVAL_PATIENTS, INTERVAL_LOGS, NUM_RESAMPLES = 1_000, 40, 100
FEWEST = 3  # logs in a cell of the table of errors
FIRST_LOGS = 2  # with errors only, before the first intervals
NICENESS = 10
ROOT = Path(__file__).parents[1]
STORE, PAGE = ROOT / "results" / "clinic.parquet", ROOT / "docs" / "clinic.md"
OBSERVED = {one.name: one for one in (VITAL_SIGNS, STATE_CODE)}
ERRORS, INTERVALS = "errors", "intervals"

TABLE_CRITICS = ("table critic", "table critic, a tenth", "table critic, hardly any")  # the blend's, by their shrinkage
METHODS = (RECOMMENDED, "fqe", "wdr", "wpdis", "average-dice-tabular", "behaviour-return")
SHARES = ("share_by_values", "share_by_products", "share_by_ratio")

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("part", "observed", "target", "estimator", "verdict")]
    + [(name, pa.int32()) for name in ("patients", "log")]
    + [(name, pa.float64()) for name in ("discount", "truth", "value", "lower", "upper", *SHARES, "seconds")]
)

Row = dict[str, object]


class Task(NamedTuple):
    """One policy on one log."""

    part: str
    observed: str
    patients: int
    discount: float
    target: str
    log: int

    @property
    def seed(self) -> int:
        """Of the log: every size and part has its own."""
        return 1_000 * self.patients + self.log + (500 if self.part == INTERVALS else 0)

    def problem(self) -> Problem:
        """The log with the policy."""
        return clinic().problem(self.patients, self.seed, self.target, self.discount, OBSERVED[self.observed])

    def row(self, estimator: str, seconds: float, **found: object) -> Row:
        """A row of the store."""
        truth = clinic().value(clinic().targets[self.target], self.discount)
        return {**self._asdict(), "truth": truth, "estimator": estimator, "seconds": seconds, **found}


def tasks() -> Iterator[Task]:
    """Log by log, so that an unfinished run has a few logs of each kind. Intervals take longest."""
    targets = tuple(clinic().targets)

    def errors(log: int, observed: str, patients: int, discount: float) -> list[Task]:
        return [Task(ERRORS, observed, patients, discount, target, log) for target in targets]

    for log in range(NUM_LOGS):
        for patients in PATIENTS:
            yield from errors(log, VITAL_SIGNS.name, patients, 1.0)
        yield from errors(log, VITAL_SIGNS.name, 1_000, 0.99)
        yield from errors(log, STATE_CODE.name, 1_000, 1.0)
        if log >= FIRST_LOGS:
            yield from _intervals(range(len(targets) * (log - FIRST_LOGS), len(targets) * (log - FIRST_LOGS + 1)))
    for log in range(NUM_LOGS):
        for patients in PATIENTS:
            yield from errors(log, VITAL_SIGNS.name, patients, 0.99)
    yield from _intervals(range(INTERVAL_LOGS))


def _intervals(logs: range) -> list[Task]:
    targets = tuple(clinic().targets)
    return [Task(INTERVALS, VITAL_SIGNS.name, INTERVAL_PATIENTS, 1.0, targets[log % len(targets)], log) for log in logs]


def errors_of(task: Task) -> list[Row]:
    """A row for each method."""
    problem, key, rows = task.problem(), jax.random.key(task.log), []
    for name in METHODS:
        start = time.perf_counter()
        try:
            fit = prepared_once(REGISTRY[name].make(), problem, key=key).fit()
        except NotApplicable:
            continue
        shares = {share: fit.diagnostics.get(share) for share in SHARES}
        rows.append(task.row(name, time.perf_counter() - start, value=float(fit.value), **shares))
    start = time.perf_counter()
    (critics,) = TableCritics.of(problem).learn([Resample.everything(problem)])
    seconds = time.perf_counter() - start
    for name, critic in zip(TABLE_CRITICS, critics, strict=True):
        rows.append(task.row(name, seconds, value=float(critic.start.mean())))
    return rows


def interval_of(task: Task) -> list[Row]:
    """One row: the recommended estimator with its interval and the verdict."""
    problem, key, method = task.problem(), jax.random.key(task.log), REGISTRY[RECOMMENDED].make()
    start = time.perf_counter()
    prepared = prepared_once(method, problem, key=key)
    fit = prepared.fit()
    settings = IntervalSettings(bootstrap=NUM_RESAMPLES, seed=task.log)
    interval = uncertainty(method, problem, prepared, settings, key=key).interval
    seconds = time.perf_counter() - start
    estimate = Estimate(fit.value, interval, seconds, fit.diagnostics, fit.notes)
    verdict = judge(estimate, diagnose(problem, key=key), problem.dataset.num_episodes, problem.estimand)
    ends = {} if interval is None else {"lower": interval.lower, "upper": interval.upper}
    shares = {share: fit.diagnostics.get(share) for share in SHARES}
    return [task.row(RECOMMENDED, seconds, value=float(fit.value), verdict=verdict.level, **ends, **shares)]


def error_table(rows: list[Row], observed: str, discounts: tuple[float, ...], patients: tuple[int, ...]) -> str:
    """RMS of the relative error in percent, by discount: a line for each method, a column for each target and size."""
    chosen = [row for row in rows if row["part"] == ERRORS and row["observed"] == observed]
    columns = [(target, number) for target in clinic().targets for number in patients]

    def error(estimator: str, target: str, number: int, discount: float) -> str:
        found = [
            (row["value"] - row["truth"]) / row["truth"]  # type: ignore[operator]
            for row in chosen
            if (row["estimator"], row["target"], row["patients"], row["discount"])
            == (estimator, target, number, discount)
        ]
        return f"{100 * np.sqrt(np.mean(np.square(found))):.0f}" if len(found) >= FEWEST else "–"

    def cells(name: str) -> list[str]:
        return [" / ".join(error(name, *column, discount) for discount in discounts) for column in columns]

    def label(name: str) -> str:
        return f"`{name}` ★" if name == RECOMMENDED else f"`{name}`" if name in REGISTRY else name

    names = (RECOMMENDED, *TABLE_CRITICS, *METHODS[1:])
    head = [f"{target}, {number:,}" for target, number in columns]
    return markdown_table(["method", *head], ([label(name), *cells(name)] for name in names))


def interval_table(rows: list[Row]) -> str:
    """For each target: logs, how many intervals contain the truth, their mean half-width, and the verdicts."""
    lines = []
    for target in clinic().targets:
        found = [row for row in rows if row["part"] == INTERVALS and row["target"] == target]
        if not found:
            continue
        value, lower, upper, truth = (
            np.array([row[name] for row in found], float) for name in ("value", "lower", "upper", "truth")
        )
        covered = (lower <= truth) & (truth <= upper)
        verdicts = [str(row["verdict"]) for row in found]
        counts = ", ".join(f"{verdicts.count(one)} {one}" for one in sorted(set(verdicts), key=verdicts.index))
        wrong = sum(one == "supported" and not inside for one, inside in zip(verdicts, covered, strict=True))
        lines.append(
            [
                target,
                f"{truth[0]:.3f}",
                f"{value.mean():.3f}",
                f"± {np.mean(upper - lower) / 2:.3f}",
                f"{covered.sum()} of {len(found)}",
                counts,
                str(wrong),
            ]
        )
    head = ("target", "J(π)", "mean estimate", "mean half-width", "contain J", "verdicts", "supported, yet outside")
    return markdown_table(head, lines)


def logs_done(rows: list[Row]) -> str:
    """How many logs the tables rest on."""

    def logs(discount: float, number: int) -> int:
        cell = (ERRORS, VITAL_SIGNS.name, number, discount)
        return len({row["log"] for row in rows if tuple(row[name] for name in COLUMNS_OF_A_CELL) == cell})

    if not rows:
        return "No logs yet.\n"
    counts = "; ".join(
        f"at discount {discount:g}, "
        + ", ".join(f"{logs(discount, number)} of {number:,} patients" for number in PATIENTS)
        for discount in DISCOUNTS
    )
    intervals = sum(row["part"] == INTERVALS for row in rows)
    return f"Logs so far: {counts} ({NUM_LOGS} of each are planned); {intervals} of {INTERVAL_LOGS} with intervals.\n"


COLUMNS_OF_A_CELL = ("part", "observed", "patients", "discount")
TABLES: dict[str, Callable[[list[Row]], str]] = {
    "logs": logs_done,
    "signs": lambda rows: error_table(rows, VITAL_SIGNS.name, DISCOUNTS, PATIENTS),
    "codes": lambda rows: error_table(rows, STATE_CODE.name, (1.0,), (1_000,)),
    "intervals": interval_table,
}


def with_tables(text: str, rows: list[Row]) -> str:
    """The page with each table between its markers."""
    for name, table in TABLES.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if text.count(start) != 1 or text.count(end) != 1:
            raise ValueError(f"the page must have one {start.strip()} and one {end}.")
        content = start + table(rows) + end
        text = re.sub(f"{start}.*{end}", lambda _, content=content: content, text, flags=re.DOTALL)
    return text


def main() -> None:
    """Runs what is missing, and writes the tables."""
    rows: list[Row] = pq.read_table(STORE, schema=SCHEMA).to_pylist() if STORE.exists() else []
    if "--tables" not in sys.argv:
        os.nice(NICENESS)
        done = {Task(*(row[name] for name in Task._fields)) for row in rows}  # type: ignore[arg-type]
        left = [task for task in dict.fromkeys(tasks()) if task not in done]
        for task in track(left, "policies on logs"):
            rows += errors_of(task) if task.part == ERRORS else interval_of(task)
            with written_whole(STORE) as temporary:
                pq.write_table(pa.Table.from_pylist(rows, SCHEMA), temporary, compression="zstd")
    if PAGE.exists():
        write_text_whole(PAGE, with_tables(PAGE.read_text(encoding="utf-8"), rows))


if __name__ == "__main__":
    main()
