"""Files that unpack to much more than their size: their content is estimated before it is read."""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from average_dice import memory
from average_dice.errors import DatasetError

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}  # bytes of a decoded value
OF_TEXT = 16  # more or less

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


def require_room(path: Path, num_bytes: int) -> None:
    """Raises if a file would unpack to more than the machine can evaluate."""
    most = max(memory.limit(), memory.available() // memory.SHARE)
    if num_bytes > most:
        raise DatasetError(
            f"{path}: it would take {memory.shown(num_bytes)} of memory, and {memory.shown(most)} may be used. "
            "Read fewer rows, or use a machine with more memory."
        )


def read_archive(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a NumPy archive, all or those of these names. Executes nothing: arrays of objects are refused."""
    if not zipfile.is_zipfile(path):
        raise DatasetError(f"{path}: not a NumPy archive. Write it with write_dataset, or with numpy.savez.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {one.filename.removesuffix(".npy"): one.file_size for one in archive.infolist()}
        wanted = [name for name in members if names is None or name in names]
        require_room(path, sum(members[name] for name in wanted))
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in wanted if name in arrays.files}
    except DatasetError:
        raise
    except DAMAGED:
        raise DatasetError(f"{path}: not a readable NumPy archive of plain arrays. Write it again.") from None
    if not all(isinstance(array, np.ndarray) for array in found.values()):
        raise DatasetError(f"{path}: holds something else than arrays. Write it again with numpy.savez.")
    return found


def require_room_for_parquet(path: Path, file: pq.ParquetFile, names: Sequence[str]) -> None:
    """Raises if these columns would decode to too much: a constant column of any length takes a few bytes."""
    total = 0
    for group in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(group)
        for place in range(row_group.num_columns):
            column = row_group.column(place)
            if column.path_in_schema.partition(".")[0] in names:
                width = WIDTHS.get(column.physical_type, OF_TEXT)
                total += max(column.total_uncompressed_size, column.num_values * width)
    require_room(path, total)
