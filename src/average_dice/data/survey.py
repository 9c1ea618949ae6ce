"""What a cheap pass over a few columns tells about a log on disk: the order of its rows, its size, where blocks end."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from average_dice.data.columns import as_integers
from average_dice.data.files import in_files
from average_dice.data.parquet import from_arrow
from average_dice.data.parts import MOST_ROWS_AT_ONCE, Parts, Segment, read_groups
from average_dice.errors import DatasetError

Key = tuple[int, int]  # episode and step
Rows = Int[np.ndarray, " row"]


class Survey(NamedTuple):
    """Numbers of a log. For each block, `ends`: the row after its last; `episode_ends`: the same for episodes."""

    num_transitions: int
    num_episodes: int
    num_terminated: int
    shortest: int
    longest: int
    reward_min: float
    reward_max: float
    largest_action: int | None
    ends: tuple[int, ...]
    episode_ends: tuple[int, ...]


def in_order(parts: Parts) -> tuple[Segment, ...] | None:
    """The row groups in an order in which all rows are sorted by episode and step; None if there is no such order."""
    found: list[tuple[Key, Key, Path, int]] = []
    for path, groups in parts.segments:
        for group in groups:
            ends = _ends_if_sorted(path, group)
            if ends is None:
                return None
            found += [(*one, path, group) for one in ends]
    found.sort(key=lambda one: one[:2])
    if any(last > first for (_, last, _, _), (first, _, _, _) in pairwise(found)):
        return None
    runs: list[tuple[Path, list[int]]] = []
    for _, _, path, group in found:
        if runs and runs[-1][0] == path and runs[-1][1][-1] == group - 1:
            runs[-1][1].append(group)
        else:
            runs.append((path, [group]))
    return tuple(Segment(path, tuple(groups)) for path, groups in runs)


def _ends_if_sorted(path: Path, group: int) -> list[tuple[Key, Key]] | None:
    """The first and the last key of a row group: a list of one, or of none if it is empty; None if it is unsorted."""
    first: Key | None = None
    last: Key | None = None
    for batch in read_groups(path, [group], ["episode", "step"], MOST_ROWS_AT_ONCE):
        episode, step = _keys(path, batch)
        rises = (episode[1:] > episode[:-1]) | ((episode[1:] == episode[:-1]) & (step[1:] >= step[:-1]))
        start = (int(episode[0]), int(step[0]))
        if not rises.all() or (last is not None and start < last):
            return None
        first, last = first or start, (int(episode[-1]), int(step[-1]))
    return [] if first is None or last is None else [(first, last)]


def _keys(path: Path, batch: pa.RecordBatch) -> tuple[Rows, Rows]:
    table = pa.Table.from_batches([batch])
    try:
        return as_integers("episode", from_arrow("episode", table)), as_integers("step", from_arrow("step", table))
    except DatasetError as error:
        raise in_files(error, [path]) from None


def surveyed(parts: Parts, rows: int) -> Survey:
    """Counts what is in a log whose rows are sorted, and divides it into blocks of about `rows` rows."""
    is_discrete = parts.first["action"].ndim == 1
    names = ["episode", "step", "reward", "terminated", *(["action"] if is_discrete else [])]
    ends = BlockEnds(rows)
    num_rows, num_terminated, episodes, largest, previous = 0, 0, _Lengths(), None, None
    lowest, highest = np.inf, -np.inf
    for path, batch in parts.batches(names):
        table = pa.Table.from_batches([batch])
        episode, _ = _keys(path, batch)
        values = {name: from_arrow(name, table) for name in names[2:]}
        changes = np.flatnonzero(episode[1:] != episode[:-1]) + 1
        if previous is not None and previous != episode[0]:
            changes = np.append(0, changes)
        ends.add(num_rows + changes)
        episodes.add(num_rows + changes)
        num_rows, previous = num_rows + len(episode), episode[-1]
        num_terminated += int(np.count_nonzero(values["terminated"]))
        lowest, highest = np.minimum(lowest, values["reward"].min()), np.maximum(highest, values["reward"].max())
        if is_discrete:
            largest = max(-1 if largest is None else largest, int(values["action"].max()))
    final = np.array([num_rows])
    ends.add(final)
    episodes.add(final)
    return Survey(
        num_rows,
        episodes.number,
        num_terminated,
        episodes.shortest,
        episodes.longest,
        float(lowest),
        float(highest),
        largest,
        ends.finished(),
        ends.episodes,
    )


@dataclass
class _Lengths:
    """The number of episodes, and the lengths of the shortest and longest, from the rows after their last."""

    number: int = 0
    shortest: int = np.iinfo(np.int64).max
    longest: int = 0
    last: int = 0

    def add(self, ends: Rows) -> None:
        if len(ends):
            lengths = np.diff(ends, prepend=self.last)
            self.number, self.last = self.number + len(ends), int(ends[-1])
            self.shortest = min(self.shortest, int(lengths.min()))
            self.longest = max(self.longest, int(lengths.max()))


@dataclass
class BlockEnds:
    """Where blocks end: each has as many whole episodes as fit into `rows` rows, and at least one.

    >>> ends = BlockEnds(10)
    >>> ends.add(np.array([4, 8, 12, 40, 41]))  # episodes of 4, 4, 4, 28 and 1 rows
    >>> ends.finished()
    (8, 12, 40, 41)
    """

    rows: int
    _start: int = 0
    _pending: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    _ends: list[int] = field(default_factory=list)
    _episodes: list[int] = field(default_factory=list)

    def add(self, episode_ends: Rows) -> None:
        """Takes the ends of the next episodes: for each, the row after its last."""
        self._pending = np.append(self._pending, episode_ends)
        while len(self._pending) and self._pending[-1] - self._start > self.rows:
            self._end(max(1, int(np.searchsorted(self._pending, self._start + self.rows, side="right"))))

    def finished(self) -> tuple[int, ...]:
        """The ends of all blocks."""
        if len(self._pending):
            self._end(len(self._pending))
        return tuple(self._ends)

    @property
    def episodes(self) -> tuple[int, ...]:
        """For each block, the number of episodes up to its end."""
        return tuple(self._episodes)

    def _end(self, num_episodes: int) -> None:
        self._episodes.append(num_episodes + (self._episodes[-1] if self._episodes else 0))
        self._start = int(self._pending[num_episodes - 1])
        self._ends.append(self._start)
        self._pending = self._pending[num_episodes:]


def divided(parts: Parts, ends: tuple[int, ...]) -> Iterator[tuple[pa.Table, list[Path]]]:
    """The rows of each block, and the files that they come from."""
    yield from _divided(parts, ends, 0, 0)


def divided_from(parts: Parts, start: int, ends: tuple[int, ...]) -> Iterator[tuple[pa.Table, list[Path]]]:
    """The same for some blocks, of which the first begins at row `start`: no other row group is read."""
    some, row = parts.between(start, ends[-1])
    yield from _divided(some, ends, row, start)


def _divided(parts: Parts, ends: tuple[int, ...], row: int, start: int) -> Iterator[tuple[pa.Table, list[Path]]]:
    """`row`: the number of the first row of the files. Rows before `start` belong to other blocks."""
    held: list[tuple[Path, pa.RecordBatch]] = []
    left, last = list(reversed(ends)), ends[-1]
    for path, batch in parts.batches():
        before = min(max(start - row, 0), len(batch))
        batch, row = batch.slice(before), row + before
        while left and row + len(batch) >= left[-1]:
            size = left.pop() - row
            held.append((path, batch.slice(0, size)))
            yield pa.Table.from_batches([one for _, one in held]), list(dict.fromkeys(path for path, _ in held))
            batch, row, held = batch.slice(size), row + size, []
        if not left and parts.goes_on_after == last:
            return
        if len(batch):
            held.append((path, batch))
            row += len(batch)
    if left or held:
        raise DatasetError("the files were changed while the log was read. Open the log again.")
