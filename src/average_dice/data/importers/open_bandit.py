"""Logs in the style of the Open Bandit Dataset: a recommended item, a click and a propensity score in each row."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from average_dice.data.dataset import LoggedDataset
from average_dice.data.names import Names
from average_dice.errors import DatasetError, first_line

ITEM, CLICK, PROPENSITY, POSITION = "item_id", "click", "propensity_score", "position"
CODES = "user_feature_"  # the start of columns with categories, as hashes or texts
NUMBERS = ("user-item_affinity_", "item-user_affinity_")  # the starts of columns with numbers


def from_open_bandit(data: Any, *, action_features: Any = None) -> LoggedDataset:
    """A log of single steps from a CSV file or a data frame with the columns of the Open Bandit Dataset.

    - `item_id`: the action. `click`: the reward. `propensity_score`: μ(a|s), whose logarithm is the behaviour_log_prob.
    - `position`: a categorical observation, as are `user_feature_0`, …; `user-item_affinity_0`, … are numbers.
    - `action_features`: one row of numbers for each item, if they are known.

    Other columns, such as `timestamp`, are not read. Without any of the observations there is one that is always 0.
    """
    table = _table(data)
    if absent := [name for name in (ITEM, CLICK, PROPENSITY) if name not in table.column_names]:
        raise DatasetError(
            f"missing column: {', '.join(absent)}. An Open Bandit log has item_id, click, propensity_score."
        )
    codes = [name for name in table.column_names if name == POSITION or name.startswith(CODES)]
    numbers = [name for name in table.column_names if name.startswith(NUMBERS)]
    for name in (ITEM, CLICK, PROPENSITY, *codes, *numbers):
        if table.column_names.count(name) > 1:
            raise DatasetError(f"column {name} occurs more than once. Keep one of each name.")
        if table.column(name).null_count:
            row = int(table.column(name).is_null().to_numpy().argmax())
            raise DatasetError(f"row {row}: {name} is missing. Fill it in, or remove the row.")
    propensity = _numbers(table, PROPENSITY)
    wrong = ~((propensity > 0) & (propensity <= 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise DatasetError(
            f"row {row}: propensity_score is {propensity[row]:g}. It must be the probability of the logged item, above "
            "0 and at most 1."
        )
    action, items = _actions(table)
    coded = [_codes(table, name) for name in codes]
    columns = [values for values, _ in coded] + [_numbers(table, name) for name in numbers]
    observation = np.column_stack(columns) if columns else np.zeros((table.num_rows, 1))
    return LoggedDataset.from_arrays(
        observation=observation,
        action=action,
        reward=_numbers(table, CLICK),
        next_observation=observation,
        terminated=np.ones(table.num_rows, bool),
        episode=np.arange(table.num_rows),
        behaviour_log_prob=np.log(propensity),
        metadata={"source": "Open Bandit", **({"file": Path(data).name} if isinstance(data, str | Path) else {})},
        categorical=range(len(codes)),
        action_features=action_features,
        names=Names(
            observations=(*codes, *numbers),
            actions=items,
            categories={place: known for place, (_, known) in enumerate(coded)},
        ),
    )


def _table(data: Any) -> pa.Table:
    """The rows as an Arrow table: of a CSV file, a data frame or a dictionary."""
    try:
        if isinstance(data, str | Path):
            if not Path(data).is_file():
                raise DatasetError(f"{data}: no such file. Check the path.")
            table = pc.read_csv(data)
            if binary := [name for name in table.column_names if pa.types.is_binary(table.column(name).type)]:
                raise DatasetError(f"{data}: column {binary[0]} is not text in UTF-8. Write the file again in UTF-8.")
            return table
        return data if isinstance(data, pa.Table) else pa.table(dict(data) if isinstance(data, Mapping) else data)
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        where = f"{data}: not a readable CSV file" if isinstance(data, str | Path) else "not a readable table"
        raise DatasetError(f"{where} ({first_line(error)}).") from None


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    values = table.column(name).to_numpy()
    if values.dtype.kind not in "biuf":
        raise DatasetError(f"{name} must be numbers, but is {table.column(name).type}.")
    return values.astype(np.float64)


def _actions(table: pa.Table) -> tuple[np.ndarray, tuple[str, ...]]:
    """Items by number as they are; others by their place among all that occur, with names."""
    values = table.column(ITEM).to_numpy()
    if values.dtype.kind in "iu":
        return values, ()
    place, known = _codes(table, ITEM)
    return place.astype(np.int64), known


def _codes(table: pa.Table, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The code of each row, and what the codes are called, in order."""
    known, place = np.unique(np.asarray(table.column(name).to_pylist()), return_inverse=True)
    return place.astype(np.float64), tuple(str(one) for one in known)
