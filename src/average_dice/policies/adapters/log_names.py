"""What a log calls its actions, columns and codes; and the way back, from names to numbers."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError, did_you_mean
from average_dice.listing import as_option

SHOWN = 8  # names in a message


def num_actions(data: LoggedDataset) -> int:
    """The number of discrete actions that the log knows of, taken or not."""
    sizes = [int(data.action.max()) + 1, len(data.names.actions)]
    if data.action_mask is not None:
        return data.action_mask.shape[1]
    if data.action_features is not None:
        sizes.append(len(data.action_features))
    return max(sizes)


def action_codes(labels: Sequence[Any] | np.ndarray, data: LoggedDataset, whose: str) -> Int[np.ndarray, " label"]:
    """The numbers of these actions: by the log's names where it has them, integers by themselves otherwise."""
    known = {name: code for code, name in enumerate(data.names.actions)}
    found = [_text(label, known) for label in labels]
    unknown = [text for text in found if text not in known]
    if not unknown:
        return np.array([known[text] for text in found], np.int64)
    if all(text.isdecimal() for text in found):
        return np.array([int(text) for text in found], np.int64)
    first = next(text for text in unknown if not text.isdecimal()) if not known else unknown[0]
    if not known:
        raise PolicyError(
            f"{whose} has the action {first!r}, and the log has no names of actions. Give it names: "
            "Names(actions=('…', …)), or use the numbers of the actions."
        )
    raise PolicyError(
        f"{whose} has the action {first!r}, which the log does not have.{meant_or_known(first, known)} If it was never "
        f"taken, add it to the log's actions: --actions {as_option([*list(known)[:SHOWN], first])} (actions=[…])."
    )


def column_number(name: str, data: LoggedDataset, whose: str) -> int:
    """The observation column of this name; `observation[0]` and `column 0` in a log without names."""
    known = column_names(data)
    if not data.names.observations and (by_place := re.fullmatch(r"observation\[(\d+)\]", name)):
        name = f"column {by_place[1]}"
    if name not in known:
        raise PolicyError(f"{whose} has the column {name!r}, which the log does not have.{meant_or_known(name, known)}")
    return known.index(name)


def column_names(data: LoggedDataset) -> list[str]:
    """The names of the observation columns: `column 0`, … where they have none."""
    return [data.names.observation(column) for column in range(data.observation.shape[1])]


@dataclass(frozen=True)
class Unlogged:
    """Categories that a policy names and the log does not have, by column. No row has their codes, −1, −2, …"""

    codes: dict[tuple[int, str], float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def code(self, text: str, column: int, data: LoggedDataset, whose: str) -> float:
        """The code of such a category. One that differs only in case, spaces or signs is a slip, and refused."""
        known, name = data.names.categories[column], data.names.observation(column)
        if _letters(text) in map(_letters, known):
            raise PolicyError(f"{whose}: {text!r} is not a category of {name!r}.{meant_or_known(text, known)}")
        if (column, text) not in self.codes:
            self.codes[column, text] = -1.0 - len(self.codes)
            self.notes.append(
                f"{whose}: {text!r} is not a category of {name!r} in the log, so it applies to no row."
                f"{meant_or_known(text, known)}".rstrip(".")
            )
        return self.codes[column, text]


def _letters(text: str) -> str:
    return "".join(one for one in text.casefold() if one.isalnum())


def code_of(value: Any, column: int, data: LoggedDataset, whose: str, unlogged: Unlogged) -> float:
    """The number of a value of an observation column: the code of a category, or the number itself."""
    known = data.names.categories.get(column, ())
    text = _text(value, known)
    if text in known:
        return float(known.index(text))
    name = data.names.observation(column)
    if known:
        return unlogged.code(text, column, data, whose)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise PolicyError(f"{whose}: {text!r} is not a number, as {name!r} has in the log.") from None


def meant_or_known(name: str, known: Iterable[str]) -> str:
    """The name that is most like it, or the known names."""
    names = list(known)
    return did_you_mean(name, names) or f" The log has {', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''}."


def place_of_state(state: np.ndarray, data: LoggedDataset) -> str:
    """Where the log has this observation: its first row, or the row before, or the numbers themselves."""
    for observations, where in ((data.observation, "{}"), (data.next_observation, "{} (the next state)")):
        rows = np.flatnonzero((observations == state).all(axis=1))
        if len(rows):
            return where.format(data.place(int(rows[0])))
    return f"the state {shown_state(state, data)}"


def shown_state(state: np.ndarray, data: LoggedDataset) -> str:
    """The state by names: age = 63, ward = icu."""
    values = [
        f"{data.names.observation(column)} = {data.names.category(column, float(value))}"
        for column, value in enumerate(state[:SHOWN])
    ]
    return ", ".join([*values, *(["…"] if len(state) > SHOWN else [])])


def _text(label: Any, known: Collection[str]) -> str:
    """A name, or a number as in the log's names: 1.0 and numpy's 1 are '1'. True is True, true or 1, as is known."""
    if isinstance(label, (bool, np.bool_)):
        written = (str(bool(label)), str(bool(label)).lower())
        return next((text for text in written if text in known), str(int(label)))
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)
