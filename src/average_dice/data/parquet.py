"""Logs in Parquet files: their columns as arrays, and back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.data.dataset import LoggedDataset
from average_dice.data.names import EPISODE_NAME
from average_dice.data.stored import TEXTS, from_store, to_store
from average_dice.data.unpacking import read_parquet
from average_dice.errors import DatasetError, first_line

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what Arrow raises on damaged files


def read_parquet_log(path: Path, extra: Sequence[str]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The columns of a file, with what it declares, and its metadata."""
    try:
        schema = pq.ParquetFile(path).schema_arrow
        table = read_parquet(path, columns_to_read(schema, extra))
    except UNREADABLE as error:
        raise not_readable(path, error) from None
    try:
        check_repeated(table.column_names)
        declared, metadata = declared_in(schema)
        return {name: from_arrow(name, table) for name in table.column_names} | declared, metadata
    except DatasetError as error:
        raise DatasetError(*(f"{path}: {text}" for text in error.problems)) from None


def not_readable(path: Path, error: BaseException) -> DatasetError:
    """The error for a damaged file."""
    return DatasetError(f"{path}: not a readable Parquet file ({first_line(error)}).")


def columns_to_read(schema: pa.Schema, extra: Sequence[str]) -> list[str]:
    """The known columns only: extension types and nested data of other columns are never read."""
    return [name for name in (*REQUIRED, *OPTIONAL, EPISODE_NAME, *extra) if name in schema.names]


def check_repeated(names: Sequence[str]) -> None:
    """Raises if two columns have the same name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DatasetError(f"column {', '.join(repeated)} occurs more than once. Keep one of each name.")


def declared_in(schema: pa.Schema) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What a file declares about its columns, by key, and its metadata."""
    stored = schema.metadata or {}
    return from_store({key: stored[key.encode()] for key in TEXTS if key.encode() in stored})


def from_arrow(name: str, table: pa.Table) -> Any:
    """A column as an array, or as lists if their lengths differ; None if it is optional and null throughout."""
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # an empty table keeps its chunks
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.null_count:
        if name in OPTIONAL and column.null_count == len(column):
            return None
        raise DatasetError(null_problem(name, table, column))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        sizes = np.diff(column.offsets.to_numpy())
        if len(sizes) and (sizes != sizes[0]).any():
            return column.to_pylist()  # lists of different lengths: `as_columns` names the row
        values, width = column.flatten(), int(sizes[0]) if len(sizes) else 1
    elif pa.types.is_fixed_size_list(column.type):
        values, width = column.flatten(), column.type.list_size
    else:
        return column.to_numpy(zero_copy_only=False)
    return values.to_numpy(zero_copy_only=False).reshape(len(column), width)


def null_problem(name: str, table: pa.Table, column: pa.Array) -> str:
    """The sentence about the first missing value of a column."""
    row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
    place = [f"{key} {table.column(key)[row].as_py()}" for key in ("episode", "step") if key in table.column_names]
    where = ", ".join(place) or f"row {row}"
    if name in OPTIONAL:
        return f"{where}: {name} is missing here but known in other rows. Fill it in, or remove the whole column."
    return f"{where}: {name} is missing (null). Fill it in, or remove the whole episode."


def write_parquet_log(dataset: LoggedDataset, path: Path) -> None:
    """Writes a log to a Parquet file."""
    arrays = {}
    for name in (*REQUIRED, *OPTIONAL):
        if (values := getattr(dataset, name)) is not None:
            arrays[name] = _to_arrow(values)
    arrays |= {name: pa.array(values) for name, values in dataset.extra.items()}
    table = pa.table(arrays).replace_schema_metadata(to_store(dataset))
    pq.write_table(table, path, compression="zstd")


def _to_arrow(values: np.ndarray) -> pa.Array:
    if values.ndim == 1:
        return pa.array(values)
    single = values.astype(np.float32)
    if values.dtype.kind == "f" and (single == values).all():  # list<float> where it is exact, list<double> otherwise
        values = single
    offsets = np.arange(len(values) + 1) * values.shape[1]
    if values.size > np.iinfo(np.int32).max:
        return pa.LargeListArray.from_arrays(offsets, values.ravel())
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values.ravel())
