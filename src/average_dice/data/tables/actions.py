"""The actions of a user's table: texts and numbers become discrete actions 0, 1, 2, …, floats are continuous."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from average_dice.data.tables.columns import (
    Codes,
    codes,
    counted,
    flags,
    is_list,
    is_text,
    is_whole,
    kind_of,
    missing,
    name_of,
    numbers,
    range_of,
    texts,
    vectors,
)
from average_dice.data.tables.roles import Roles, listed
from average_dice.data.tables.rows import Rows
from average_dice.data.understood import Understood
from average_dice.errors import DatasetError, did_you_mean
from average_dice.listing import as_option

Arrays = Mapping[str, pa.Array]
WHAT = "an action"


def require_all(names: Sequence[str], table: Arrays, rows: Rows, what: str) -> None:
    """Raises if a value is missing."""
    for name in names:
        if (absent := missing(table[name])).any():
            raise DatasetError(
                f"{name}: {absent.sum():,} missing, the first at {rows.place(int(absent.argmax()))}. {what} are never "
                "imputed: fill them in, or remove these episodes."
            )


def actions_of(
    table: Arrays, roles: Roles, rows: Rows, order: Sequence[Any] | None, understood: Understood
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The actions of the rows, integers or rows of floats, and their names. `order`: all actions, if it is given."""
    names = listed(roles.action)
    require_all(names, table, rows, "Actions")
    column = table[names[0]]
    if not isinstance(roles.action, str) or is_list(column):
        if order is not None:
            raise DatasetError("actions names discrete actions, and these are continuous. Leave it out.")
        return _continuous(names, [table[name] for name in names], understood)
    name = roles.action
    if order is not None:
        found = _given(name, column, order, rows)
    elif is_text(column) or pa.types.is_boolean(column.type) or name in roles.categorical:
        if not is_text(column):
            numbers(name, column, WHAT)  # refuses times and other kinds
        found = codes([column])[0]
    elif is_whole(column):
        found = _whole(name, column, understood)
    else:
        return _single_float(name, column, understood)
    action = found.codes.astype(np.int64)
    number = max(len(found.names), int(action.max()) + 1)
    values = counted(found.names) if found.names else f"{number:,}: 0 to {number - 1}"
    first = found.names[action[0]] if found.names else action[0]
    understood.column("action", name, "discrete", values, first)
    return action, found.names


def _continuous(
    names: Sequence[str], columns: Sequence[pa.Array], understood: Understood
) -> tuple[np.ndarray, tuple[str, ...]]:
    parts, labels = [], list[str]()
    for name, column in zip(names, columns, strict=True):
        part = vectors(name, column, WHAT) if is_list(column) else numbers(name, column, WHAT)[:, None]
        parts.append(part)
        labels += [name] if part.shape[1] == 1 else [f"{name}[{place}]" for place in range(part.shape[1])]
    action = np.concatenate(parts, axis=1)
    for label, values in zip(labels, action.T, strict=True):
        understood.column("action", label, "continuous", range_of(values), f"{values[0]:g}")
    return action, () if list(names) == ["action"] else tuple(labels)


def _single_float(name: str, column: pa.Array, understood: Understood) -> tuple[np.ndarray, tuple[str, ...]]:
    values = numbers(name, column, WHAT)
    if (values == np.round(values)).all():
        understood.note(
            f"{name} holds decimal numbers that are all whole ({len(np.unique(values)):,} different), and counts as a "
            f"continuous action. If these are choices, declare it: --categorical {as_option([name])}"
        )
    understood.column("action", name, "continuous", range_of(values), f"{values[0]:g}")
    return values[:, None], () if name == "action" else (name,)


def _whole(name: str, column: pa.Array, understood: Understood) -> Codes:
    """Integers stay if they look like numbers of actions: from 0, with at most half of them not in the log."""
    values = numbers(name, column, WHAT)
    known = np.unique(values)
    if known[0] == 0 and known[-1] < 2 * len(known):
        absent = int(known[-1]) + 1 - len(known)
        if absent:
            understood.note(f"of the actions 0 to {int(known[-1])} of {name}, {absent} not in the log")
        return Codes(values, ())
    found = codes([column])[0]
    shown = ", ".join(f"{one} → {code}" for code, one in enumerate(found.names[:6]))
    more = ", …" if len(found.names) > 6 else ""
    understood.note(
        f"the actions of {name} are not 0, 1, 2, … and are numbered in their order ({shown}{more}). If they are "
        "amounts of a continuous action, give a list of columns, or decimal numbers"
    )
    return found


def _given(name: str, column: pa.Array, order: Sequence[Any], rows: Rows) -> Codes:
    """The places in the given list of all actions."""
    known = tuple(name_of(float(one)) if isinstance(one, (int, float)) else str(one) for one in order)
    if len(set(known)) < len(known):
        raise DatasetError("actions names an action twice. Name each once.")
    place = {one: float(code) for code, one in enumerate(known)}
    found = texts(column)
    for row, one in enumerate(found):
        if one not in place:
            raise DatasetError(
                f"{rows.place(row)}: {name} is {one!r}, which is not among the actions "
                f"{counted(known)}.{did_you_mean(str(one), known)}"
            )
    return Codes(np.array([place[one] for one in found], np.float64), known)


def log_probabilities(
    name: str, is_log: bool, table: Arrays, rows: Rows, discrete: bool, may_be_zero: bool, understood: Understood
) -> np.ndarray | None:
    """The log-probabilities of the logged actions; None if the whole column is empty."""
    column = table[name]
    ours = f"{'target' if may_be_zero else 'behaviour'}_{'log_' if is_log else ''}prob"
    if missing(column).all():
        understood.note(f"{name} is empty: {ours} counts as unknown")
        return None
    require_all([name], table, rows, "Probabilities")
    values = numbers(name, column, "a probability")
    understood.column(ours, name, kind_of(column), range_of(values), f"{values[0]:g}")
    if is_log:
        return values
    wrong = (values < 0) | ((values == 0) & (not may_be_zero)) | ((values > 1) & discrete)
    if wrong.any():
        row, number = int(wrong.argmax()), int(wrong.sum())
        more = f" ({number - 1:,} more like it)" if number > 1 else ""
        bounds = "above 0" + (" and at most 1" if discrete else "") if not may_be_zero else "between 0 and 1"
        raise DatasetError(
            f"{rows.place(row)}: {name} is {values[row]:g}. The probability of the logged action must be {bounds}; "
            f"a column of logarithms is {ours.replace('prob', 'log_prob')}.{more}"
        )
    with np.errstate(divide="ignore"):
        return np.log(values)


def mask_of(given: str | Sequence[str], table: Arrays, rows: Rows, understood: Understood) -> np.ndarray:
    """Which actions are allowed, in the order of their numbers."""
    names = listed(given)
    require_all(names, table, rows, "Masks")
    if len(names) == 1 and is_list(table[names[0]]):
        values = vectors(names[0], table[names[0]], "a mask")
        if not np.isin(values, (0, 1)).all():
            row = int((~np.isin(values, (0, 1))).any(axis=1).argmax())
            raise DatasetError(f"{rows.place(row)}: {names[0]} must hold true or false for each action.")
        mask = values == 1
    else:
        mask = np.column_stack([flags(name, table[name]) for name in names])
    understood.column("action_mask", ", ".join(names), "flags", f"{mask.shape[1]} actions", "")
    return mask
