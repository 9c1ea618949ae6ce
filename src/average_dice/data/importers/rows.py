"""Rows in order of time with flags at the ends of episodes, as most libraries store them, become a log.

Many of these do not store the observation after the last step of an episode. After a termination it is not needed.
After a time limit it is: the last row is then left out, and its observation is the next observation of the row before.
The episode is truncated one step earlier, and nothing is made up.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from average_dice.data.dataset import LoggedDataset
from average_dice.data.names import Names
from average_dice.errors import DatasetError

LEFT_OUT = "left_out"  # in the metadata of a log: what was left out, in words


def from_rows(
    *,
    observation: Float[np.ndarray, "row observation"],
    action: Shaped[np.ndarray, "row ..."],
    reward: Float[np.ndarray, " row"],
    terminated: Bool[np.ndarray, " row"],
    truncated: Bool[np.ndarray, " row"],
    next_observation: Float[np.ndarray, "row observation"] | None = None,
    known: Bool[np.ndarray, " row"] | None = None,
    behaviour_log_prob: Float[np.ndarray, " row"] | None = None,
    metadata: Mapping[str, Any] | None = None,
    categorical: Sequence[int] = (),
    names: Names | None = None,
    extra: Mapping[str, np.ndarray] | None = None,
) -> LoggedDataset:
    """The log of these rows. An episode begins at the first row and after each row with a flag.

    - `next_observation`: if None, the observation of the next row of the episode.
    - `known`: false where `next_observation` is not known; if None, it is known wherever it is given.

    A last row without a flag is truncated: the recording stopped there.
    """
    num_rows = len(reward)
    ends = terminated | truncated
    ends[-1] = True
    if next_observation is None:
        next_observation = np.roll(observation, -1, axis=0)
        known = ~ends
    elif known is None:
        known = np.ones(num_rows, bool)
    next_observation = np.where((known | ~ends)[:, None], next_observation, observation)
    left_out = ends & ~terminated & ~known
    kept = ~left_out
    truncated = (truncated | ends & ~terminated) & kept
    starts = np.append(True, ends[:-1])
    truncated[:-1] |= left_out[1:] & ~starts[1:]  # the row before it in the same episode
    if not kept.any():
        raise DatasetError(
            "no row is left: every episode has a single row, without the observation after it. Give next_observations."
        )
    found = dict(metadata or {})
    if left_out.any():
        found[LEFT_OUT] = _in_words(int(left_out.sum()), int((left_out & starts).sum()))
    return LoggedDataset.from_arrays(
        observation=observation[kept],
        action=action[kept],
        reward=reward[kept],
        next_observation=next_observation[kept],
        terminated=terminated[kept],
        truncated=truncated[kept],
        episode=(np.cumsum(starts) - 1)[kept],
        behaviour_log_prob=None if behaviour_log_prob is None else behaviour_log_prob[kept],
        metadata=found,
        categorical=categorical,
        names=names,
        extra={name: values[kept] for name, values in (extra or {}).items()},
    )


def _in_words(rows: int, episodes: int) -> str:
    which = "1 truncated episode" if rows == 1 else f"{rows:,} truncated episodes"
    alone = f"; {episodes:,} of them had no other row" if episodes else ""
    return f"the last row of {which}, because the observation after it is not known{alone}"


def as_vectors(name: str, values: Any) -> Float[np.ndarray, "row number"]:
    """Numbers of any shape as one vector for each row."""
    array = as_array(name, values)
    return array.reshape(len(array), -1).astype(np.float64)


def as_single(name: str, values: Any) -> Float[np.ndarray, " row"]:
    """One number for each row, also where each is in a list of its own."""
    array = as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DatasetError(f"{name} must be one number per row, but has shape {array.shape}.")
    return array.astype(np.float64)


def as_flags(name: str, values: Any) -> Bool[np.ndarray, " row"]:
    """One flag for each row: true or false, or 1 or 0."""
    array = as_single(name, values)
    wrong = ~np.isin(array, (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise DatasetError(f"row {row}: {name} is {array[row]:g}. It must be true or false (or 1 or 0).")
    return array.astype(bool)


def as_array(name: str, values: Any) -> np.ndarray:
    """An array of numbers with at least one row."""
    try:
        array = np.asarray(values)
    except ValueError:  # ragged lists
        raise DatasetError(f"{name} has rows of different shapes. Give the same in every row.") from None
    if array.ndim > 0 and array.size == 0:
        raise DatasetError(f"the log is empty: {name} has shape {array.shape}. Check how it was written.")
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise DatasetError(f"{name} must be numbers, one row for each step, but is {array.dtype} of {array.shape}.")
    return array


def check_lengths(columns: Mapping[str, np.ndarray | None]) -> None:
    """Raises unless all columns have the same number of rows."""
    sizes = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
        raise DatasetError(f"the arrays differ in length: {text}. Give one row for each step.")
