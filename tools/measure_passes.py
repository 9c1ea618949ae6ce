"""Measures the passes of an evaluation on one core: time, what is sent to a worker, and what comes back.

    python tools/make_large_log.py 262_144 large
    NPROC=1 OPENBLAS_NUM_THREADS=1 python tools/measure_passes.py large [--bootstrap 100]

Each line is a pass: its function, CPU seconds, rows per second, MB that every node gets once, MB that a group of blocks
sends back. The table of docs/cluster.md is from it.
"""

import argparse
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

from average_dice import LogBlocks, evaluate, load_policy
from average_dice.passes import Part, Work, groups, of_group

MEGA = 1e6


class Measured:
    """Computes groups one after the other, and prints what a cluster would do."""

    def __init__(self) -> None:
        self.passes, self.seconds, self.sent, self.received = 0, 0.0, 0.0, 0.0

    def parts(self, work: Work[Part], blocks: LogBlocks) -> Iterator[Part]:
        """As a cluster with one worker."""
        sent = len(pickle.dumps((work, blocks), protocol=5)) / MEGA
        begin, most = time.process_time(), 0.0
        found = []
        for group in groups(blocks):
            found.append(of_group(work, blocks, group))
            most = max(most, len(pickle.dumps(found[-1], protocol=5)) / MEGA)
        seconds = time.process_time() - begin
        rows, inner = blocks.num_transitions / seconds, work.of
        while hasattr(inner, "func"):  # a partial of a partial
            inner = inner.args[0] if inner.func.__name__ in ("_of_piece", "_of_block") else inner.func
        name = getattr(inner, "__qualname__", str(inner))
        print(f"{name:32} {seconds:7.1f} s {rows:9,.0f} rows/s {sent:7.1f} MB sent {most:7.2f} MB back", flush=True)
        self.passes, self.seconds = self.passes + 1, self.seconds + seconds
        self.sent, self.received = self.sent + sent, self.received + most
        yield from found


def main() -> None:
    """Evaluates the log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bootstrap", type=int, default=100)
    given = parser.parse_args()
    begin = time.process_time()
    blocks = LogBlocks.open(given.folder / "log")
    print(
        f"opening: {blocks.num_transitions / (time.process_time() - begin):,.0f} rows/s; {len(groups(blocks))} groups"
    )
    measured, begin = Measured(), time.process_time()
    policy = load_policy(given.folder / "target.safetensors")
    found = evaluate(blocks, policy, 0.95, bootstrap=given.bootstrap, executor=measured)
    alone = time.process_time() - begin - measured.seconds
    print(
        f"{measured.passes} passes, {measured.seconds:.0f} s; {alone:.0f} s besides; {measured.sent:.0f} MB sent to "
        f"each node, {measured.received:.1f} MB back for each group; value {found.value:.6f}"
    )


if __name__ == "__main__":
    main()
