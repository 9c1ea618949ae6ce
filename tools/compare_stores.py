"""Compares the errors of a method in the store of robustness with those at an earlier commit.

    python tools/compare_stores.py f29c81f average-dice-blend fqe

Prints the geometric mean, over tasks and settings, of its root mean squared error now over that at the commit. An error
below a thousandth of |J| counts as a thousandth. Below 1 is better.
"""

import subprocess
import sys
from collections import defaultdict
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from average_dice.estimators import RECOMMENDED
from average_dice.experiments.summaries import RELATIVE_FLOOR

ROOT = Path(__file__).parents[1]
STORE = "results/standard/robustness.parquet"
SETTING = ("task", "discount", "transitions", "max_steps", "noise")


def errors(table: pa.Table, estimator: str) -> dict[tuple[object, ...], float]:
    """The root mean squared error at each setting, relative to |J|."""
    found = defaultdict(list)
    for row in table.to_pylist():
        if row["estimator"] == estimator and row["value"] is not None:
            found[tuple(row[name] for name in SETTING)].append((row["value"] - row["truth"]) / row["truth"])
    return {key: max(float(np.sqrt(np.mean(np.square(each)))), RELATIVE_FLOOR) for key, each in found.items()}


def main(commit: str, *estimators: str) -> None:
    stored = subprocess.run(["git", "show", f"{commit}:{STORE}"], cwd=ROOT, capture_output=True, check=True).stdout
    columns = [*SETTING, "estimator", "value", "truth"]
    before, now = pq.read_table(BytesIO(stored), columns=columns), pq.read_table(ROOT / STORE, columns=columns)
    for name in estimators or (RECOMMENDED,):
        old, new = errors(before, name), errors(now, name)
        logs = {key: np.log(new[key] / old[key]) for key in new.keys() & old.keys()}
        tasks = sorted({str(key[0]) for key in logs})
        by_task = [f"{task} {np.exp(np.mean([v for k, v in logs.items() if k[0] == task])):.2f}" for task in tasks]
        print(f"{name}: {np.exp(np.mean(list(logs.values()))):.3f} over {len(logs)} settings; {', '.join(by_task)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
