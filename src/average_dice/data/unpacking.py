"""Files that unpack to much more than their size: their content is estimated before it is read."""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from average_dice import memory
from average_dice.errors import DatasetError, NotEnoughMemory

PER_BYTE = 2  # memory for each byte of a decoded column: the log is a copy
PER_VALUE = 8  # bytes of memory for each value

# What NumPy and zipfile raise on damaged or hostile archives.
DAMAGED = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_archive(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a NumPy archive, all or those of these names. Executes nothing: arrays of objects are refused."""
    if not zipfile.is_zipfile(path):
        raise DatasetError(f"{path}: not a NumPy archive. Write it with write_dataset, or with numpy.savez.")
    try:
        members = names_in_archive(path)
        wanted = [name for name in members if names is None or name in names]
        memory.require(sum(members[name] for name in wanted), f"{path.name}: reading it")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in wanted if name in arrays.files}
    except NotEnoughMemory:
        raise
    except DAMAGED:
        raise DatasetError(f"{path}: not a readable NumPy archive of plain arrays. Write it again.") from None
    if not all(isinstance(array, np.ndarray) for array in found.values()):
        raise DatasetError(f"{path}: holds something else than arrays. Write it again with numpy.savez.")
    return found


def names_in_archive(path: Path) -> dict[str, int]:
    """The arrays of a NumPy archive, with the bytes that each takes when it is unpacked."""
    with zipfile.ZipFile(path) as archive:
        return {one.filename.removesuffix(".npy"): one.file_size for one in archive.infolist()}


def read_parquet(path: Path, names: Sequence[str]) -> pa.Table:
    """These columns of a Parquet file, batch by batch: a constant column of any length takes a few bytes.

    What a file says about its own size may be wrong, and asking for it column by column can abort the process.
    """
    file = pq.ParquetFile(path)
    memory.require(file.metadata.num_rows * len(names) * PER_VALUE, f"{path.name}: reading it")
    batches, size = [], 0
    for batch in file.iter_batches(columns=list(names)):
        batches.append(batch)
        size += batch.nbytes
        memory.require(PER_BYTE * size, f"{path.name}: reading it")
    if batches:
        return pa.Table.from_batches(batches)
    return file.schema_arrow.empty_table().select(list(names))
