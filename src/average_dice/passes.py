"""Passes over a log in blocks: a function of each piece, merged; by threads of this process or by another executor.

Pieces are added in one order, wherever they are computed: those of a group of blocks one after the other, then the
groups one after the other. Groups follow from the log alone, so the total is the same to the last bit for any number of
workers.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from threadpoolctl import threadpool_limits

from average_dice.data import LogBlocks, LoggedDataset
from average_dice.threads import carried

Part = TypeVar("Part")

ROWS = 8_192  # of a piece: more would take more memory and no less time
GROUP_ROWS = 2**18  # fewer would send more sums over a network, more would lose more work with a killed worker


class Piece(NamedTuple):
    """Whole episodes of the log, few enough to be computed at once, and the number of the first of them."""

    first: int
    dataset: LoggedDataset


class Group(NamedTuple):
    """Blocks that are added before others: from `first` up to the one before `last`."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Work(Generic[Part]):
    """What a pass computes of each piece, and how two results become one.

    An executor may send both to another machine: they are functions of modules, methods or partials of them.
    """

    of: Callable[[Piece], Part]
    merge: Callable[[Part, Part], Part]


@runtime_checkable
class Executor(Protocol):
    """Who computes a pass."""

    def parts(self, work: Work[Part], blocks: LogBlocks) -> Iterator[Part]:
        """The merged results of each group of `groups(blocks)`, in order."""
        ...


class Threads:
    """A thread for each core of this machine, and few pieces in memory."""

    def parts(self, work: Work[Part], blocks: LogBlocks) -> Iterator[Part]:
        """Reads the log once, here."""
        ends = {blocks.episode_ends[group.last - 1] for group in groups(blocks)}
        found = None
        for end, part in _in_order(work, blocks):
            found = part if found is None else work.merge(found, part)
            if end in ends:
                yield found
                found = None


def _in_order(work: Work[Part], blocks: LogBlocks) -> Iterator[tuple[int, Part]]:
    """The result of each piece, and the number of the episode after it."""
    workers = os.cpu_count() or 1
    waiting: deque[tuple[int, Future[Part]]] = deque()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers) as pool:
        for piece in pieces(blocks, Group(0, len(blocks))):
            waiting.append((piece.first + piece.dataset.num_episodes, pool.submit(carried(work.of), piece)))
            if len(waiting) > workers:
                end, future = waiting.popleft()
                yield end, future.result()
        while waiting:
            end, future = waiting.popleft()
            yield end, future.result()


THREADS = Threads()


def groups(blocks: LogBlocks) -> list[Group]:
    """As many blocks as fit into `GROUP_ROWS` rows, and at least one."""
    found, first = list[Group](), 0
    for number, end in enumerate(blocks.ends):
        start = blocks.ends[first - 1] if first else 0
        if number > first and end - start > GROUP_ROWS:
            found.append(Group(first, number))
            first = number
    return [*found, Group(first, len(blocks))]


def pieces(blocks: LogBlocks, group: Group) -> Iterator[Piece]:
    """The blocks of a group, those with too many rows in parts."""
    first = blocks.episode_ends[group.first - 1] if group.first else 0
    for block in blocks.part(*group):
        small = LogBlocks.of_dataset(block, ROWS) if block.num_transitions > ROWS else [block]
        for dataset in small:
            yield Piece(first, dataset)
            first += dataset.num_episodes


def of_group(work: Work[Part], blocks: LogBlocks, group: Group) -> Part:
    """The merged results of a group, in one thread."""
    with threadpool_limits(1, "blas"):
        return reduce(work.merge, map(work.of, pieces(blocks, group)))


def total(work: Work[Part], blocks: LogBlocks, executor: Executor) -> Part:
    """One pass: the merged results of all pieces."""
    return reduce(work.merge, executor.parts(work, blocks))
