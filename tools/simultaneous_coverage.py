"""Simultaneous coverage on exact MDPs: `make simultaneous-coverage`. It continues after an interruption.

For every MDP, logs of 50 episodes; on each, four policies and the behaviour policy with the simultaneous intervals of
their ten differences, as `compare` gives them. The results go into `results/simultaneous_coverage.parquet`, one row
for each log and method; the table goes into `docs/comparing.md`.

    python tools/simultaneous_coverage.py                        the fast methods (minutes)
    python tools/simultaneous_coverage.py average-dice-blend     the recommended one (hours)
    python tools/simultaneous_coverage.py --logs 100 fqe         fewer logs
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.progress import track

from average_dice.files import write_text_whole, written_whole
from average_dice.inference.best_policies import BestPolicies, Contender
from average_dice.inference.difference import behaviour_value, difference
from average_dice.inference.uncertainty import bootstrap_values
from average_dice.problem import Problem
from average_dice.testing.cases import CLOSED_FORMS
from average_dice.testing.exact_mdps import ALL, ExactMDP, as_policy

FAST = ("average-dice-tabular", "fqe")
NUM_LOGS, NUM_EPISODES, NUM_RESAMPLES, LEVEL = 1_000, 50, 100, 0.95
BATCH = 10  # logs between two writes: an interruption loses fewer
FEWEST = 50  # logs in a cell of the table: with fewer, the standard error of a share exceeds 3 %
UNBIASED = 0.25  # standard deviations of a difference, at most: a smaller bias hardly changes the coverage
ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "simultaneous_coverage.parquet"
PAGE = ROOT / "docs" / "comparing.md"
START, END = "<!-- table of tools/simultaneous_coverage.py -->\n", "<!-- end of the table -->\n"

ENDS = ("lower", "upper", "plain_lower", "plain_upper")  # of all pairs, in the order of `combinations`
SCHEMA = pa.schema(
    [("mdp", pa.string()), ("log", pa.int32()), ("estimator", pa.string()), ("values", pa.list_(pa.float32()))]
    + [(name, pa.list_(pa.float32())) for name in ENDS]
)
Task = tuple[int, int, str]  # which MDP, which log, which method


def policies(mdp: ExactMDP) -> dict[str, np.ndarray]:
    """The target, half of the way to it, a step the other way, and half of the way to a random policy."""
    towards = mdp.target - mdp.behaviour
    away = np.clip(mdp.behaviour - 0.25 * towards, 0.02, None)
    random = np.random.default_rng(0).dirichlet(np.ones(mdp.behaviour.shape[1]), size=mdp.num_states)
    return {
        "target": mdp.target,
        "halfway": mdp.behaviour + 0.5 * towards,
        "away": away / away.sum(axis=1, keepdims=True),
        "random": 0.5 * mdp.behaviour + 0.5 * random,
    }


def truths(mdp: ExactMDP) -> np.ndarray:
    """J of each policy, and last of the behaviour policy."""
    return np.array([replace(mdp, target=table).value for table in (*policies(mdp).values(), mdp.behaviour)])


def results_of(task: Task) -> dict[str, object]:
    """The values, and the ends of the simultaneous and of the plain intervals of all differences."""
    which, seed, name = task
    mdp, method, key = ALL[which], CLOSED_FORMS[name].method, jax.random.key(seed)
    log = mdp.sample(NUM_EPISODES, seed=20_000 + seed)
    contenders = {}
    for policy, table in policies(mdp).items():
        problem = Problem(log, as_policy(table), mdp.discount)
        prepared = method.prepare(problem, key=key)
        values = bootstrap_values(method, problem, NUM_RESAMPLES, seed, key=key, prepared=prepared)
        contenders[policy] = Contender(float(prepared.fit().value), values)
    contenders["behaviour"] = Contender(*behaviour_value(method, problem, NUM_RESAMPLES, seed, key=key))
    found = BestPolicies.of(contenders, LEVEL, NUM_EPISODES)
    row = {"mdp": mdp.name, "log": seed, "estimator": name, "values": [one.value for one in contenders.values()]}
    together = found.differences.values()
    alone = [
        difference(a.value, b.value, a.replicates, b.replicates, LEVEL, NUM_EPISODES)
        for a, b in combinations(contenders.values(), 2)
    ]
    ends = [[getattr(one, end) for one in some] for some in (together, alone) for end in ("lower", "upper")]
    return row | dict(zip(ENDS, ends, strict=True))


class Cell:
    """The results of one method on one MDP: shares of logs in %."""

    def __init__(self, rows: pa.Table, truth: np.ndarray) -> None:
        first, second = np.triu_indices(len(truth), 1)
        gap = truth[first] - truth[second]
        lower, upper, plain_lower, plain_upper = (
            np.array(rows[name].to_pylist(), float).reshape(-1, len(gap)) for name in ENDS
        )
        values = np.array(rows["values"].to_pylist(), float).reshape(-1, len(truth))
        self.number = len(values)
        self.is_filled = self.number >= FEWEST
        if not self.is_filled:
            return
        self.together = _share(((lower <= gap) & (gap <= upper)).all(axis=1))
        self.plain = _share(((plain_lower <= gap) & (gap <= plain_upper)).all(axis=1))
        gaps = values[:, first] - values[:, second]
        self.bias = float(np.abs((gaps.mean(axis=0) - gap) / np.maximum(gaps.std(axis=0), 1e-12)).max())
        best = truth.argmax()
        excluded = np.where(second == best, lower > 0, False) | np.where(first == best, upper < 0, False)
        self.kept = _share(~excluded.any(axis=1))

    def __str__(self) -> str:
        if not self.is_filled:
            return "–"
        words = f"{self.together:.1f} ({self.plain:.1f}; {self.kept:.1f})"
        return f"**{words}**" if self.bias < UNBIASED else words


def _share(held: np.ndarray) -> float:
    return 100 * float(held.mean())


def table(store: pa.Table) -> str:
    """A line for every method that has results."""
    lines = ["| estimator | logs of each | " + " | ".join(mdp.name for mdp in ALL) + " |"]
    lines.append("| --- |" + " --- |" * (len(ALL) + 1))
    stored = set(store["estimator"].unique().to_pylist())
    for name in (one for one in CLOSED_FORMS if one in stored):
        of_name = store.filter(pc.equal(store["estimator"], name))
        cells = [Cell(of_name.filter(pc.equal(of_name["mdp"], mdp.name)), truths(mdp)) for mdp in ALL]
        counts = sorted({cell.number for cell in cells})
        logs = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        lines.append(f"| `{name}` | {logs} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def with_table(text: str, new: str) -> str:
    """The page with the table between its marks."""
    before, rest = text.split(START)
    return f"{before}{START}{new}{END}{rest.split(END, 1)[1]}"


def unfinished(store: pa.Table, names: Sequence[str], num_logs: int) -> Iterator[Task]:
    """Every log and method without a row."""
    done = set(zip(*(store[name].to_pylist() for name in ("mdp", "log", "estimator")), strict=True))
    for seed in range(num_logs):
        for which, mdp in enumerate(ALL):
            yield from ((which, seed, name) for name in names if (mdp.name, seed, name) not in done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("estimators", nargs="*", default=FAST, help=f"default: {', '.join(FAST)}")
    parser.add_argument("--logs", type=int, default=NUM_LOGS, help="logs of each MDP")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    if unknown := set(given.estimators) - set(CLOSED_FORMS):
        parser.error(f"no closed form {', '.join(unknown)}: choose from {', '.join(CLOSED_FORMS)}")
    store = pq.read_table(STORE, schema=SCHEMA) if STORE.exists() else SCHEMA.empty_table()
    left = list(unfinished(store, given.estimators, given.logs))
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:  # JAX has threads: a fork would hang
        found = []
        for count, row in enumerate(track(pool.map(results_of, left), "logs", total=len(left)), start=1):
            found.append(row)
            if count % (BATCH * len(ALL)) == 0 or count == len(left):
                store, found = pa.concat_tables([store, pa.Table.from_pylist(found, SCHEMA)]), []
                with written_whole(STORE) as temporary:
                    pq.write_table(store.combine_chunks(), temporary, compression="zstd")
    write_text_whole(PAGE, with_table(PAGE.read_text(encoding="utf-8"), table(store)))


if __name__ == "__main__":
    main()
