"""Feeds random and mutated files to every reader: `make fuzz`. Each must end in a result or in one of our errors.

    python tools/fuzz.py [--inputs 10000] [--seed 0]

Inputs run in processes with a limit of memory. What fails is kept in `fuzz-failures/`.
"""

import argparse
import resource
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rich.progress import track

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
FAILURES = ROOT / "fuzz-failures"
MOST_MEMORY = 6 * 2**30  # of addresses: JAX and Arrow reserve a few GiB that they never use
BATCH = 50


def batch(name: str, seed: int) -> tuple[str, int, list[str]]:
    """Runs some inputs. Returns how many were accepted, and what went wrong."""
    import numpy as np

    from fuzz.inputs import Unacceptable, mutated, run

    generator = np.random.default_rng([seed, sum(name.encode())])
    accepted, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(BATCH):
            content = mutated(name, generator)
            try:
                accepted += run(name, content, Path(folder))
            except Unacceptable as error:
                FAILURES.mkdir(exist_ok=True)
                (FAILURES / f"{name.replace(', ', '-')}-{seed}-{number}").write_bytes(content)
                failures.append(f"{name}, seed {seed}, input {number}: {error}")
    return name, accepted, failures


def limit_memory() -> None:
    """A reader that takes more memory fails."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def main() -> None:
    """Runs all batches in two processes, and prints what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="number of inputs, of all readers together")
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    options = parser.parse_args()
    from fuzz.inputs import TARGETS

    each = -(-options.inputs // (BATCH * len(TARGETS)))
    accepted: Counter[str] = Counter()
    failures: list[str] = []
    jobs = [(name, options.seed + number) for number in range(each) for name in TARGETS]
    with ProcessPoolExecutor(2, initializer=limit_memory) as pool:
        for name, some, wrong in track(pool.map(batch, *zip(*jobs, strict=True)), "inputs", total=len(jobs)):
            accepted[name] += some
            failures += wrong
    for name in TARGETS:
        print(f"{name}: {each * BATCH} inputs, {accepted[name]} accepted")
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
