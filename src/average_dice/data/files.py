"""Log files: Parquet and NumPy archives in our format, and tables of users. Reading a file never executes code."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from average_dice.data.action_names import with_actions
from average_dice.data.categories import as_categorical
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.data.dataset import LoggedDataset
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.names import EPISODE_NAME, Names
from average_dice.data.tables.files import Mapped, is_csv, read_tables
from average_dice.data.unpacking import names_in_archive, read_archive, read_parquet
from average_dice.errors import DatasetError, did_you_mean, first_line
from average_dice.files import written_whole
from average_dice.listing import as_option

METADATA = "average_dice"  # the key of our metadata in a Parquet schema and in an archive

# What is declared about the columns, as JSON under keys of their own.
DECLARED = {"categorical": "average_dice.categorical", "action_features": "average_dice.action_features"}
NAMES = "average_dice.names"
BEHAVIOUR = "average_dice.behaviour"  # how the probabilities of the logged actions were estimated

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
        _check_file(file)
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
        raise _in_files(error, paths) from None
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
            known = dict.fromkeys(name for path in files for name in _column_names(path))
            meant = did_you_mean(absent[0], known)
            listed = f" The columns are {', '.join(known)}." if known else " Check the name."
            again = (
                f" If the log was converted from a table, keep it: average-dice convert … --extra {as_option(absent)}"
            )
            raise DatasetError(f"no column {', '.join(absent)}.{meant}{listed}{again}")
        names = _agreed("names", [columns.get(NAMES) for columns, _ in parts], files)
        given = {"categorical": _numbers(categorical, names), "action_features": action_features}
        declared = {
            name: _agreed(name, [columns.get(key) for columns, _ in parts], files)
            if given[name] is None
            else given[name]
            for name, key in DECLARED.items()
        }
        declared["categorical"] = () if declared["categorical"] is None else declared["categorical"]
        return LoggedDataset.from_columns(
            columns,
            _joined_metadata([metadata for _, metadata in parts]),
            names=names,
            extra={name: values for name, values in others.items() if values is not None},
            estimated_behaviour=_estimated([columns.get(BEHAVIOUR) for columns, _ in parts], behaviour_estimated),
            **declared,
        )
    except DatasetError as error:
        raise _in_files(error, given_paths) from None


def _read_tables(files: Sequence[Path], mapped: Mapped) -> LoggedDataset:
    """Reads files with the user's columns. Names and codes that a log of ours declares are kept."""
    if archives := [path for path in files if path.suffix != ".parquet" and not is_csv(path)]:
        kind = f"{archives[0].name}: columns of a {archives[0].suffix} file"
        raise DatasetError(f"{kind} cannot be mapped. Convert it to .parquet first.")
    log = read_tables(files, mapped)
    if all(_has_our_columns(path) for path in files) and mapped.observations is None and not log.names.observations:
        stored = _read_parquet(files[0], ())[0]
        names, declared = stored.get(NAMES), stored.get(DECLARED["categorical"])
        if names is not None and len(names.observations) in (0, log.observation.shape[1]):
            log = replace(log, names=replace(names, actions=names.actions or log.names.actions))
        if declared is not None and not mapped.categorical:
            log = replace(log, categorical=as_categorical(declared))
    return log


def _numbers(categorical: Sequence[int | str] | None, names: Names | None) -> list[int] | None:
    """The declared columns by their numbers; names are those of the log."""
    if categorical is None:
        return None
    known = () if names is None else names.observations
    found = []
    for one in categorical:
        if isinstance(one, str) and one in known:
            found.append(known.index(one))
        elif isinstance(one, str) and not one.lstrip("-").isdecimal():
            listed = (
                f" The observations are {', '.join(known)}."
                if known
                else " This log has no names: give numbers, separated by commas."
            )
            raise DatasetError(f"categorical names {one!r}, which is no observation.{did_you_mean(one, known)}{listed}")
        else:
            found.append(int(one))
    return found


def _in_files(error: DatasetError, paths: Sequence[str | Path]) -> DatasetError:
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
    except (pa.ArrowException, OSError, ValueError):
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


def _check_file(path: Path) -> None:
    if not _is_known(path):
        raise DatasetError(f"{path}: unknown kind of file. Give a .parquet, .npz, .csv or .hdf5 file.")
    if not path.is_file():
        raise DatasetError(f"{path}: no such file. Check the path.")
    if path.stat().st_size == 0:
        raise DatasetError(f"{path}: the file is empty. Write the log again.")


def _is_known(path: Path) -> bool:
    return path.suffix in READERS or is_csv(path)


def _read_parquet(path: Path, extra: Sequence[str]) -> tuple[Raw, Mapping[str, Any]]:
    try:
        # Reads the known columns only: extension types and nested data of other columns are never read.
        file = pq.ParquetFile(path)
        names = [name for name in (*REQUIRED, *OPTIONAL, EPISODE_NAME, *extra) if name in file.schema_arrow.names]
        table = read_parquet(path, names)
        stored = file.schema_arrow.metadata or {}
        text = stored.get(METADATA.encode(), b"{}")
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DatasetError(f"{path}: not a readable Parquet file ({first_line(error)}).") from None
    try:
        if repeated := sorted({name for name in table.column_names if table.column_names.count(name) > 1}):
            raise DatasetError(f"column {', '.join(repeated)} occurs more than once. Keep one of each name.")
        declared: Raw = {
            key: _declared(key, stored[key.encode()]) for key in DECLARED.values() if key.encode() in stored
        }
        if NAMES.encode() in stored:
            declared[NAMES] = Names.from_json(stored[NAMES.encode()])
        if BEHAVIOUR.encode() in stored:
            declared[BEHAVIOUR] = EstimatedBehaviour.from_json(stored[BEHAVIOUR.encode()])
        return {name: _from_arrow(name, table) for name in table.column_names} | declared, _metadata(text)
    except DatasetError as error:
        raise DatasetError(*(f"{path}: {text}" for text in error.problems)) from None


def _metadata(text: str | bytes) -> Mapping[str, Any]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise DatasetError(f"its metadata under {METADATA} is not a JSON object. Correct it, or remove it.")
    return metadata


def _declared(key: str, text: str | bytes) -> list[Any]:
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError):
        declared = None
    if not isinstance(declared, list):
        raise DatasetError(f"its metadata under {key} is not a JSON list. Correct it, or remove it.")
    return declared


def _to_store(dataset: LoggedDataset) -> dict[str, str]:
    """The metadata and what is declared, as JSON texts by their keys."""
    stored = {METADATA: json.dumps(dict(dataset.metadata), sort_keys=True)}
    if dataset.categorical:
        stored[DECLARED["categorical"]] = json.dumps(list(dataset.categorical))
    if dataset.action_features is not None:
        stored[DECLARED["action_features"]] = json.dumps(dataset.action_features.tolist())
    if dataset.names != Names():
        stored[NAMES] = dataset.names.to_json()
    if dataset.estimated_behaviour is not None:
        stored[BEHAVIOUR] = json.dumps(dataset.estimated_behaviour.to_dict())
    return stored


def _from_arrow(name: str, table: pa.Table) -> Any:
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # an empty table keeps its chunks
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.null_count:
        if name in OPTIONAL and column.null_count == len(column):
            return None
        raise DatasetError(_null_problem(name, table, column))
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


def _null_problem(name: str, table: pa.Table, column: pa.Array) -> str:
    row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
    place = [f"{key} {table.column(key)[row].as_py()}" for key in ("episode", "step") if key in table.column_names]
    where = ", ".join(place) or f"row {row}"
    if name in OPTIONAL:
        return f"{where}: {name} is missing here but known in other rows. Fill it in, or remove the whole column."
    return f"{where}: {name} is missing (null). Fill it in, or remove the whole episode."


def _read_npz(path: Path, extra: Sequence[str]) -> tuple[Raw, Mapping[str, Any]]:
    texts = (METADATA, *DECLARED.values(), NAMES, BEHAVIOUR)
    archive = read_archive(path, (*REQUIRED, *OPTIONAL, EPISODE_NAME, *extra, *texts))
    raw: Raw = {name: array for name, array in archive.items() if name not in texts}
    stored = {name: str(archive[name]) for name in texts if name in archive}
    text = stored.pop(METADATA, "{}")
    try:
        if NAMES in stored:
            raw[NAMES] = Names.from_json(stored.pop(NAMES))
        if BEHAVIOUR in stored:
            raw[BEHAVIOUR] = EstimatedBehaviour.from_json(stored.pop(BEHAVIOUR))
        return raw | {key: _declared(key, found) for key, found in stored.items()}, _metadata(text)
    except DatasetError as error:
        raise DatasetError(*(f"{path}: {text}" for text in error.problems)) from None


def _write_parquet(dataset: LoggedDataset, path: Path) -> None:
    arrays = {}
    for name in (*REQUIRED, *OPTIONAL):
        if (values := getattr(dataset, name)) is not None:
            arrays[name] = _to_arrow(values)
    arrays |= {name: pa.array(values) for name, values in dataset.extra.items()}
    table = pa.table(arrays).replace_schema_metadata(_to_store(dataset))
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


def _write_npz(dataset: LoggedDataset, path: Path) -> None:
    arrays = {name: getattr(dataset, name) for name in (*REQUIRED, *OPTIONAL)}
    arrays = {name: values for name, values in arrays.items() if values is not None}
    arrays |= {name: values.astype(str) if values.dtype == object else values for name, values in dataset.extra.items()}
    arrays |= {key: np.array(text) for key, text in _to_store(dataset).items()}
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
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".hdf5": _read_hdf5,
    ".h5": _read_hdf5,
}
WRITERS: dict[str, Callable[[LoggedDataset, Path], None]] = {".parquet": _write_parquet, ".npz": _write_npz}


def _joined(parts: list[Raw], paths: Sequence[str | Path], names: Sequence[str]) -> Raw:
    if len(parts) == 1:
        return {name: parts[0].get(name) for name in names}
    joined: Raw = {}
    for name in names:
        values: list[Any] = [part.get(name) for part in parts]
        absent = [str(path) for path, value in zip(paths, values, strict=True) if value is None]
        if absent and len(absent) < len(parts):
            raise DatasetError(f"{name} is missing in {', '.join(absent)} but not in the other files. Add it there.")
        if absent:
            joined[name] = None
        elif all(isinstance(value, np.ndarray) and value.shape[1:] == values[0].shape[1:] for value in values):
            if len({value.dtype.kind for value in values}) > 1:
                raise DatasetError(f"{name} has different types in different files. Convert it to one type.")
            joined[name] = np.concatenate(values)
        else:  # lists of different lengths: `as_columns` names the row
            joined[name] = [row for value in values for row in (value if isinstance(value, list) else value.tolist())]
    return joined


def _joined_metadata(parts: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return parts[0] if all(part == parts[0] for part in parts) else {"parts": [dict(part) for part in parts]}


def _estimated(records: list[EstimatedBehaviour | None], by_user: bool) -> EstimatedBehaviour | None:
    """The record of the files; if they differ, or only some have one, the estimates of the whole have none."""
    if all(one == records[0] for one in records) and records[0] is not None:
        return records[0]
    return EstimatedBehaviour() if by_user or any(one is not None for one in records) else None


def _agreed(name: str, declared: list[Any], paths: Sequence[str | Path]) -> Any:
    """What all files declare."""
    for path, one in zip(paths, declared, strict=True):
        if one != declared[0]:
            raise DatasetError(
                f"{name} is not the same in {paths[0]} and in {path}. Give it when reading: read_dataset(…, {name}=…)."
            )
    return declared[0]
