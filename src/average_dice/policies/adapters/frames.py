"""Observations as a data frame with the log's names, for models that were trained on one."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError, SettingError
from average_dice.policies.adapters.log_names import column_number
from average_dice.policies.base import Observations

TRUTHS = {"true": True, "false": False}


def as_frame(observations: Observations, data: LoggedDataset, columns: Sequence[str] | None = None) -> Any:
    """A pandas DataFrame: codes of categories become their names, other columns stay numbers.

    Names that are all numbers, in their order, become numbers; `true` and `false` become booleans. Logs from data
    frames have such names where the frame had numbers and booleans.

    - `columns`: the wanted ones, in this order; all of them by default. If the log has no names, these are its columns.
    """
    if find_spec("pandas") is None:
        raise SettingError("a policy with named columns needs pandas. Install it: pip install pandas.")
    if columns is None:
        columns = [data.names.observation(column) for column in range(observations.shape[1])]
    numbers = column_numbers(columns, data)
    content = {
        name: _column(observations[:, number], number, data) for name, number in zip(columns, numbers, strict=True)
    }
    return pa.table(content).to_pandas()


def column_numbers(columns: Sequence[str], data: LoggedDataset) -> list[int]:
    """The observation columns of these names. A log without names has these names, if they are as many."""
    if data.names.observations:
        return [column_number(name, data, "the policy") for name in columns]
    width = data.observation.shape[1]
    if all(name == data.names.observation(number) for number, name in enumerate(columns)) or len(columns) == width:
        return list(range(len(columns)))
    raise PolicyError(
        f"the policy takes {len(columns)} named columns, such as {columns[0]!r}, and the log has {width} without "
        "names. Give the log names of its observation columns."
    )


def _column(values: np.ndarray, number: int, data: LoggedDataset) -> Any:
    known = data.names.categories.get(number)
    if not known:
        return values
    texts = [data.names.category(number, float(value)) for value in values]
    if {one.lower() for one in known} <= set(TRUTHS):
        return [TRUTHS.get(text.lower()) for text in texts]
    if _are_numbers(known):
        return np.array(texts).astype(np.float64)
    return texts


def _are_numbers(names: Sequence[str]) -> bool:
    """Whether all are numbers as Python writes them, in increasing order; a postcode such as 01234 is not."""
    try:
        found = [float(name) for name in names]
    except ValueError:
        return False
    as_written = all(name in (repr(one), f"{one:.0f}") for name, one in zip(names, found, strict=True))
    return as_written and found == sorted(found)
