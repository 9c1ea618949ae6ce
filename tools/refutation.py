"""How often do refuters fail on sound logs, and how many misleading logs do they catch? `make refutation`.

One row for each log and refuter goes into `results/refutation.parquet`; it continues after an interruption. Limits were
chosen on the sound logs with the seeds in `CHOSEN_ON`. The tables of `docs/refutation.md` are about all other logs, and
use the stored numbers with today's limits: `python tools/refutation.py --tables` writes them without a run.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import track

from average_dice.data import LoggedDataset
from average_dice.estimators import RECOMMENDED, AverageDICE, Blend
from average_dice.experiments.summaries import markdown_table
from average_dice.files import write_text_whole, written_whole
from average_dice.inference.refutation import REFUTERS, Case, order_in_time, run_refuters
from average_dice.models import FourierFeatures
from average_dice.policies import Policy
from average_dice.problem import Problem
from average_dice.testing import exact_mdps
from average_dice.testing.misleading import LOGS
from average_dice.testing.misleading.finite_mdps import normal_noise, ordinary
from average_dice.testing.misleading.linear_gaussian import GaussianActions, Linear, LinearGaussianMDP, Square
from average_dice.testing.misleading.log import Process, sample_log

NUM_RESAMPLES = 20
METHOD = Blend(60, ratio=AverageDICE(FourierFeatures(60)))  # 60 random features instead of 200 and 300, for time
NICENESS = 5
CHOSEN_ON = (0, 1, 2, 3, 4)  # seeds of the sound logs on which limits were chosen
SOUND_SEEDS, MISLEADING_SEEDS = range(12), (1, 2)
TOO_LARGE = {name for name in LOGS if "2000" in name}  # 2,000 episodes: left out, for time
ROOT = Path(__file__).parents[1]
STORE, PAGE = ROOT / "results" / "refutation.parquet", ROOT / "docs" / "refutation.md"
SOUND, MISLEADING = "sound", "misleading"

# Misleading logs that violate something that a refuter tests. Written down before any of them was run.
SEEN = {
    "probabilities": (
        "recorded-uniform",
        "recorded-uniform-memory",
        "swapped-columns",
        "slightly-off",
        "floored-probabilities",
        "behaviour-learns",
        "late-actions",
        "clipped-density",
        "wrong-std",
        "one-action-an-episode",
        "confounder-of-episode",
    ),
    "halves-in-time": ("drift", "units-change", "ten-people", "overlapping-windows", "jittered-copies"),
    "truncation": ("booked-at-the-end", "failures-leave-shown", "deaths-as-truncations"),
    "random-halves": ("long-tail", "lucky-rare-action"),
    "prediction": ("narrow-ridge",),
}
EXPECTED = {log: refuter for refuter, logs in SEEN.items() for log in logs}

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("part", "log", "refuter", "status")]
    + [("seed", pa.int32())]
    + [(name, pa.float64()) for name in ("number", "value", "truth", "spread", "seconds")]
)
Row = dict[str, Any]


class Made(NamedTuple):
    """A log with its policy, discount and true value (NaN if it is not known)."""

    dataset: LoggedDataset
    policy: Policy
    discount: float
    truth: float


def from_exact(make: Callable[[], exact_mdps.ExactMDP], seed: int) -> Made:
    mdp = make()
    return Made(mdp.sample(120, seed), mdp.policy, mdp.discount, mdp.value)


def from_process(make: Callable[[int], Process], seed: int) -> Made:
    made = sample_log(make(seed), 120, seed)
    return Made(made.dataset, made.policy, made.discount, made.truth)


def from_task(name: str, seed: int) -> Made:
    from average_dice.tasks import collect, find_task, target_policy, true_value
    from average_dice.tasks.rollouts import gymnasium_envs

    task, target = find_task(name), target_policy(name)
    log = collect(
        task, target, num_transitions=6_000, max_steps=100, noise=task.noise, seed=seed, make_envs=gymnasium_envs
    )
    return Made(log, target, 0.95, true_value(name, 0.95)[0])


def random_mdp_with_noise(seed: int, ends: float) -> Process:
    """Another MDP for each seed."""
    return replace(ordinary(100 + seed, ends=ends), reward_noise=normal_noise(0.5))


def linear_gaussian(seed: int) -> Process:
    return LinearGaussianMDP(
        GaussianActions(0.3, 0.1, 0.5), GaussianActions(0.0, 0.0, 0.6), of_state=(Linear(1.0), Square(-0.5))
    )


SOUND_LOGS: dict[str, Callable[[int], Made]] = {
    "sticky chain": partial(from_exact, exact_mdps.sticky_chain),
    "random": partial(from_exact, exact_mdps.random_mdp),
    "early termination": partial(from_exact, exact_mdps.early_termination),
    "truncated": partial(from_exact, exact_mdps.truncated),
    "clock": partial(from_exact, exact_mdps.clock),
    "rare state": partial(from_exact, exact_mdps.rare_state),
    "masked": partial(from_exact, exact_mdps.masked),
    "noisy MDPs": partial(from_process, partial(random_mdp_with_noise, ends=0.0)),
    "noisy MDPs that terminate": partial(from_process, partial(random_mdp_with_noise, ends=0.05)),
    "linear dynamics": partial(from_process, linear_gaussian),
    "CartPole-v1": partial(from_task, "CartPole-v1"),
    "Hopper-v5": partial(from_task, "Hopper-v5"),
}


class Task(NamedTuple):
    """One log."""

    part: str
    log: str
    seed: int

    def make(self) -> Made:
        if self.part == SOUND:
            return SOUND_LOGS[self.log](self.seed)
        made = LOGS[self.log].make(self.seed)
        return Made(made.dataset, made.policy, made.discount, made.truth)


def tasks() -> Iterator[Task]:
    """Sound and misleading logs by turns: after an interruption both tables have rows."""
    misleading = [Task(MISLEADING, log, seed) for seed in MISLEADING_SEEDS for log in LOGS if log not in TOO_LARGE]
    misleading.sort(key=lambda one: (one.seed, one.log not in EXPECTED))
    sound = [Task(SOUND, log, seed) for seed in SOUND_SEEDS if seed not in CHOSEN_ON for log in SOUND_LOGS]
    while misleading or sound:
        yield from (part.pop(0) for part in (misleading, sound) if part)
    yield from (Task(SOUND, log, seed) for seed in CHOSEN_ON for log in SOUND_LOGS)


def refute(task: Task) -> list[Row]:
    start = time.perf_counter()
    made = task.make()
    problem = Problem(made.dataset, made.policy, made.discount)
    order = order_in_time(made.dataset, None)
    key = jax.random.key(task.seed)
    case = Case(problem, METHOD, key, task.seed, order, num_resamples=NUM_RESAMPLES)
    found = run_refuters(RECOMMENDED, case)
    about = {
        **task._asdict(),
        "value": case.value,
        "truth": made.truth,
        "spread": case.spread,
        "seconds": time.perf_counter() - start,
    }
    return [{**about, "refuter": one.name, "status": one.status, "number": one.number} for one in found]


def failed(row: Row) -> bool:
    """By today's limit."""
    return row["number"] is not None and row["number"] >= {one.name: one.limit for one in REFUTERS}[row["refuter"]]


def by_log(rows: Iterable[Row]) -> dict[Task, list[Row]]:
    found: dict[Task, list[Row]] = {}
    for row in rows:
        found.setdefault(Task(row["part"], row["log"], row["seed"]), []).append(row)
    return found


def reported(rows: Iterable[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part and (part == MISLEADING or row["seed"] not in CHOSEN_ON)]


def false_alarms(rows: list[Row]) -> str:
    """Each refuter on sound logs."""
    logs = by_log(reported(rows, SOUND))
    lines = []
    for refuter in REFUTERS:
        of_it = [row for row in reported(rows, SOUND) if row["refuter"] == refuter.name and row["number"] is not None]
        number = sum(map(failed, of_it))
        largest = max((row["number"] for row in of_it), default=float("nan"))
        share = f"{number / max(len(of_it), 1):.1%}"
        lines.append(
            (refuter.name, f"{refuter.limit:g} {refuter.unit}", str(len(of_it)), f"{number}", share, f"{largest:.2f}")
        )
    counts = [sum(map(failed, found)) for found in logs.values()]
    for least, what in ((1, "at least one"), (2, "at least two")):
        number = sum(one >= least for one in counts)
        lines.append((what, "", str(len(counts)), str(number), f"{number / max(len(counts), 1):.1%}", ""))
    return markdown_table(("refuter", "limit", "sound logs", "failed", "share", "largest number"), lines)


def caught(rows: list[Row]) -> str:
    """The misleading logs, those that a refuter can see first."""
    found: dict[str, list[list[Row]]] = {}
    for task, of_log in by_log(reported(rows, MISLEADING)).items():
        found.setdefault(task.log, []).append(of_log)
    lines = []
    for log in sorted(found, key=lambda one: (one not in EXPECTED, list(LOGS).index(one))):
        names = sorted({row["refuter"] for one in found[log] for row in one if failed(row)})
        number = sum(any(map(failed, one)) for one in found[log])
        wrong = sum(is_wrong(one[0]) for one in found[log])
        of = len(found[log])
        lines.append(
            (log, LOGS[log].what, EXPECTED.get(log, ""), f"{wrong} of {of}", f"{number} of {of}", ", ".join(names))
        )
    head = ("log", "what misleads", "which refuter should see it", "estimate wrong", "caught", "by")
    return markdown_table(head, lines)


def summary(rows: list[Row]) -> str:
    """The shares, in sentences."""
    logs = by_log(reported(rows, MISLEADING))
    lines = []
    for what, kept in (
        ("Misleading logs that a refuter should see", lambda task: task.log in EXPECTED),
        ("All other misleading logs", lambda task: task.log not in EXPECTED),
    ):
        chosen = {task: found for task, found in logs.items() if kept(task)}
        number = sum(any(map(failed, found)) for found in chosen.values())
        kinds = {task.log for task in chosen}
        missed = sorted(kinds - {task.log for task, found in chosen.items() if any(map(failed, found))})
        lines.append(
            f"- {what}: {number} of {len(chosen)} logs ({number / max(len(chosen), 1):.0%}) of {len(kinds)} kinds are "
            f"caught by at least one refuter. Never caught: {', '.join(missed) or 'none'}."
        )
    wrong = [found for found in logs.values() if is_wrong(found[0])]
    number = sum(any(map(failed, found)) for found in wrong)
    lines.append(f"- Of all {len(wrong)} misleading logs whose estimate is wrong, {number} are caught.")
    return "\n".join(lines) + "\n"


def is_wrong(row: Row) -> bool:
    """The truth lies outside of ±1.96 standard errors."""
    return abs(row["value"] - row["truth"]) > 1.96 * row["spread"]


def refuters(rows: list[Row]) -> str:
    """The table of refuters."""
    lines = ((f"`{one.name}`", one.asks, f"{one.limit:g} {one.unit}", one.why) for one in REFUTERS)
    return markdown_table(("refuter", "question", "fails at", "why this limit"), lines)


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "refuters": refuters,
    "summary": summary,
    "sound": false_alarms,
    "misleading": caught,
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


def stored() -> list[Row]:
    return pq.read_table(STORE, schema=SCHEMA).to_pylist() if STORE.exists() else []


def main() -> None:
    """Runs what is missing, and writes the tables."""
    rows = stored()
    if "--tables" not in sys.argv:
        os.nice(NICENESS)
        done = set(by_log(rows))
        with ProcessPoolExecutor(
            int(os.environ.get("JOBS", os.cpu_count() or 1)), mp_context=get_context("spawn")
        ) as pool:
            jobs = {pool.submit(refute, task): task for task in tasks() if task not in done}
            for job in track(as_completed(jobs), "refuting", total=len(jobs)):
                rows += job.result()
                with written_whole(STORE) as temporary:
                    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), temporary, compression="zstd")
    if PAGE.exists():
        write_text_whole(PAGE, with_tables(PAGE.read_text(encoding="utf-8"), rows))


if __name__ == "__main__":
    main()
