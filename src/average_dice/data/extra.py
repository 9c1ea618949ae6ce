"""Extra columns of a log: what estimators do not use by themselves, such as a second reward or a site."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.errors import DatasetError

Extra = dict[str, np.ndarray]


def as_extra(given: Mapping[str, Any], num_rows: int) -> Extra:
    """Every extra column as an array of numbers (float64) or of texts, one for each row."""
    return {name: _column(name, values, num_rows) for name, values in given.items()}


def _column(name: str, values: Any, num_rows: int) -> np.ndarray:
    if name in (*REQUIRED, *OPTIONAL):
        raise DatasetError(f"{name} is a column of every log and cannot be an extra one. Rename it.")
    array = np.asarray(values)
    if array.shape != (num_rows,):
        raise DatasetError(
            f"extra column {name} has shape {array.shape}. Give one value for each of {num_rows:,} rows."
        )
    return array.astype(np.float64) if array.dtype.kind in "biuf" else array.astype(str).astype(object)
