"""Features of discrete actions: one row for each action, in the order of their numbers."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.data.unpacking import read_archive
from average_dice.errors import DatasetError

ActionFeatures = Float[np.ndarray, "choice feature"]


def as_action_features(given: Any, actions: np.ndarray) -> ActionFeatures:
    """The features as an array [action, feature], checked against the actions of the log."""
    try:
        found = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise DatasetError("action_features must be one list of numbers for each action.") from None
    if actions.ndim != 1:
        raise DatasetError(
            "action_features are for discrete actions, and this log has continuous ones. Leave them out."
        )
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or 0 in found.shape:
        raise DatasetError(f"action_features must be one list of numbers for each action, not of shape {found.shape}.")
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).any(axis=1).argmax())
        raise DatasetError(f"action_features of action {row} hold {found[row]}. Give finite numbers.")
    if (largest := int(actions.max())) >= len(found):
        raise DatasetError(
            f"action_features have {len(found)} rows, and the log has action {largest}. Give one row for each action, "
            "in the order 0, 1, 2, …"
        )
    return found


def read_action_features(path: str | Path) -> ActionFeatures:
    """Features of actions from a `.csv` file with one row for each action, or an `.npz` file with one array.

    The first line of a CSV file may hold the names of the columns.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix not in readers:
        raise DatasetError(f"{path}: unknown kind of file for action features. Give a .csv or .npz file.")
    if not path.is_file():
        raise DatasetError(f"{path}: no such file. Check the path.")
    return readers[path.suffix](path)


def _read_csv(path: Path) -> ActionFeatures:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [(number, line) for number, line in enumerate(csv.reader(file), start=1) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: not a readable CSV file ({error}).") from None
    if lines and not any(_is_number(cell) for cell in lines[0][1]):
        lines = lines[1:]  # the names of the columns
    if not lines:
        raise DatasetError(f"{path}: no row of numbers. Give one row for each action.")
    width = len(lines[0][1])
    for number, line in lines:
        if len(line) != width:
            raise DatasetError(f"{path}, line {number}: {len(line)} columns where the first row has {width}.")
        if wrong := [cell for cell in line if not _is_number(cell)]:
            raise DatasetError(f"{path}, line {number}: {wrong[0]!r} is not a number. Give numeric columns only.")
    return np.array([[float(cell) for cell in line] for _, line in lines])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_npz(path: Path) -> ActionFeatures:
    arrays = list(read_archive(path).values())
    if len(arrays) != 1:
        raise DatasetError(f"{path}: {len(arrays)} arrays. Give an archive with one array [action, feature].")
    if arrays[0].dtype.kind not in "iufb" or arrays[0].ndim not in (1, 2):
        raise DatasetError(f"{path}: {arrays[0].dtype} of shape {arrays[0].shape}. Give numbers [action, feature].")
    return arrays[0].astype(np.float64)
