"""Parts: the Parquet files of one log, read in small batches of rows, with bounded memory.

Files are opened one after the other. Without Arrow's read-ahead (`pre_buffer`) and with a buffer of 1 MiB, what is in
memory is a batch of decoded rows, a page and a buffer of each column: a row group may be larger than the memory, but a
page (about 1 MiB from most writers) may not.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from average_dice.data.columns import OPTIONAL, REQUIRED, Columns, as_columns, other_length
from average_dice.data.extra import as_extra
from average_dice.data.files import (
    check_file,
    different_types,
    expanded,
    in_files,
    missing_in,
    no_such_columns,
)
from average_dice.data.parquet import (
    UNREADABLE,
    check_repeated,
    columns_to_read,
    declared_in,
    from_arrow,
    not_readable,
    null_problem,
)
from average_dice.errors import DatasetError

BOUNDED: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**20, "page_checksum_verification": True}
VALUES_AT_ONCE = 2**20  # decoded numbers of a batch
MOST_ROWS_AT_ONCE = 2**14

VECTORS = ("observation", "next_observation", "action", "action_mask")
IN_MEMORY = "Read the log whole, with read_dataset"


class Segment(NamedTuple):
    """Some row groups of a file."""

    path: Path
    groups: tuple[int, ...]


class Header(NamedTuple):
    """What is known of a file without reading it: its schema, its row groups, and its first row."""

    path: Path
    schema: pa.Schema
    num_groups: int
    known: tuple[str, ...]  # the columns that are to be read, without those that are null throughout
    first: pa.Table | None  # None: no rows
    declared: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Parts:
    """Files with the rows of one log.

    - `schema`: the columns that are read, with types that hold those of all files.
    - `segments`: what is read, in this order. `given`: the paths of the user, for messages.
    - `state`: path, size and time of modification of each file when it was opened.
    - `first`: the first row, as columns of a log. `extra`: the names of extra columns.
    - `is_copy`: the rows are a sorted copy, so that their files are not those of the user.
    - `goes_on_after`: the files have rows after this one that are not wanted; None if all are.
    """

    schema: pa.Schema
    segments: tuple[Segment, ...]
    given: tuple[str, ...]
    state: tuple[tuple[str, int, int], ...]
    first: Columns
    extra: tuple[str, ...]
    is_copy: bool = False
    goes_on_after: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For a process in another folder, perhaps on another machine, which need not look at all files."""
        _ = self.group_sizes
        return {**self.__dict__, "segments": tuple(Segment(one.path.absolute(), one.groups) for one in self.segments)}

    @cached_property
    def group_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The number of rows of each row group of each segment."""
        by_path = {path: _group_sizes(path) for path in dict.fromkeys(one.path for one in self.segments)}
        return tuple(tuple(by_path[path][group] for group in groups) for path, groups in self.segments)

    def between(self, start: int, stop: int) -> tuple["Parts", int]:
        """The row groups with the rows from `start` to `stop`, and the number of their first row."""
        some, row, first = list[Segment](), 0, None
        for (path, groups), sizes in zip(self.segments, self.group_sizes, strict=True):
            kept = []
            for group, size in zip(groups, sizes, strict=True):
                if row < stop and row + size > start:
                    kept.append(group)
                    first = row if first is None else first
                row += size
            if kept:
                some.append(Segment(path, tuple(kept)))
        return replace(self, segments=tuple(some), goes_on_after=stop if stop < row else None), first or 0

    @property
    def widths(self) -> dict[str, int]:
        """The length of the vectors in every row."""
        return {name: values.shape[1] for name, values in self.first.items() if values.ndim > 1}

    @property
    def fingerprint(self) -> str:
        """The same as long as the files, their sizes and times, and the columns are the same."""
        return sha256(json.dumps([self.state, str(self.schema)]).encode()).hexdigest()[:16]

    def batches(self, names: Sequence[str] | None = None) -> Iterator[tuple[Path, pa.RecordBatch]]:
        """All rows, or these columns of them, in small batches with the file that they come from. Nothing is null."""
        for path, groups in self.segments:
            self._check_unchanged(path)
            for batch in read_groups(path, groups, names or self.schema.names, self._rows_at_once):
                converted = self._converted(batch)
                _check_null(path, converted)
                yield path, converted

    @property
    def _rows_at_once(self) -> int:
        return max(1, min(MOST_ROWS_AT_ONCE, VALUES_AT_ONCE // sum(self.widths.values())))

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [field for field in self.schema if field.name in batch.schema.names]
        return pa.RecordBatch.from_arrays(
            [batch.column(field.name).cast(field.type) for field in fields], schema=pa.schema(fields)
        )

    def _check_unchanged(self, path: Path) -> None:
        if state_of(path) not in self.state:
            raise DatasetError(f"{path}: the file was changed or removed while the log was read. Open the log again.")


def _check_null(path: Path, batch: pa.RecordBatch) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise DatasetError(f"{path}: {null_problem(name, pa.Table.from_batches([batch]), column)}")


def read_groups(path: Path, groups: Sequence[int], names: Sequence[str], num_rows: int) -> Iterator[pa.RecordBatch]:
    """These columns of some row groups of a file, in batches."""
    try:
        with pq.ParquetFile(path, **BOUNDED) as file:
            yield from file.iter_batches(num_rows, row_groups=list(groups), columns=list(names))
    except UNREADABLE as error:
        raise not_readable(path, error) from None


def _group_sizes(path: Path) -> list[int]:
    try:
        with pq.ParquetFile(path, **BOUNDED) as file:
            return [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    except UNREADABLE as error:
        raise not_readable(path, error) from None


def state_of(path: Path) -> tuple[str, int, int] | None:
    """Path, size and time of modification of a file; None if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return str(path.resolve()), found.st_size, found.st_mtime_ns


def open_parts(given: Sequence[str | Path], extra: Sequence[str]) -> tuple[Parts, list[Header]]:
    """Opens the files of a log and checks that they fit together. Reads the first row of each."""
    if not given:
        raise DatasetError("no file given. Give at least one .parquet file.")
    files = [file for path in given for file in expanded(Path(path))]
    for file in files:
        check_file(file)
        if file.suffix != ".parquet":
            raise DatasetError(
                f"{file}: only Parquet files are read in blocks. {IN_MEMORY}, or convert it with write_dataset."
            )
    headers = [_header(file, extra) for file in files]
    try:
        schema = _common_schema(headers, extra)
        if (found := next((one for one in headers if one.first is not None), None)) is None:
            raise DatasetError("the log is empty: it has no transition. Check how it was written.")
        first = _first_row(found, schema)
        others = tuple(name for name in schema.names if name not in (*REQUIRED, *OPTIONAL))
        segments = tuple(Segment(one.path, tuple(range(one.num_groups))) for one in headers if one.first is not None)
        state = tuple(one for one in map(state_of, files) if one is not None)
        parts = Parts(schema, segments, tuple(map(str, given)), state, first, others)
        for one in headers:
            _check_first_row(one, parts)
    except DatasetError as error:
        raise in_files(error, given) from None
    return parts, headers


def _header(path: Path, extra: Sequence[str]) -> Header:
    try:
        with pq.ParquetFile(path, **BOUNDED) as file:
            schema, num_groups = file.schema_arrow, file.num_row_groups
    except UNREADABLE as error:
        raise not_readable(path, error) from None
    try:
        names = columns_to_read(schema, extra)
        check_repeated([name for name in schema.names if name in names])
        if missing := [name for name in REQUIRED if name not in names]:
            raise DatasetError(
                f"missing column: {', '.join(missing)}. A log needs {', '.join(REQUIRED)}. {IN_MEMORY}, which can map "
                "columns of your own, or convert it first: average-dice convert."
            )
        declared, metadata = declared_in(schema)
    except DatasetError as error:
        raise in_files(error, [path]) from None
    batches = (batch for batch in read_groups(path, range(num_groups), names, 1) if len(batch))
    if (batch := next(batches, None)) is None:
        return Header(path, schema, num_groups, tuple(names), None, declared, metadata)
    first = pa.Table.from_batches([batch])
    null = [name for name in names if first.column(name).null_count]
    for name in null:
        _check_null_throughout(path, num_groups, name, first)
    known = tuple(name for name in names if name not in null)
    return Header(path, schema, num_groups, known, first.select(known), declared, metadata)


def _check_null_throughout(path: Path, num_groups: int, name: str, first: pa.Table) -> None:
    """An optional column is unknown if it is null in the first row; then it must be null in every row."""
    for batch in read_groups(path, range(num_groups), [name], MOST_ROWS_AT_ONCE):
        if name not in OPTIONAL or batch.column(0).null_count < len(batch):
            raise DatasetError(f"{path}: {null_problem(name, first, pa.concat_arrays(first.column(name).chunks))}")


def _common_schema(headers: Sequence[Header], extra: Sequence[str]) -> pa.Schema:
    every = dict.fromkeys(name for one in headers for name in one.known)
    if absent := [name for name in extra if name not in every]:
        raise no_such_columns(absent, [str(name) for one in headers for name in one.schema.names])
    fields = []
    for name in every:
        if lacking := [str(one.path) for one in headers if name not in one.known]:
            raise missing_in(name, lacking)
        fields.append(pa.field(name, _common_type(name, [one.schema.field(name).type for one in headers])))
    by_lower_case: dict[str, str] = {}
    for name in every:
        if (other := by_lower_case.setdefault(name.lower(), name)) != name:  # the same name for DuckDB
            raise DatasetError(f"columns {other} and {name} differ only in upper and lower case. {IN_MEMORY}.")
    return pa.schema(fields)


def _common_type(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """A type that holds the values of all of these exactly."""
    plain = [_plain_type(name, one) for one in types]
    if all(one == plain[0] for one in plain):
        return plain[0]
    lists = {pa.types.is_list(one) for one in plain}
    values = [one.value_type if pa.types.is_list(one) else one for one in plain]
    if len(lists) > 1 or len(kinds := {_kind(one) for one in values}) > 1:
        raise different_types(name)
    widest = {"float": pa.float64(), "integer": pa.int64(), "unsigned": pa.uint64()}[str(kinds.pop())]
    return pa.list_(widest) if lists.pop() else widest


def _plain_type(name: str, given: pa.DataType) -> pa.DataType:
    """The same without dictionaries, fixed or large sizes, and half precision: these are exact in it."""
    if pa.types.is_dictionary(given):
        return _plain_type(name, given.value_type)
    if pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given):
        return pa.list_(_plain_type(name, given.value_type))
    if pa.types.is_large_string(given):
        return pa.string()
    if pa.types.is_float16(given):
        return pa.float32()
    if _kind(given) is None:
        raise DatasetError(
            f"column {name} is of type {given}, which is not read in blocks. {IN_MEMORY}, or convert the column to "
            "numbers or texts."
        )
    return given


def _kind(given: pa.DataType) -> str | None:
    kinds = {
        "float": pa.types.is_floating,
        "integer": pa.types.is_signed_integer,
        "unsigned": pa.types.is_unsigned_integer,
        "flag": pa.types.is_boolean,
        "text": pa.types.is_string,
    }
    return next((name for name, belongs in kinds.items() if belongs(given)), None)


def _first_row(header: Header, schema: pa.Schema) -> Columns:
    """The first row of a file as columns of a log: wrong types are found here."""
    assert header.first is not None
    row = header.first.select(schema.names).cast(schema)
    raw = {name: from_arrow(name, row) for name in schema.names}
    as_extra({name: values for name, values in raw.items() if name not in (*REQUIRED, *OPTIONAL)}, 1)
    return as_columns({name: values for name, values in raw.items() if name in (*REQUIRED, *OPTIONAL)})


def _check_first_row(header: Header, parts: Parts) -> None:
    if header.first is not None:
        check_widths(_first_row(header, parts.schema), parts.widths)


def check_widths(columns: Mapping[str, Any], widths: Mapping[str, int]) -> None:
    """Raises unless vectors have the length that they have in the first row of the log."""
    for name, usual in widths.items():
        found = columns[name].shape[1]
        if found != usual:
            place = f"episode {columns['episode'][0]}, step {columns['step'][0]}"
            raise other_length(place, name, f"{found} numbers", usual)
