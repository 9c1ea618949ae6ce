"""The columns of a log: arrays, lists and columns of data frames become one array each."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from average_dice.errors import DatasetError

REQUIRED = (
    "episode",
    "step",
    "observation",
    "action",
    "reward",
    "next_observation",
    "terminated",
    "truncated",
)
OPTIONAL = ("behaviour_log_prob", "target_log_prob", "action_mask")

Columns = dict[str, np.ndarray]


def as_columns(raw: Mapping[str, Any]) -> Columns:
    """Every column as an array of its own type: int64, bool or float64, one row for each transition.

    Optional columns that are None or absent are left out. Rows are not sorted, and values are not checked here.
    """
    given = {name: values for name, values in raw.items() if values is not None}
    if missing := [name for name in REQUIRED if name not in given]:
        raise DatasetError(f"missing column: {', '.join(missing)}. A log needs {', '.join(REQUIRED)}.")

    given = {name: _plain(values) for name, values in given.items()}
    if single := [name for name, values in given.items() if not _has_rows(values)]:
        raise DatasetError(f"{', '.join(single)} must have one value for each transition, not a single value.")
    rows = {name: len(given[name]) for name in (*REQUIRED, *OPTIONAL) if name in given}
    if len(set(rows.values())) > 1:
        sizes = ", ".join(f"{name} has {size}" for name, size in rows.items())
        raise DatasetError(f"columns differ in length: {sizes}. Give every column one value for each transition.")
    if rows["episode"] == 0:
        raise DatasetError("the log is empty: it has no transition. Check how it was written.")

    columns = {name: as_integers(name, given[name]) for name in ("episode", "step")}

    def place(row: int) -> str:
        return f"episode {columns['episode'][row]}, step {columns['step'][row]}"

    for name in ("observation", "next_observation"):
        columns[name] = _vectors(name, given[name], place)
    if (inputs := columns["observation"].shape[1]) != (after := columns["next_observation"].shape[1]):
        raise DatasetError(f"observation has {inputs} numbers and next_observation {after}: give both the same size.")
    columns["action"] = _actions(given["action"], place)
    columns["reward"] = _numbers("reward", given["reward"])
    for name in ("terminated", "truncated"):
        columns[name] = _flags(name, given[name], place)
    for name in ("behaviour_log_prob", "target_log_prob"):
        if name in given:
            columns[name] = _numbers(name, given[name])
    if "action_mask" in given:
        columns["action_mask"] = _mask(given["action_mask"], place)
    return columns


def _has_rows(values: Any) -> bool:
    return values.ndim > 0 if isinstance(values, np.ndarray) else hasattr(values, "__len__")


def _plain(values: Any) -> Any:
    """Turns arrays of objects (vectors in data frames) and lists of arrays into plain lists."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = list(values)
    if isinstance(values, list) and any(isinstance(row, np.ndarray) for row in values):
        return [row.tolist() if isinstance(row, np.ndarray) else row for row in values]
    return values


def _array(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # ragged lists
        raise DatasetError(f"{name} has rows of different shapes. Give one number in every row.") from None


def as_integers(name: str, values: Any) -> np.ndarray:
    """A column of integers, as int64."""
    array = _array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DatasetError(
            f"{name} must be one integer per row, but is {_kind(array)}. Number episodes and steps 0, 1, 2, …"
        )
    if array.dtype.kind == "u" and (array > np.iinfo(np.int64).max).any():
        raise DatasetError(f"{name} holds numbers too large for 64-bit integers. Number them 0, 1, 2, …")
    return array.astype(np.int64)


def _flags(name: str, values: Any, place: Any) -> np.ndarray:
    array = _array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise DatasetError(f"{name} must be true or false in every row, but is {_kind(array)}.")
    wrong = ~np.isin(array, (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise DatasetError(f"{place(row)}: {name} is {array[row]}. It must be true or false (or 1 or 0).")
    return array.astype(bool)


def _numbers(name: str, values: Any) -> np.ndarray:
    array = _array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise DatasetError(f"{name} must be one number per row, but is {_kind(array)}.")
    return array.astype(np.float64)


def _vectors(name: str, values: Any, place: Any) -> np.ndarray:
    array = _rectangle(name, values, place)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "iufb":
        raise DatasetError(f"{name} must be one list of numbers per row, but is {_kind(array)}.")
    if array.shape[1] == 0:
        raise DatasetError(f"{name} is an empty list in every row. Give at least one number.")
    return array.astype(np.float64)


def _actions(values: Any, place: Any) -> np.ndarray:
    """Integers are discrete actions; floats, single or in lists, are continuous ones."""
    array = _rectangle("action", values, place)
    if array.dtype.kind in "iub" and (array.ndim == 1 or array.shape[1:] == (1,)):
        return as_integers("action", array.reshape(-1).astype(array.dtype if array.dtype.kind != "b" else np.int64))
    if array.dtype.kind != "f" or array.ndim not in (1, 2) or 0 in array.shape:
        raise DatasetError(
            f"action must be one integer per row (discrete) or one list of floats per row (continuous), "
            f"but is {_kind(array)}."
        )
    return np.atleast_2d(array.T).T.astype(np.float64)


def _mask(values: Any, place: Any) -> np.ndarray:
    """One flag for each action, in every row."""
    array = _rectangle("action_mask", values, place)
    if array.ndim != 2 or array.dtype.kind not in "biufO":  # O: a list with a null
        raise DatasetError(
            f"action_mask must be one list of true or false per row, a flag for each action, but is {_kind(array)}."
        )
    wrong = ~np.isin(array, (0, 1))
    if wrong.any():
        row, action = (int(index) for index in np.argwhere(wrong)[0])
        raise DatasetError(
            f"{place(row)}: action_mask[{action}] is {array[row, action]}. It must be true or false (or 1 or 0)."
        )
    return array.astype(bool)


def _rectangle(name: str, values: Any, place: Any) -> np.ndarray:
    if isinstance(values, Sequence) and any(isinstance(row, Sequence) for row in values):
        sizes = [len(row) if isinstance(row, Sequence) else -1 for row in values]
        usual = max(set(sizes), key=sizes.count)
        for row, size in enumerate(sizes):
            if size != usual:
                raise other_length(place(row), name, "no list" if size < 0 else f"{size} numbers", usual)
    return _array(name, values)


def other_length(place: str, name: str, found: str, usual: int) -> DatasetError:
    """The error for a vector that is longer or shorter than those of other rows."""
    return DatasetError(
        f"{place}: {name} has {found} where other rows have {usual}. Every {name} must have the same length."
    )


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}"
