"""Log files: Parquet and NumPy archives in our format, and tables of users. Reading a file never executes code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from average_dice.data.action_names import with_actions
from average_dice.data.categories import as_categorical
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.data.dataset import LoggedDataset
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.names import EPISODE_NAME, Names
from average_dice.data.parquet import UNREADABLE, read_parquet_log, write_parquet_log
from average_dice.data.stored import (
    DECLARED,
    METADATA,
    NAMES,
    TEXTS,
    declarations,
    from_store,
    joined_metadata,
    to_store,
)
from average_dice.data.tables.files import Mapped, is_csv, read_tables
from average_dice.data.unpacking import names_in_archive, read_archive
from average_dice.errors import DatasetError, did_you_mean
from average_dice.files import written_whole
from average_dice.listing import as_option

MOST_PATHS = 5  # in a message

Raw = dict[str, Any]
Reader = Callable[[Path, Sequence[str]], tuple[Raw, Mapping[str, Any]]]  # of a file, with these extra columns


def read_dataset(
    *paths: str | Path,
    columns: Mapping[str, Any] | None = None,
    observations: Sequence[str] | None = None,
    categorical: Sequence[int | str] | None = None,
    action_features: Any = None,
    actions: Sequence[Any] | None = None,
    extra: Sequence[str] = (),
    impute: str | None = None,
    behaviour_estimated: bool = False,
) -> LoggedDataset:
    """Reads a log from one file, or from several files with parts of it. Rows may be in any order.

    Files are `.parquet`, `.npz`, `.csv` (also `.csv.gz` and `.tsv`), or `.hdf5` (`.h5`) in the style of D4RL or Minari;
    folders and patterns such as `logs/*.csv` are all files in them. Parts are joined before they are checked, so an
    episode may span several files.
    `categorical` (observation columns that hold codes, by number or name) and `action_features` replace those of the
    files. `extra`: names of other columns to read, such as a second reward. `behaviour_estimated`: the probabilities of
    the logged actions are your own estimates, not what was recorded.

    Tables with other columns than ours need `columns`, from our names to those of the file, and `observations`. See
    `from_dataframe` for what can be mapped, and for `actions` and `impute`. What has our name needs no mapping.

    >>> data = read_dataset("log.parquet")                      # doctest: +SKIP
    >>> data = read_dataset("january.parquet", "february.npz")  # doctest: +SKIP
    >>> data = read_dataset(                                    # doctest: +SKIP
    ...     "visits.csv",
    ...     columns={"episode": "patient_id", "time": "day", "action": "drug", "reward": "outcome", "terminated": True},
    ...     observations=["age", "ward"],
    ... )
    """
    if not paths:
        raise DatasetError("no file given. Give at least one .parquet, .npz or .csv file.")
    files = [file for path in paths for file in expanded(Path(path))]
    for file in files:
        check_file(file)
    is_mapped = columns is not None or observations is not None or impute is not None
    if actions is not None and not is_mapped and all(map(_has_our_columns, files)):
        log = _read_logs(files, paths, categorical, action_features, extra, behaviour_estimated)
        if log.names.actions and log.is_discrete:
            return with_actions(log, actions)
    is_mapped = is_mapped or actions is not None
    try:
        if is_mapped or not all(map(_has_our_columns, files)):
            mapped = Mapped(columns or {}, observations, categorical or (), extra, impute, actions)
            log = _read_tables(files, mapped)
            log = log if action_features is None else replace(log, action_features=action_features)
            return replace(log, estimated_behaviour=EstimatedBehaviour()) if behaviour_estimated else log
    except DatasetError as error:
        raise in_files(error, paths) from None
    return _read_logs(files, paths, categorical, action_features, extra, behaviour_estimated)


def _read_logs(
    files: Sequence[Path],
    given_paths: Sequence[str | Path],
    categorical: Sequence[int | str] | None,
    action_features: Any,
    extra: Sequence[str],
    behaviour_estimated: bool,
) -> LoggedDataset:
    """Reads files in our own format."""
    parts = [READERS[path.suffix](path, extra) for path in files]
    try:
        columns = _joined([columns for columns, _ in parts], files, (*REQUIRED, *OPTIONAL))
        others = _joined([columns for columns, _ in parts], files, (*extra, EPISODE_NAME))
        if absent := [name for name in extra if others[name] is None]:
            raise no_such_columns(absent, [name for path in files for name in _column_names(path)])
        return LoggedDataset.from_columns(
            columns,
            joined_metadata([metadata for _, metadata in parts]),
            extra={name: values for name, values in others.items() if values is not None},
            **declarations(
                [columns for columns, _ in parts],
                files,
                categorical=categorical,
                action_features=action_features,
                behaviour_estimated=behaviour_estimated,
            ),
        )
    except DatasetError as error:
        raise in_files(error, given_paths) from None


def _read_tables(files: Sequence[Path], mapped: Mapped) -> LoggedDataset:
    """Reads files with the user's columns. Names and codes that a log of ours declares are kept."""
    if archives := [path for path in files if path.suffix != ".parquet" and not is_csv(path)]:
        kind = f"{archives[0].name}: columns of a {archives[0].suffix} file"
        raise DatasetError(f"{kind} cannot be mapped. Convert it to .parquet first.")
    log = read_tables(files, mapped)
    if all(_has_our_columns(path) for path in files) and mapped.observations is None and not log.names.observations:
        stored = read_parquet_log(files[0], ())[0]
        names, declared = stored.get(NAMES), stored.get(DECLARED["categorical"])
        if names is not None and len(names.observations) in (0, log.observation.shape[1]):
            log = replace(log, names=replace(names, actions=names.actions or log.names.actions))
        if declared is not None and not mapped.categorical:
            log = replace(log, categorical=as_categorical(declared))
    return log


def no_such_columns(absent: Sequence[str], known: Sequence[str]) -> DatasetError:
    """The error for extra columns that no file has."""
    known = list(dict.fromkeys(known))
    listed = f" The columns are {', '.join(known)}." if known else " Check the name."
    again = f" If the log was converted from a table, keep it: average-dice convert … --extra {as_option(absent)}"
    return DatasetError(f"no column {', '.join(absent)}.{did_you_mean(absent[0], known)}{listed}{again}")


def in_files(error: DatasetError, paths: Sequence[str | Path]) -> DatasetError:
    """The same error with the files before each sentence."""
    where = ", ".join(map(str, paths[:MOST_PATHS])) + (", …" if len(paths) > MOST_PATHS else "")
    return DatasetError(*(f"{where}: {text}" for text in error.problems))


def expanded(path: Path) -> list[Path]:
    """The file itself; all log files in a folder; all files that a pattern such as logs/*.csv describes."""
    if path.is_dir():
        inside = sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith((".", "_")))
        if not (found := [one for one in inside if _is_known(one)]):
            raise DatasetError(f"{path}: no .parquet, .npz or .csv file in this folder.")
        return found
    if any(one in str(path) for one in "*?[") and not path.exists():
        if not (found := [Path(one) for one in sorted(glob(str(path), recursive=True)) if Path(one).is_file()]):
            raise DatasetError(f"{path}: no file has such a name. Check the pattern.")
        return found
    return [path]


def _has_our_columns(path: Path) -> bool:
    """Whether a file has all columns of a log by our names; an unreadable one is reported by its reader."""
    if path.suffix != ".parquet":
        return path.suffix in READERS
    try:
        return set(REQUIRED) <= set(pq.ParquetFile(path).schema_arrow.names)
    except UNREADABLE:
        return True


def write_dataset(dataset: LoggedDataset, path: str | Path) -> None:
    """Writes a log to a `.parquet` or `.npz` file. The file appears whole or not at all."""
    check_suffix(path)
    with written_whole(path) as temporary:
        WRITERS[Path(path).suffix](dataset, temporary)


def _column_names(path: Path) -> list[str]:
    """All columns of a file that could be read."""
    match path.suffix:
        case ".parquet":
            return [str(name) for name in pq.ParquetFile(path).schema_arrow.names]
        case ".npz":
            return [name for name in names_in_archive(path) if not name.startswith(METADATA)]
    return []


def check_suffix(path: str | Path) -> None:
    """Raises unless a log can be written to a file of that name."""
    if Path(path).suffix not in WRITERS:
        raise DatasetError(f"{path}: unknown kind of file. Name it .parquet or .npz.")


def check_file(path: Path) -> None:
    """Raises unless it is a file of a known kind with some content."""
    if not path.suffix and not path.exists():
        raise DatasetError(f"{path}: no such file or folder. Check the path.")
    if not _is_known(path):
        raise DatasetError(f"{path}: unknown kind of file. Give a .parquet, .npz, .csv or .hdf5 file.")
    if not path.is_file():
        raise DatasetError(f"{path}: no such file. Check the path.")
    if path.stat().st_size == 0:
        raise DatasetError(f"{path}: the file is empty. Write the log again.")


def _is_known(path: Path) -> bool:
    return path.suffix in READERS or is_csv(path)


def _read_npz(path: Path, extra: Sequence[str]) -> tuple[Raw, Mapping[str, Any]]:
    archive = read_archive(path, (*REQUIRED, *OPTIONAL, EPISODE_NAME, *extra, *TEXTS))
    raw: Raw = {name: array for name, array in archive.items() if name not in TEXTS}
    try:
        declared, metadata = from_store({name: str(archive[name]) for name in TEXTS if name in archive})
        return raw | declared, metadata
    except DatasetError as error:
        raise DatasetError(*(f"{path}: {text}" for text in error.problems)) from None


def _write_npz(dataset: LoggedDataset, path: Path) -> None:
    arrays = {name: getattr(dataset, name) for name in (*REQUIRED, *OPTIONAL)}
    arrays = {name: values for name, values in arrays.items() if values is not None}
    arrays |= {name: values.astype(str) if values.dtype == object else values for name, values in dataset.extra.items()}
    arrays |= {key: np.array(text) for key, text in to_store(dataset).items()}
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _read_hdf5(path: Path, extra: Sequence[str]) -> tuple[Raw, Mapping[str, Any]]:
    """Arrays in the style of D4RL, or the file of a data set of Minari."""
    from average_dice.data.importers.hdf5_log import from_hdf5

    log = from_hdf5(path, extra)
    raw: Raw = {name: getattr(log, name) for name in (*REQUIRED, *OPTIONAL)} | dict(log.extra)
    if log.categorical:
        raw[DECLARED["categorical"]] = list(log.categorical)
    if log.names != Names():
        raw[NAMES] = log.names
    return raw, log.metadata


READERS: dict[str, Reader] = {
    ".parquet": read_parquet_log,
    ".npz": _read_npz,
    ".hdf5": _read_hdf5,
    ".h5": _read_hdf5,
}
WRITERS: dict[str, Callable[[LoggedDataset, Path], None]] = {".parquet": write_parquet_log, ".npz": _write_npz}


def missing_in(name: str, paths: Sequence[str]) -> DatasetError:
    """The error for a column that only some files have."""
    return DatasetError(f"{name} is missing in {', '.join(paths)} but not in the other files. Add it there.")


def different_types(name: str) -> DatasetError:
    """The error for a column that holds integers in one file and floats in another, for example."""
    return DatasetError(f"{name} has different types in different files. Convert it to one type.")


def _joined(parts: list[Raw], paths: Sequence[str | Path], names: Sequence[str]) -> Raw:
    if len(parts) == 1:
        return {name: parts[0].get(name) for name in names}
    joined: Raw = {}
    for name in names:
        values: list[Any] = [part.get(name) for part in parts]
        absent = [str(path) for path, value in zip(paths, values, strict=True) if value is None]
        if absent and len(absent) < len(parts):
            raise missing_in(name, absent)
        if absent:
            joined[name] = None
        elif all(isinstance(value, np.ndarray) and value.shape[1:] == values[0].shape[1:] for value in values):
            if len({value.dtype.kind for value in values}) > 1:
                raise different_types(name)
            joined[name] = np.concatenate(values)
        else:  # lists of different lengths: `as_columns` names the row
            joined[name] = [row for value in values for row in (value if isinstance(value, list) else value.tolist())]
    return joined
