"""How often intervals contain the truth, on exact MDPs: `make coverage`. Hours; it goes on where it was stopped.

For every MDP, 1,000 logs of 50 episodes; on each, every closed form with the interval of the kind that `evaluate`
gives it. Methods are those of the conformance tests, on features that span every table. What is found goes into
`results/coverage.json`, log by log; the table into `docs/coverage.md`.
"""

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
from rich.progress import track

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "estimators")]

from test_conformance import CLOSED_FORMS  # noqa: E402

from average_dice.errors import NotApplicable  # noqa: E402
from average_dice.files import written_whole  # noqa: E402
from average_dice.inference.uncertainty import Sampling, uncertainty  # noqa: E402
from exact_mdps import ALL  # noqa: E402

NUM_LOGS, NUM_EPISODES, NUM_DRAWS = 1_000, 50, 100
BATCH = 10  # logs between two writes
FEWEST = 200  # logs before a cell of the table is filled
UNBIASED = 0.25  # standard deviations from the truth, at most
STORE = ROOT / "results" / "coverage.json"
PAGE = ROOT / "docs" / "coverage.md"

HEAD = f"""# Do the intervals contain the truth?

On exact MDPs, where J(π) is known: of {NUM_LOGS:,} logs of {NUM_EPISODES} episodes, the share (in %) whose nominal 95 %
interval contains J(π), with the bias of the estimate in its standard deviations in brackets. The interval is of the
kind that `evaluate` gives the method: Student's t for `is`, `pdis`, `average-dice-dr` and, where no episode is cut,
`dr` (the last two cross-fitted), percentiles of {NUM_DRAWS} draws of episodes for the others. `make coverage`
makes this page.

A cell is **bold** where the estimate is as good as unbiased (within {UNBIASED:g} standard deviations): there the share
should lie between 92 and 98 %. Elsewhere no interval that speaks of chance alone can do it, and the share says how much
the bias hurts.

"""


def found_on(place: tuple[int, int]) -> dict[str, list[float | None]]:
    """For each method: its value and the two ends of its interval."""
    which, seed = place
    problem = ALL[which].problem(NUM_EPISODES, seed=10_000 + seed)
    key = jax.random.key(seed)
    sampling = Sampling(num_draws=NUM_DRAWS, seed=seed)
    rows: dict[str, list[float | None]] = {}
    for name, case in CLOSED_FORMS.items():
        try:
            fit = case.method.fit(problem, key=key)
            interval = uncertainty(case.method, problem, fit, sampling, key=key)
            rows[name] = [float(fit.value), interval.lower, interval.upper]
        except NotApplicable:
            rows[name] = [None, None, None]
    return rows


def cell(rows: list[list[float | None]], truth: float) -> str:
    """The share that contains the truth, and the bias."""
    known = np.array([row for row in rows if None not in row], float)
    if len(known) < FEWEST:
        return "–"
    values, lower, upper = known.T
    share = float(np.mean((lower <= truth) & (truth <= upper)))
    bias = float(values.mean() - truth) / max(float(values.std()), 1e-12)
    words = f"{100 * share:.1f} ({bias:+.1f})"
    return f"**{words}**" if abs(bias) < UNBIASED else words


def table(store: dict[str, dict[str, dict[str, list[float | None]]]]) -> str:
    lines = ["| estimator | " + " | ".join(mdp.name for mdp in ALL) + " |", "| --- |" + " --- |" * len(ALL)]
    for name in CLOSED_FORMS:
        cells = [
            cell([rows[name] for rows in store.get(mdp.name, {}).values() if name in rows], mdp.value) for mdp in ALL
        ]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    counts = ", ".join(f"{mdp.name} {len(store.get(mdp.name, {})):,}" for mdp in ALL)
    return HEAD + "\n".join(lines) + f"\n\nLogs: {counts}.\n"


def main() -> None:
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    left = [
        (which, seed)
        for seed in range(NUM_LOGS)
        for which, mdp in enumerate(ALL)
        if str(seed) not in store.setdefault(mdp.name, {})
    ]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:  # JAX has threads: a fork would hang
        for done, ((which, seed), rows) in enumerate(
            track(zip(left, pool.map(found_on, left), strict=True), "logs", total=len(left)), start=1
        ):
            store[ALL[which].name][str(seed)] = rows
            if done % BATCH == 0 or done == len(left):
                with written_whole(STORE) as temporary:
                    temporary.write_text(json.dumps(store))
    PAGE.write_text(table(store))


if __name__ == "__main__":
    main()
