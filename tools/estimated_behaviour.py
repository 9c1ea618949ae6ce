"""Estimated behaviour policies against true ones: `make estimated-behaviour`. It continues after an interruption.

1. On tasks, the error of the recommended estimator with the true and with the estimated probabilities of the logged
   actions, on the same logs.
2. On exact MDPs, how often the 95 % interval contains the truth when the probabilities are estimated, and estimated
   again in every bootstrap resample.

The results go into `results/estimated_behaviour.parquet`, one row for each log, method and kind of probabilities; the
tables go into `docs/estimated_behaviour.md`, between its markers.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.progress import track

from average_dice.behaviour import estimate_behaviour
from average_dice.errors import NotApplicable
from average_dice.estimators import RECOMMENDED, REGISTRY
from average_dice.experiments.jobs import Setting
from average_dice.experiments.measurements import log_of
from average_dice.files import write_text_whole, written_whole
from average_dice.inference.uncertainty import IntervalSettings, uncertainty
from average_dice.problem import Problem
from average_dice.tasks import find_task, target_policy, true_value
from average_dice.testing.cases import CLOSED_FORMS
from average_dice.testing.exact_mdps import ALL

DISCRETE, CONTINUOUS = ("CartPole-v1", "Acrobot-v1"), ("MountainCarContinuous-v0", "Hopper-v5")
LOGS_OF_TASK = 20
NUM_LOGS, NUM_EPISODES, NUM_RESAMPLES = 300, 50, 100  # for the coverage
METHODS = ("wpdis", "average-dice-tabular", "average-dice-features", RECOMMENDED)
LARGEST_FACTOR, LEAST_SHARE, LARGEST_SHARE = 1.5, 92.0, 98.0  # what the tables should show
UNBIASED = 0.25  # standard deviations from the truth, at most: a smaller bias hardly changes the coverage
FEWEST = 100  # logs in a cell of the table of coverage
BATCH = 10  # logs between two writes: an interruption loses fewer
NICENESS = 15
ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "estimated_behaviour.parquet"
PAGE = ROOT / "docs" / "estimated_behaviour.md"

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("part", "case", "setting", "estimator", "behaviour", "model")]
    + [("log", pa.int32())]
    + [(name, pa.float64()) for name in ("truth", "value", "lower", "upper")]  # null where there is none
)
Row = dict[str, object]
Task = tuple[str, str, str, str, int]  # part, case, setting, estimator, log


def settings(task: str) -> dict[str, Setting]:
    """The setting of the main experiment, and for discrete actions four that differ from it in one thing."""
    main = Setting.of(find_task(task))
    if task not in DISCRETE:
        return {"main": main}
    return {
        "main": main,
        "2,000 transitions": replace(main, transitions=2_000),
        "40 steps": replace(main, max_steps=40),
        "10 % uniform": replace(main, noise=0.1),
        "50 % uniform": replace(main, noise=0.5),
    }


def results_of(task: Task) -> list[Row]:
    """The rows of one log: with true and estimated probabilities on a task, with estimated ones on an exact MDP."""
    part, case, setting, estimator, log = task
    return errors_of(case, setting, log) if part == "error" else [interval_of(case, estimator, log)]


def errors_of(case: str, setting: str, log: int) -> list[Row]:
    chosen = settings(case)[setting]
    data = log_of(case, chosen.transitions, chosen.max_steps, chosen.noise, log)
    estimated = estimate_behaviour(data, seed=log)
    rows: list[Row] = []
    for behaviour, one in (("true", data), ("estimated", estimated)):
        record = one.estimated_behaviour
        row: Row = {"part": "error", "case": case, "setting": setting, "estimator": RECOMMENDED, "log": log}
        row |= {"behaviour": behaviour, "truth": true_value(case, chosen.discount)[0]}
        row |= {"model": None if record is None else record.model}
        problem = Problem(one, target_policy(case), chosen.discount)
        with suppress(NotApplicable):
            row["value"] = float(REGISTRY[RECOMMENDED].make().fit(problem, key=jax.random.key(log)).value)
        rows.append(row)
    return rows


def interval_of(case: str, estimator: str, log: int) -> Row:
    mdp = next(one for one in ALL if one.name == case)
    problem = mdp.problem(NUM_EPISODES, seed=10_000 + log)
    data = estimate_behaviour(problem.dataset, seed=log)
    assert data.estimated_behaviour is not None
    row: Row = {"part": "coverage", "case": case, "setting": "", "estimator": estimator, "behaviour": "estimated"}
    row |= {"log": log, "truth": mdp.value, "model": data.estimated_behaviour.model}
    method, key = CLOSED_FORMS[estimator].method, jax.random.key(log)
    estimated = Problem(data, problem.policy, problem.discount)
    with suppress(NotApplicable):
        prepared = method.prepare(estimated, key=key)
        row["value"] = float(prepared.fit().value)
        given = IntervalSettings(bootstrap=NUM_RESAMPLES, seed=log)
        interval = uncertainty(method, estimated, prepared, given, key=key).interval
        if interval is not None:
            row |= {"lower": interval.lower, "upper": interval.upper}
    return row


def every_task() -> Iterator[Task]:
    """Half of the logs of tasks, the intervals of one method after the other, the other half."""
    yield from _errors(range(LOGS_OF_TASK // 2))
    for estimator in METHODS:
        for log in range(NUM_LOGS):
            for mdp in ALL:
                yield "coverage", mdp.name, "", estimator, log
    yield from _errors(range(LOGS_OF_TASK // 2, LOGS_OF_TASK))


def _errors(logs: Iterable[int]) -> Iterator[Task]:
    for log in logs:
        for case in (*DISCRETE, *CONTINUOUS):
            for setting in settings(case):
                yield "error", case, setting, RECOMMENDED, log


def table_of_errors(store: pa.Table) -> str:
    lines = [
        "| task | setting | logs | RMSE, true | RMSE, estimated | factor | models |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for case in (*DISCRETE, *CONTINUOUS):
        for setting in settings(case):
            rows = [row for row in _rows(store, "error", case=case, setting=setting) if row["value"] is not None]
            by_kind = {
                kind: {row["log"]: row["value"] - row["truth"] for row in rows if row["behaviour"] == kind}
                for kind in ("true", "estimated")
            }
            logs = sorted(set(by_kind["true"]) & set(by_kind["estimated"]))
            if not logs:
                continue
            rmse = [float(np.sqrt(np.mean([by_kind[kind][log] ** 2 for log in logs]))) for kind in by_kind]
            factor = rmse[1] / rmse[0] if rmse[0] > 0 else np.inf
            shown = f"{factor:.2f}" if factor <= LARGEST_FACTOR else f"**{factor:.2f}**"
            line = [case, setting, len(logs), f"{rmse[0]:.2g}", f"{rmse[1]:.2g}", shown, _models(rows)]
            lines.append(f"| {' | '.join(map(str, line))} |")
    return "\n".join(lines) + "\n"


def table_of_coverage(store: pa.Table) -> str:
    lines = ["| estimator | " + " | ".join(mdp.name for mdp in ALL) + " |", "| --- |" + " --- |" * len(ALL)]
    counts, outside = [], []
    for estimator in METHODS:
        cells = []
        for mdp in ALL:
            rows = _rows(store, "coverage", case=mdp.name, estimator=estimator)
            known = [row for row in rows if row["lower"] is not None]
            counts.append(len(rows))
            if len(known) < FEWEST:
                cells.append("–")
                continue
            values = np.array([row["value"] for row in known])
            share = 100 * float(np.mean([row["lower"] <= row["truth"] <= row["upper"] for row in known]))
            bias = float(values.mean() - mdp.value) / max(float(values.std()), 1e-12)
            cell = f"{share:.1f} ({bias:+.1f})"
            cells.append(f"**{cell}**" if abs(bias) < UNBIASED else cell)
            if abs(bias) < UNBIASED and not LEAST_SHARE <= share <= LARGEST_SHARE:
                outside.append(f"`{estimator}` on {mdp.name}: {share:.1f} %")
        lines.append(f"| `{estimator}` | " + " | ".join(cells) + " |")
    about = f"Logs in a cell: {min(counts)} to {max(counts)}; a cell with fewer than {FEWEST} is empty. "
    about += f"Nearly unbiased, but outside of {LEAST_SHARE:g} to {LARGEST_SHARE:g} %: {'; '.join(outside) or 'none'}."
    return "\n".join(lines) + f"\n\n{about}\n"


def _rows(store: pa.Table, part: str, **wanted: str) -> list[dict[str, object]]:
    for name, value in {"part": part, **wanted}.items():
        store = store.filter(pc.equal(store[name], value))
    return store.to_pylist()


def _models(rows: list[Row]) -> str:
    kinds = [str(row["model"]).split(" ")[0] for row in rows if row["model"] is not None]
    return ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds), key=lambda one: -kinds.count(one)))


def with_tables(text: str, store: pa.Table) -> str:
    """The page with each table between its markers, `<!-- name -->` and `<!-- end of name -->`."""
    for name, table in {"errors": table_of_errors(store), "coverage": table_of_coverage(store)}.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}{table}{end}{after}"
    return text


def main() -> None:
    os.nice(NICENESS)
    store = pq.read_table(STORE, schema=SCHEMA) if STORE.exists() else SCHEMA.empty_table()
    names = ("part", "case", "setting", "estimator", "log")
    done = set(zip(*(store[name].to_pylist() for name in names), strict=True))
    left = [task for task in every_task() if task not in done]
    write_page(store)  # what there is, should this be interrupted
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:  # JAX has threads: a fork would hang
        for count, rows in enumerate(track(pool.map(results_of, left), "logs", total=len(left)), start=1):
            store = pa.concat_tables([store, pa.Table.from_pylist(rows, SCHEMA)])
            if count % BATCH == 0 or count == len(left):
                with written_whole(STORE) as temporary:
                    pq.write_table(store.combine_chunks(), temporary, compression="zstd")
    write_page(store)


def write_page(store: pa.Table) -> None:
    write_text_whole(PAGE, with_tables(PAGE.read_text(encoding="utf-8"), store))


if __name__ == "__main__":
    main()
