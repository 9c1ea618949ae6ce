"""LogBlocks: a log of any size, read in blocks of whole episodes with bounded memory."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from average_dice.data.action_features import as_action_features
from average_dice.data.categories import as_categorical, check_categorical
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.data.dataset import LoggedDataset
from average_dice.data.encoding import Encoding
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.external_sort import sorted_copy
from average_dice.data.files import in_files
from average_dice.data.names import Names
from average_dice.data.parquet import from_arrow
from average_dice.data.parts import Parts, check_widths, open_parts
from average_dice.data.stored import declarations, joined_metadata
from average_dice.data.survey import BlockEnds, divided, divided_from, in_order, surveyed
from average_dice.errors import DatasetError, SettingError
from average_dice.memory import FEWEST_ROWS, limit, limited

ROWS = 2**17
COPIES = 8  # of the numbers of a block exist at once while it is checked, rounded up


@dataclass(frozen=True, eq=False, kw_only=True)
class LogBlocks:
    """A log on disk, read block by block: whole episodes, in the same order in every pass.

    Each pass (`for block in blocks`) gives the same blocks: `LoggedDataset`s whose episodes, one after the other, are
    those of `read_dataset` in the same order, by episode number. A block has as many whole episodes as fit into `rows`
    rows, and at least one. `len(blocks)` is their number.

    - `num_terminated`: episodes that terminate. `shortest`, `longest`: rows of an episode.
    - `num_actions`: for discrete actions the largest plus one; for continuous ones their dimensions.
    - `columns`: the columns that the log has, such as behaviour_log_prob.
    - `ends`: for each block, the row after its last. `episode_ends`: the same for episodes.
    - All others are as in `LoggedDataset`.

    What a block computes from its own rows, such as `sha256` or `looks_categorical`, is about the block. Its `encoding`
    is that of the whole log.
    """

    num_transitions: int
    num_episodes: int
    num_terminated: int
    shortest: int
    longest: int
    reward_min: float
    reward_max: float
    num_observations: int
    num_actions: int
    is_discrete: bool
    columns: tuple[str, ...]
    categorical: tuple[int, ...]
    action_features: np.ndarray | None
    names: Names
    metadata: Mapping[str, Any]
    estimated_behaviour: EstimatedBehaviour | None
    ends: tuple[int, ...]
    episode_ends: tuple[int, ...]
    source: Callable[[int, int], Iterator[LoggedDataset]] = field(repr=False)  # gives some blocks, as `part`
    copy: "TemporaryFolder | None" = field(default=None, repr=False)  # of the sorted rows

    @staticmethod
    def open(
        paths: str | Path | Sequence[str | Path],
        *,
        rows: int = ROWS,
        memory: int | str | None = None,
        folder: str | Path | None = None,
        categorical: Sequence[int | str] | None = None,
        action_features: Any = None,
        extra: Sequence[str] = (),
        behaviour_estimated: bool = False,
    ) -> "LogBlocks":
        """Opens a log in our Parquet format: a file, a folder, a pattern such as `logs/*.parquet`, or several.

        If there is an order of the row groups in which all rows are sorted by episode and step, they are read where
        they are. Otherwise DuckDB writes a sorted copy (`pip install 'average-dice[large]'`): into a temporary folder
        that exists as long as this object, or into `folder`, where the next call finds it if no file has changed.

        - `rows`: about the number of rows of a block; fewer if `memory` is too low for them.
        - `memory`: the limit, such as "1GiB"; half of the machine's unless given.
        - The others: as in `read_dataset`.

        Episode numbers hold for the whole log: rows of one episode may be in several files, and then their steps must
        continue. Values are checked in the first pass, block by block.

        >>> blocks = LogBlocks.open("log/", rows=100_000)         # doctest: +SKIP
        >>> sum(block.reward.sum() for block in blocks)           # doctest: +SKIP
        """
        _check_rows(rows)
        given = [paths] if isinstance(paths, str | Path) else list(paths)
        parts, headers = open_parts(given, extra)
        with limited(memory):
            parts, copy = _sorted(parts, folder)
            found = surveyed(parts, min(rows, _most_rows(parts)))
        try:
            declared = declarations(
                [one.declared for one in headers],
                [one.path for one in headers],
                categorical=categorical,
                action_features=action_features,
                behaviour_estimated=behaviour_estimated,
            )
            declared = _checked(declared, parts, found.largest_action)
        except DatasetError as error:
            raise in_files(error, given) from None
        declared["metadata"] = joined_metadata([one.metadata for one in headers])
        largest = found.largest_action
        return LogBlocks(
            num_observations=parts.widths["observation"],
            num_actions=parts.widths["action"] if largest is None else largest + 1,
            is_discrete=largest is not None,
            columns=tuple(name for name in (*REQUIRED, *OPTIONAL) if name in parts.schema.names),
            source=_Reader(parts, found.ends, declared),
            copy=copy,
            **declared,
            **{name: value for name, value in found._asdict().items() if name != "largest_action"},
        )

    @staticmethod
    def of_dataset(dataset: LoggedDataset, rows: int = ROWS) -> "LogBlocks":
        """The same for a log in memory. The columns of the blocks are views of its columns."""
        _check_rows(rows)
        stops = np.append(dataset.starts[1:], dataset.num_transitions)
        ends = BlockEnds(rows)
        ends.add(stops)
        found = ends.finished()
        return LogBlocks(
            num_transitions=dataset.num_transitions,
            num_episodes=dataset.num_episodes,
            num_terminated=int(dataset.terminated.sum()),
            shortest=int(dataset.lengths.min()),
            longest=int(dataset.lengths.max()),
            reward_min=float(dataset.reward.min()),
            reward_max=float(dataset.reward.max()),
            num_observations=dataset.observation.shape[1],
            num_actions=int(dataset.action.max()) + 1 if dataset.is_discrete else dataset.action.shape[1],
            is_discrete=dataset.is_discrete,
            columns=tuple(name for name in (*REQUIRED, *OPTIONAL) if getattr(dataset, name) is not None),
            categorical=dataset.categorical,
            action_features=dataset.action_features,
            names=dataset.names,
            metadata=dataset.metadata,
            estimated_behaviour=dataset.estimated_behaviour,
            ends=found,
            episode_ends=ends.episodes,
            source=_Views(dataset, found),
        )

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which must neither remove the sorted copy nor read the log for its categories."""
        _ = self.encoding
        return {**self.__dict__, "copy": None}

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[LoggedDataset]:
        return self.part(0, len(self))

    def part(self, first: int, last: int) -> Iterator[LoggedDataset]:
        """The blocks from `first` up to the one before `last`. Only their row groups are read."""
        encoding = self.encoding if self.categorical else None
        for block in self.source(first, last):
            if encoding is not None:
                block.__dict__["encoding"] = encoding
            yield block

    def paths_of(self, first: int, last: int) -> list[Path]:
        """The files that `part` reads; none for a log in memory."""
        paths: list[Path] = getattr(self.source, "paths_of", lambda *_: [])(first, last)
        return paths

    def __repr__(self) -> str:
        return f"LogBlocks({self.num_transitions:,} transitions, {self.num_episodes:,} episodes, {len(self):,} blocks)"

    def __enter__(self) -> "LogBlocks":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()

    def close(self) -> None:
        """Removes the temporary copy of a log whose rows were not sorted; otherwise that happens with this object."""
        if self.copy is not None:
            self.copy.remove()

    @cached_property
    def encoding(self) -> Encoding:
        """How observations become inputs, with the categories of the whole log: these cost a pass of their own."""
        if not self.categorical:
            return Encoding((), ())
        values: Sequence[np.ndarray] = [np.empty(0)] * len(self.categorical)
        for block in self.source(0, len(self)):
            values = [np.union1d(*both) for both in zip(values, block.encoding.values, strict=True)]
        return Encoding(self.categorical, tuple(values))


class TemporaryFolder:
    """A folder that is removed with this object, at the end of the program, or before."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="average-dice-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, True)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads the blocks of files."""

    parts: Parts
    ends: tuple[int, ...]
    declared: Mapping[str, Any]

    def __call__(self, first: int, last: int) -> Iterator[LoggedDataset]:
        for table, paths in self._tables(first, last):
            try:
                block = self._block(table)
            except DatasetError as error:
                raise in_files(error, self.parts.given if self.parts.is_copy else paths) from None
            yield block

    def paths_of(self, first: int, last: int) -> list[Path]:
        start = self.ends[first - 1] if first else 0
        return list(dict.fromkeys(one.path for one in self.parts.between(start, self.ends[last - 1])[0].segments))

    def _tables(self, first: int, last: int) -> Iterator[tuple[pa.Table, list[Path]]]:
        if first >= last:
            return iter(())
        if (first, last) == (0, len(self.ends)):
            return divided(self.parts, self.ends)
        return divided_from(self.parts, self.ends[first - 1] if first else 0, self.ends[first:last])

    def _block(self, table: pa.Table) -> LoggedDataset:
        raw = {name: from_arrow(name, table) for name in table.column_names}
        extra = {name: raw.pop(name) for name in self.parts.extra}
        block = LoggedDataset.from_columns(raw, extra=extra, **self.declared)
        check_widths(vars(block), self.parts.widths)
        return block


@dataclass(frozen=True, eq=False)
class _Views:
    """Gives the blocks of a log in memory."""

    dataset: LoggedDataset
    ends: tuple[int, ...]

    def __call__(self, first: int, last: int) -> Iterator[LoggedDataset]:
        return (_view(self.dataset, slice(*one)) for one in islice(pairwise((0, *self.ends)), first, last))


def _view(dataset: LoggedDataset, rows: slice) -> LoggedDataset:
    """Some rows of a log, which are whole episodes: sorted and checked already."""
    view = object.__new__(LoggedDataset)
    every = {name: getattr(dataset, name) for name in (*REQUIRED, *OPTIONAL)}
    kept = {
        name: getattr(dataset, name) for name in ("metadata", "categorical", "action_features", "encoding", "names")
    }
    record = dataset.estimated_behaviour
    view.__dict__.update(
        {name: None if values is None else values[rows] for name, values in every.items()},
        **kept,
        extra={name: values[rows] for name, values in dataset.extra.items()},
        estimated_behaviour=None if record is None else record.fixed(),
    )
    return view


def _sorted(parts: Parts, folder: str | Path | None) -> tuple[Parts, TemporaryFolder | None]:
    """The files in an order in which their rows are sorted, or a sorted copy."""
    if (segments := in_order(parts)) is not None:
        return replace(parts, segments=segments), None
    if folder is not None:
        return sorted_copy(parts, Path(folder)), None
    copy = TemporaryFolder()
    return sorted_copy(parts, copy.path), copy


def _checked(declared: Mapping[str, Any], parts: Parts, largest_action: int | None) -> dict[str, Any]:
    """What is declared, checked as in a log with the columns of the first row and the largest action."""
    columns = dict(parts.first)
    if largest_action is not None:
        columns["action"] = np.array([largest_action])
    names = declared["names"] or Names()
    categorical = as_categorical(declared["categorical"])
    check_categorical(categorical, columns)
    features = declared["action_features"]
    if features is not None:
        features = as_action_features(features, columns["action"])
    names.check(columns["observation"], columns["action"])
    record = declared["estimated_behaviour"] if "behaviour_log_prob" in columns else None
    return {
        "categorical": categorical,
        "action_features": features,
        "names": names,
        "estimated_behaviour": record,
    }


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise SettingError(f"a block needs at least 1 row, not {rows}.")


def _most_rows(parts: Parts) -> int:
    """As many rows as half of the memory takes."""
    numbers = sum(parts.widths.values()) + len(parts.schema.names)
    return max(FEWEST_ROWS, limit() // 2 // (8 * COPIES * numbers))
