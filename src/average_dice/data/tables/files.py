"""Files with tables: CSV and Parquet. Limits keep a hostile file from filling the memory."""

import csv
import gzip
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from average_dice import memory
from average_dice.data.dataset import LoggedDataset
from average_dice.data.tables.columns import MOST_LOOKED_AT, holds_dates, is_text, kind_of, plain
from average_dice.data.tables.log import log_of_table
from average_dice.data.tables.mapping import roles_of
from average_dice.data.tables.roles import Roles
from average_dice.data.unpacking import read_parquet
from average_dice.errors import DatasetError, NotEnoughMemory, first_line

CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 2**20  # bytes of the first line of a CSV file
MOST_COLUMNS = 10_000
PER_BYTE = 4  # memory for each byte that is read: the shortest number of a CSV file has two bytes, and then eight
LOOKED_AT = 2**20  # bytes at the start of a CSV file that show which columns hold dates
CHUNK = 2**24  # bytes that are decompressed at once

UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, EOFError, zlib.error, csv.Error)


def is_csv(path: Path) -> bool:
    """Whether a file is called like a CSV file."""
    return path.name.lower().endswith(CSV)


@dataclass(frozen=True)
class Mapped:
    """What the user says about the columns of files; see `read_dataset`."""

    columns: Mapping[str, Any]
    observations: Sequence[str] | None
    categorical: Sequence[str | int]
    extra: Sequence[str]
    impute: str | None
    actions: Sequence[Any] | None = None

    def roles(self, names: Sequence[str], dates: Callable[[], Collection[str]]) -> Roles:
        """The roles of a file with these columns, of which some are dates."""
        return roles_of(names, self.columns, self.observations, self.categorical, self.extra, dates).of(names)


def read_tables(paths: Sequence[Path], mapped: Mapped) -> LoggedDataset:
    """The log in files that have the same columns."""
    first: Roles | None = None
    parts = []
    for path in paths:
        try:
            names = _names(path)
            first = first or mapped.roles(names, partial(_dates, path))
            parts.append(_read(path, first.of(names).names))
        except DatasetError as error:
            where = f"{path.name}: " if len(paths) > 1 else ""
            raise DatasetError(*(f"{where}{text}" for text in error.problems)) from None
    if first is None:
        raise DatasetError("no file given.")
    return log_of_table(_joined(parts, paths), first, impute=mapped.impute, actions=mapped.actions)


def _joined(parts: Sequence[pa.Table], paths: Sequence[Path]) -> pa.Table:
    if len(parts) == 1:
        return parts[0]
    try:
        decoded = [pa.table({name: plain(part.column(name)) for name in part.column_names}) for part in parts]
        return pa.concat_tables(decoded, promote_options="permissive")
    except pa.ArrowException:
        for name in parts[0].column_names:
            kinds = {kind_of(plain(part.column(name))): path.name for part, path in zip(parts, paths, strict=True)}
            if len(kinds) > 1:
                where = " and ".join(f"{kind} in {path}" for kind, path in list(kinds.items())[:2])
                raise DatasetError(f"{name} is {where}. Convert it to one type.") from None
        raise DatasetError("the columns have different types in different files. Convert them to one type.") from None


def _names(path: Path) -> list[str]:
    """The names of the columns."""
    try:
        if is_csv(path):
            names = next(csv.reader([_header(path)], delimiter=_delimiter(_header(path))), [])
        else:
            names = pq.ParquetFile(path).schema_arrow.names
    except DatasetError:
        raise
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    if len(names) > MOST_COLUMNS:
        raise DatasetError(
            f"{path.name}: {len(names):,} columns, more than {MOST_COLUMNS:,}. Write those that you need."
        )
    if is_csv(path) and all(_is_number(name) for name in names):
        raise DatasetError(
            f"{path.name}: the first line holds no names of columns, but numbers. Add a line with names."
        )
    return list(names)


def _dates(path: Path) -> set[str]:
    """The columns that hold dates or times, by the first rows; none if these cannot be read."""
    try:
        if is_csv(path):
            options = pa_csv.ParseOptions(delimiter=_delimiter(_header(path)), newlines_in_values=True)
            with pa_csv.open_csv(path, pa_csv.ReadOptions(block_size=LOOKED_AT), options) as reader:
                some = pa.table(reader.read_next_batch())
        else:
            some = pa.table(next(pq.ParquetFile(path).iter_batches(MOST_LOOKED_AT)))
        return {name for name in some.column_names if holds_dates(plain(some.column(name)))}
    except (*UNREADABLE, StopIteration):
        return set()


def _read(path: Path, names: Sequence[str]) -> pa.Table:
    """These columns."""
    try:
        table = _read_csv(path, names) if is_csv(path) else read_parquet(path, names)
    except (DatasetError, NotEnoughMemory):
        raise
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    return table.select(list(names))


def _read_csv(path: Path, names: Sequence[str]) -> pa.Table:
    memory.require(PER_BYTE * path.stat().st_size, f"{path.name}: reading it")
    source = pa.py_buffer(_decompressed(path)) if path.suffix.lower() == ".gz" else str(path)
    table = pa_csv.read_csv(
        pa.BufferReader(source) if isinstance(source, pa.Buffer) else source,
        parse_options=pa_csv.ParseOptions(delimiter=_delimiter(_header(path)), newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(include_columns=list(names), strings_can_be_null=True),
    )
    for name in names:
        if pa.types.is_binary(table.column(name).type):
            raise DatasetError(f"column {name} is not text in UTF-8. Write the file again in UTF-8.")
        if (broken := _with_line_break(plain(table.column(name)))) is not None:
            raise DatasetError(
                f"column {name} has a line break in the value {broken[:40]!r}. Is a quotation mark not closed there?"
            )
    return table


def _with_line_break(column: pa.Array) -> str | None:
    """The first text with a line break, as after a quotation mark that is not closed: it may hold whole rows."""
    found = pc.filter(column, pc.match_substring(column, "\n")) if is_text(column) else []
    return str(found[0]) if len(found) else None


def _decompressed(path: Path) -> bytearray:
    """The content of a .gz file, unless it is larger than the memory allows."""
    found = bytearray()
    with gzip.open(path) as file:
        while chunk := file.read(CHUNK):
            found += chunk
            memory.require(PER_BYTE * len(found), f"{path.name}: reading what it holds")
    return found


def _header(path: Path) -> str:
    """The first line of a CSV file that is not empty."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        content = file.read(LONGEST_HEADER).removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    line = content.replace(b"\r", b"\n").partition(b"\n")[0]
    if not line.strip():
        raise DatasetError("the file has no first line with names of columns.")
    if len(line) >= LONGEST_HEADER - 3:
        raise DatasetError("its first line has more than a million characters. Is it a CSV file?")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise DatasetError(
            f"{path.name}: its first line is not text in UTF-8. Write the file again in UTF-8."
        ) from None


def _delimiter(header: str) -> str:
    """What separates the names: the most frequent one outside of quotes."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unreadable(path: Path, error: BaseException) -> DatasetError:
    return DatasetError(f"not a readable {'CSV' if is_csv(path) else 'Parquet'} file ({first_line(error)}).")
