"""Sorting a log that does not fit into memory, by DuckDB: it writes sorted runs to disk and merges them.

DuckDB gets the rows from our own reader, not from its own: that one holds whole column chunks, and refuses a file with
row groups larger than its limit.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from average_dice import memory
from average_dice.data.parts import Parts, Segment, state_of
from average_dice.data.survey import in_order
from average_dice.errors import DatasetError, SettingError, first_line, needs_extra
from average_dice.files import make_folder, written_whole

# DuckDB's limit is this share of ours, and within these bounds: the process takes about 150 MiB more than it, and it
# sorts four million rows no faster with 256 MiB than with 128.
SHARE, LEAST, MOST = 4, 2**27, 2**28
ROW_GROUP = 2**15  # rows: few, so that a reader needs little memory


def sorted_copy(parts: Parts, folder: Path) -> Parts:
    """A file with the same rows sorted by episode and step: written, or found in `folder` if no source has changed."""
    make_folder(folder)
    path = folder / f"sorted-{parts.fingerprint}.parquet"
    if not path.is_file():
        _sort(parts, path)
    damaged = DatasetError(f"{path}: this sorted copy of the log is damaged. Remove it, and open the log again.")
    try:
        groups = tuple(range(pq.ParquetFile(path).num_row_groups))
    except (pa.ArrowException, OSError):
        raise damaged from None
    state = state_of(path)
    assert state is not None
    copy = replace(parts, segments=(Segment(path, groups),), state=(state,), is_copy=True)
    if (segments := in_order(copy)) is None:
        raise damaged
    return replace(copy, segments=segments)


def _sort(parts: Parts, path: Path) -> None:
    try:
        with needs_extra("large"):
            import duckdb
    except SettingError as error:
        raise SettingError(
            f"{', '.join(parts.given)}: the rows are not sorted by episode and step, and sorting a log on disk has "
            f"requirements: {error} Or sort the rows before you write them."
        ) from None
    limit = min(max(memory.limit() // SHARE, LEAST), MOST)
    problems: list[BaseException] = []
    spill = tempfile.mkdtemp(prefix=".sorting-", dir=path.parent)
    config = {
        "memory_limit": f"{limit // 2**20}MiB",
        "temp_directory": spill,
        "threads": 1,  # a second one takes more memory, and waits for the reader
        "autoinstall_known_extensions": False,  # nothing is downloaded
    }
    try:
        with written_whole(path) as temporary, duckdb.connect(config=config) as connection:
            connection.execute("SET enable_progress_bar = false")  # it would write to standard output
            rows = pa.RecordBatchReader.from_batches(parts.schema, _caught(parts, problems))
            connection.register("log", rows)
            target = str(temporary).replace("'", "''")
            options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"
            connection.execute(f"COPY (SELECT * FROM log ORDER BY episode, step) TO '{target}' ({options})")
    except duckdb.Error as error:
        if problems:
            raise problems[0] from None
        raise SettingError(
            f"{', '.join(parts.given)}: sorting the rows failed ({first_line(error)}). It needs {memory.shown(limit)} "
            f"of memory, and at least twice the size of the log as free space in {path.parent}: give another folder."
        ) from None
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _caught(parts: Parts, problems: list[BaseException]) -> Iterator[pa.RecordBatch]:
    """The rows; DuckDB would report an error of the reader in words of its own."""
    try:
        for _, batch in parts.batches():
            yield batch
    except Exception as error:
        problems.append(error)
        raise
