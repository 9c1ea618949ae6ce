"""Categorical observation columns: which are declared, and which look as if they should be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from average_dice.data.columns import Columns
from average_dice.errors import DatasetError
from average_dice.listing import as_option

FEWEST_VALUES = 3  # two values are one indicator already
MOST_VALUES = 1_000  # above, integers are more likely counts or amounts
ROWS_PER_VALUE = 5  # on average: codes repeat
MOST_NAMED = 5  # columns in a message

Column = Float[np.ndarray, " transition"]


def as_categorical(given: Any) -> tuple[int, ...]:
    """The indices of the declared columns in order."""
    try:
        found = sorted({int(one) for one in given if int(one) == one})
        number = len(list(given))
    except (TypeError, ValueError):
        raise DatasetError(f"categorical must be indices of observation columns, not {given!r}.") from None
    if len(found) < number:
        raise DatasetError(f"categorical must be different whole numbers, not {given!r}: name each column once.")
    return tuple(found)


def check_categorical(categorical: Sequence[int], columns: Columns) -> None:
    """Raises unless these are columns, and codes are the same in next_observation and in the next row.

    They must be equal to the last digit: a code that is nearly the same is another one.
    """
    width = columns["observation"].shape[1]
    if wrong := [one for one in categorical if not 0 <= one < width]:
        raise DatasetError(
            f"categorical names observation column {wrong[0]}, but columns are numbered 0 to {width - 1}."
        )
    joined = columns["step"][1:] > 0
    for one in categorical:
        after, before = columns["next_observation"][:-1, one], columns["observation"][1:, one]
        if (apart := joined & (after != before)).any():
            row = int(apart.argmax())
            raise DatasetError(
                f"episode {columns['episode'][row]}, step {columns['step'][row]}: next_observation[{one}] is "
                f"{after[row]:.17g}, and the next row has {before[row]:.17g}. Codes of a categorical column must be "
                "equal. Correct the row; codes above 16,777,216 need float64."
            )


def looks_categorical(
    observation: Float[np.ndarray, "transition observation"],
    is_first: Bool[np.ndarray, " transition"],
    declared: Sequence[int],
) -> tuple[int, ...]:
    """Undeclared columns that hold a few different integers and are no counters, which may be codes."""
    return tuple(
        place
        for place, column in enumerate(observation.T)
        if place not in declared and _few_integers(column) and not _counts(column, is_first)
    )


def _few_integers(column: Column) -> bool:
    if not (column == np.round(column)).all():
        return False
    number = len(np.unique(column))
    return FEWEST_VALUES <= number <= MOST_VALUES and len(column) >= ROWS_PER_VALUE * number


def _counts(column: Column, is_first: Bool[np.ndarray, " transition"]) -> bool:
    """Whether it only grows, or only falls, within all episodes, such as a time index."""
    changes = np.diff(column)[~is_first[1:]]
    return bool(changes.any()) and bool((changes >= 0).all() or (changes <= 0).all())


def advice(
    observation: Float[np.ndarray, "transition observation"], places: Sequence[int], known: Sequence[str] = ()
) -> str:
    """One sentence, without a full stop, about columns that look categorical, with the remedy.

    `known`: the names of all columns, if they have names.
    """
    called = [known[place] if known else str(place) for place in places]
    numbers = [f"{len(np.unique(observation[:, place])):,}" for place in places[:MOST_NAMED]]
    names = called[:MOST_NAMED]
    if (more := len(places) - MOST_NAMED) > 0:
        names.append(f"{more} more")
    which = "column" if len(places) == 1 else "columns"
    subject = f"observation {which} {_listed(names)} {'holds' if len(places) == 1 else 'hold'} only integers"
    remedy = "declare it" if len(places) == 1 else "declare them"
    option = as_option(called)
    return f"{subject} ({_listed(numbers)} different values). If they are codes, {remedy}: --categorical {option}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
