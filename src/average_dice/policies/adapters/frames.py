"""Observations as a data frame with the log's names, for models that were trained on one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError, SettingError
from average_dice.policies.adapters.log_names import column_number
from average_dice.policies.base import Observations

TRUTHS = {"True": True, "False": False}


def as_frame(observations: Observations, data: LoggedDataset, columns: Sequence[str] | None = None) -> Any:
    """A pandas DataFrame: codes of categories become their names, other columns stay numbers.

    - `columns`: the wanted ones, in this order; all of them by default. If the log has no names, these are its columns.
    """
    try:
        import pandas
    except ModuleNotFoundError:
        raise SettingError("a policy with named columns needs pandas. Install it: pip install pandas.") from None

    if columns is None:
        columns = [data.names.observation(column) for column in range(observations.shape[1])]
    numbers = column_numbers(columns, data)
    content = {
        name: _column(observations[:, number], number, data) for name, number in zip(columns, numbers, strict=True)
    }
    return pandas.DataFrame(content)


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
    if set(known) <= set(TRUTHS):
        return np.array([TRUTHS[text] for text in texts])
    return np.array(texts, object)
