"""Are the widths that `plan` predicts those of larger logs? `make planning`. It continues after an interruption.

On three exact MDPs: plans from pilot logs of 100 episodes, and the intervals that `evaluate` gives on logs of 400. The
results go into `results/planning.parquet`, one row for each log; the table goes into `docs/planning.md`.

    python tools/planning.py                                a fast method, 60 logs of each kind (minutes)
    python tools/planning.py --logs 20 average-dice-blend   the recommended method, fewer logs
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.progress import track

from average_dice.estimators import REGISTRY
from average_dice.files import write_text_whole, written_whole
from average_dice.inference.uncertainty import IntervalSettings, uncertainty
from average_dice.planning import plan
from average_dice.testing.exact_mdps import ExactMDP, early_termination, random_mdp, truncated

FAST = ("average-dice-tabular",)
MDPS = (random_mdp(), early_termination(), truncated())
PILOT, LARGER, NUM_LOGS, NUM_RESAMPLES = 100, 400, 60, 100
BATCH = 10  # logs between two writes
GOAL = 0.25  # the mean prediction is that close to the mean width
ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "planning.parquet"
PAGE = ROOT / "docs" / "planning.md"
START, END = "<!-- table of tools/planning.py -->\n", "<!-- end of the table -->\n"
NUMBERS = ("predicted", "lower", "upper", "exponent", "width", "value")  # width, value: on a log of the larger size
SCHEMA = pa.schema(
    [("mdp", pa.string()), ("log", pa.int32()), ("estimator", pa.string()), *((name, pa.float32()) for name in NUMBERS)]
)
Task = tuple[int, int, str]  # which MDP, which log, which method


def results_of(task: Task) -> dict[str, object]:
    """What a pilot log predicts, and what a larger log gives."""
    which, seed, name = task
    mdp = MDPS[which]
    pilot = mdp.sample(PILOT, seed=30_000 + seed)
    found = plan(pilot, mdp.policy, mdp.discount, episodes=[LARGER], estimator=name, bootstrap=NUM_RESAMPLES, seed=seed)
    (expected,) = found.expected
    value, width = _of_larger(mdp, seed, name)
    numbers = (expected.half_width, expected.lower, expected.upper)
    law = None if found.exponent is None else found.exponent.value
    row = dict(zip(NUMBERS, (*numbers, law, width, value), strict=True))
    return {"mdp": mdp.name, "log": seed, "estimator": name, **row}


def _of_larger(mdp: ExactMDP, seed: int, name: str) -> tuple[float, float]:
    """The value and the half-width of its interval on a log of the larger size."""
    problem, method, key = mdp.problem(LARGER, seed=40_000 + seed), REGISTRY[name].make(), jax.random.key(seed)
    prepared = method.prepare(problem, key=key)
    settings = IntervalSettings(bootstrap=NUM_RESAMPLES, seed=seed)
    interval = uncertainty(method, problem, prepared, settings, key=key).interval
    assert interval is not None
    return float(prepared.fit().value), interval.width / 2


def table(store: pa.Table) -> str:
    """A line for every method and MDP: the mean width, predictions, and how often their range contains it."""
    headings = ("estimator", "MDP", "logs", f"±, {LARGER} episodes", f"predicted from {PILOT}", "ratio")
    headings += ("one prediction in two within", "range contains it", "1.96 standard deviations", "exponent")
    lines = ["| " + " | ".join(headings) + " |", "| --- |" + " --- |" * (len(headings) - 1)]
    for name in sorted(set(store["estimator"].to_pylist())):
        for mdp in MDPS:
            same = pc.and_(pc.equal(store["estimator"], name), pc.equal(store["mdp"], mdp.name))
            rows = store.filter(same)
            if not len(rows):
                continue
            predicted, lower, upper, law, width, value = (rows[one].to_numpy().astype(float) for one in NUMBERS)
            mean = width.mean()
            off = float(np.median(np.abs(predicted / mean - 1)))
            ratio = predicted.mean() / mean
            cells = (f"`{name}`", mdp.name, f"{len(rows)}", f"{mean:.4f}", f"{predicted.mean():.4f}", f"{ratio:.2f}")
            held = np.mean((lower <= mean) & (mean <= upper))
            cells += (f"{off:.0%}", f"{held:.0%}", f"{1.96 * value.std(ddof=1):.4f}", f"{np.nanmean(law):.2f}")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def with_table(text: str, new: str) -> str:
    """The page with the table between its marks."""
    before, rest = text.split(START)
    return f"{before}{START}{new}{END}{rest.split(END, 1)[1]}"


def unfinished(store: pa.Table, names: Sequence[str], num_logs: int) -> Iterator[Task]:
    """Every log and method without a row."""
    done = set(zip(*(store[name].to_pylist() for name in ("mdp", "log", "estimator")), strict=True))
    for seed in range(num_logs):
        for which, mdp in enumerate(MDPS):
            yield from ((which, seed, name) for name in names if (mdp.name, seed, name) not in done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("estimators", nargs="*", default=FAST, help=f"default: {', '.join(FAST)}")
    parser.add_argument("--logs", type=int, default=NUM_LOGS, help="logs of each kind and MDP")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    store = pq.read_table(STORE, schema=SCHEMA) if STORE.exists() else SCHEMA.empty_table()
    left = list(unfinished(store, given.estimators, given.logs))
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:  # JAX has threads: a fork would hang
        found = []
        for count, row in enumerate(track(pool.map(results_of, left), "logs", total=len(left)), start=1):
            found.append(row)
            if count % BATCH == 0 or count == len(left):
                store, found = pa.concat_tables([store, pa.Table.from_pylist(found, SCHEMA)]), []
                with written_whole(STORE) as temporary:
                    pq.write_table(store.combine_chunks(), temporary, compression="zstd")
    write_text_whole(PAGE, with_table(PAGE.read_text(encoding="utf-8"), table(store)))


if __name__ == "__main__":
    main()
