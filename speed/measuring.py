"""What the measurements share: processes of their own, peaks of memory, and the bare matrix product to compare with."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
from threadpoolctl import threadpool_limits

import average_dice as ad
from average_dice.estimators import Blend
from average_dice.features.logged_state_actions import designed, features_of_rows, likeness_of
from average_dice.files import write_text_whole
from average_dice.passes import ROWS
from average_dice.threads import in_threads

Numbers = dict[str, float]
ROOT = Path(__file__).parents[1]
PRODUCT_ROWS = 4 * ROWS  # whose products are measured; more rows take as much longer
PRODUCT_ROUNDS = 5


def in_process(script: str, *arguments: str) -> Any:
    """What the script prints, in JSON on its last line, in a process of its own."""
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def memory_mib(name: str) -> float:
    """VmRSS or VmHWM (the peak) of this process. `ru_maxrss` would start at the peak of the parent process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/self/status has no {name}. Memory is measured on Linux alone.")


def forget_peak() -> None:
    """VmHWM starts again from what is in use now."""
    Path("/proc/self/clear_refs").write_text("5")


def measured(work: Callable[[], Any]) -> tuple[Numbers, Any]:
    """Seconds, seconds of processors and the peak of memory of the work, and its result."""
    forget_peak()
    load, before = os.getloadavg()[0], memory_mib("VmRSS")
    start, busy = time.perf_counter(), time.process_time()
    result = work()
    found = {"seconds": time.perf_counter() - start, "busy": time.process_time() - busy}
    return {**found, "MiB": memory_mib("VmHWM"), "MiB_before": before, "load": load}, result


def bare_products(problem: ad.Problem, num_rows: int) -> Numbers:
    """Seconds of ΦᵀΦ for both sets of features of the recommended estimator, with its threads; the least of five.

    `problem`: of the first rows. The products of up to 32,768 of them are measured, and taken to grow with the rows.
    """
    settings, key = Blend(), jax.random.key(0)
    kept = likeness_of(problem)  # chosen once for both sets
    phis = []
    for number, _ in enumerate(settings.weights):
        _, features = designed(problem, settings.num_features, jax.random.fold_in(key, number), with_step=False)
        phi, _, _ = features_of_rows(problem, features, with_step=False)
        ends = [*range(0, min(len(phi), PRODUCT_ROWS), ROWS), min(len(phi), PRODUCT_ROWS)]
        phis += [phi[start:stop] for start, stop in pairwise(ends)]
    del kept
    times = []
    with threadpool_limits(1, "blas"):  # as in the estimator, whose threads work on different rows
        for _ in range(PRODUCT_ROUNDS):
            start, busy = time.perf_counter(), time.process_time()
            in_threads(lambda one: one.T @ one, phis)
            times.append((time.perf_counter() - start, time.process_time() - busy))
    scale = num_rows * len(settings.weights) / sum(len(one) for one in phis)
    seconds, busy = (scale * float(one) for one in np.array(times).min(axis=0))
    return {"product_seconds": seconds, "product_busy": busy, "features": phis[0].shape[1]}


def first_episodes(log: ad.LoggedDataset, num_rows: int) -> ad.LoggedDataset:
    """As many of the first episodes as have about this many rows."""
    number = max(2, int(np.searchsorted(np.cumsum(log.lengths), num_rows)))
    return log.select_episodes(np.arange(min(number, log.num_episodes)))


def large_log(folder: Path, num_rows: int, seed: int = 0) -> Path:
    """The folder of a synthetic log with this many rows, made unless it is there."""
    made = folder / (str(num_rows) if seed == 0 else f"{num_rows}-{seed}")
    if not (made / "complete").exists():
        if made.exists():
            raise SystemExit(f"{made} has no complete log: an earlier run was interrupted. Remove the folder.")
        tool = str(ROOT / "tools" / "make_large_log.py")
        subprocess.run([sys.executable, tool, str(num_rows), str(made), "--seed", str(seed)], check=True)
        (made / "complete").touch()
    return made


def read_results(path: Path) -> dict[str, Any]:
    """The finished measurements, by name."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_results(path: Path, results: dict[str, Any]) -> None:
    """All finished measurements."""
    write_text_whole(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replaces what stands between the two markers of a page."""
    content = page.read_text(encoding="utf-8")
    before, rest = content.split(begin)
    _, after = rest.split(end)
    write_text_whole(page, f"{before}{begin}\n{text}\n{end}{after}")
