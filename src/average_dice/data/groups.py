"""Groups of episodes by an extra column, such as the site of a patient."""

import numpy as np
from jaxtyping import Int

from average_dice.data.dataset import LoggedDataset
from average_dice.data.names import EPISODE_NAME
from average_dice.errors import DatasetError, SettingError, did_you_mean
from average_dice.listing import as_option

MOST_NUMBERS = 20  # different numbers that can be groups; with more they are measurements
MOST_TEXTS = 100  # more groups could not be read


def groups_of(data: LoggedDataset, by: str) -> dict[str, Int[np.ndarray, " episode"]]:
    """The episodes of each group, numbered from 0 as in `starts`, by the name of the group.

    The column must be the same in all rows of an episode.
    """
    if by not in data.extra:
        known = [name for name in data.extra if name != EPISODE_NAME]
        has = f"It has {', '.join(known)}" if known else "It has no extra columns"
        keep = f"To keep it: average-dice convert … --extra {as_option([by])}, or read_dataset(…, extra=[…])"
        raise SettingError(f"the log has no column {by} to group by.{did_you_mean(by, known)} {has}. {keep}.")
    column: np.ndarray = data.extra[by]
    first = np.repeat(column[data.starts], data.lengths)
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
    if missing.any():
        raise DatasetError(f"{data.place(int(missing.argmax()))}: {by} is missing. Fill it in, or leave the rows out.")
    if (differs := column != first).any():
        row = int(differs.argmax())
        raise DatasetError(
            f"{data.place(row)}: {by} is {_named(column[row])}, and {_named(first[row])} at the start of the episode. "
            "A group is made of whole episodes: give a column that stays the same within each."
        )
    values = np.unique(column)
    if column.dtype.kind == "f" and len(values) > MOST_NUMBERS:
        raise SettingError(
            f"{by} has {len(values):,} different numbers, and at most {MOST_NUMBERS} can be groups. Put them into "
            "bins first, such as below 40, 40 to 60 and above 60."
        )
    if len(values) > MOST_TEXTS:
        raise SettingError(
            f"{by} has {len(values):,} different values, and at most {MOST_TEXTS} can be groups. Join some of them."
        )
    of_episodes = column[data.starts]
    return {_named(value): np.flatnonzero(of_episodes == value) for value in values}


def _named(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
