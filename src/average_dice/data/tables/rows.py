"""The rows of a user's table: sorted by episode and time, with the ends of the episodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from average_dice.data.tables.columns import flags, is_number, is_text, is_whole, kind_of, missing, text_of, texts
from average_dice.data.tables.columns import numbers as numbers_of
from average_dice.data.tables.roles import Roles
from average_dice.data.understood import Understood, many
from average_dice.data.validation import place_of
from average_dice.errors import DatasetError

Arrays = Mapping[str, pa.Array]


@dataclass(frozen=True)
class Rows:
    """Rows in order: their positions in the table, their episodes and their steps.

    `names`: the user's identifiers of the episodes, if they are not integers.
    """

    order: np.ndarray
    episode: np.ndarray
    names: np.ndarray | None
    step: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """Where an episode ends."""
        return np.append(self.episode[1:] != self.episode[:-1], True)

    def place(self, row: int) -> str:
        """The episode and step of a row, for messages."""
        return place_of(self.episode, self.step, self.names, row)

    def chosen(self, rows: np.ndarray) -> "Rows":
        """Some of them."""
        names = None if self.names is None else self.names[rows]
        return Rows(self.order[rows], self.episode[rows], names, self.step[rows])


def rows_of(table: Arrays, roles: Roles, understood: Understood) -> Rows:
    """The rows sorted by episode and time. Steps are 0, 1, 2, …"""
    episode, names = _episodes(table, roles.episode)
    if roles.episode is None:
        understood.column("episode", "–", "each row", "")
    else:
        column, number = table[roles.episode], len(np.unique(episode))
        understood.column("episode", roles.episode, kind_of(column), f"{number:,} different", text_of(column[0]))
    if roles.time is None:
        order = np.argsort(episode, kind="stable")
        understood.column("step", "–", "order of rows", "")
    else:
        rank = _ranks(roles.time, table[roles.time], understood)
        if names is not None:
            episode = _by_first_step(episode, rank, pa.types.is_temporal(table[roles.time].type))
        order = np.lexsort((rank, episode))
    episode = episode[order]
    first = np.append(True, episode[1:] != episode[:-1])
    starts = np.flatnonzero(first)
    step = np.arange(len(episode)) - np.repeat(starts, np.diff(np.append(starts, len(episode))))
    rows = Rows(order, episode, None if names is None else names[order], step)
    if roles.time is not None:
        _check_time(rows, roles.time, table[roles.time], rank[order], understood)
    return rows


def _episodes(table: Arrays, name: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers of the episodes, and their names if these are not integers. Names are numbered as they appear."""
    if name is None:
        return np.arange(len(next(iter(table.values())))), None
    column = table[name]
    if (absent := missing(column)).any():
        raise DatasetError(
            f"{name}: {absent.sum():,} missing, the first in row {absent.argmax()}. Every row needs its episode."
        )
    if is_whole(column) and not (pa.types.is_uint64(column.type) and pc.max(column).as_py() > np.iinfo(np.int64).max):
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False), None
    if is_number(column) and not pa.types.is_boolean(column.type):
        values = numbers_of("episode", column, "an episode")
        if (np.abs(values) < 2**53).all() and (values == np.round(values)).all():
            return values.astype(np.int64), None
    names = texts(column)
    codes = pa.array(names, pa.string()).dictionary_encode().indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int64), names


def _by_first_step(episode: np.ndarray, rank: np.ndarray, is_date: bool) -> np.ndarray:
    """Numbers the episodes by the date of their first step, or by where that stands in the table.

    Where any of its rows stands would not do: in shuffled rows long episodes appear first, and checks for a change over
    the log would take that for one.
    """
    by_time = np.lexsort((rank, episode))
    first_rows = by_time[np.append(True, np.diff(episode[by_time]) != 0)]  # of episode 0, 1, 2, …
    order = np.argsort(rank[first_rows] if is_date else first_rows, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[episode]


def _ranks(name: str, column: pa.Array, understood: Understood) -> np.ndarray:
    if (absent := missing(column)).any():
        raise DatasetError(
            f"{name}: {absent.sum():,} missing, the first in row {absent.argmax()}. Every row needs its time; or leave "
            "time out if the rows are in order."
        )
    try:
        ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, TypeError):
        raise DatasetError(f"{name} is {kind_of(column)}, which has no order in time.") from None
    least, most = text_of(column[int(ranks.argmin())]), text_of(column[int(ranks.argmax())])
    understood.column("step", name, kind_of(column), f"{least} to {most}", text_of(column[0]))
    if is_text(column):
        understood.note(
            f"{name} is text, so rows are sorted by the alphabet, from {least} to {most}. If this is not the order of "
            "time, convert it to numbers or timestamps"
        )
    return ranks


def _check_time(rows: Rows, name: str, column: pa.Array, rank: np.ndarray, understood: Understood) -> None:
    inside = rows.episode[1:] == rows.episode[:-1]
    same = inside & (rank[1:] == rank[:-1])
    if same.any():
        row = int(same.argmax())
        episode = rows.place(row).rpartition(",")[0]
        more = f" ({same.sum() - 1:,} more like it)" if same.sum() > 1 else ""
        raise DatasetError(
            f"{episode}: two rows have {name} {text_of(column[int(rows.order[row])])}. Remove one of the two, or give "
            f"a time that differs.{more}"
        )
    if is_whole(column) and inside.any():
        steps = np.diff(column.to_numpy(zero_copy_only=False)[rows.order].astype(np.float64))[inside]
        gaps = int((steps != 1).sum())
        if 0 < gaps <= len(steps) / 2:
            row = int(np.flatnonzero(inside)[(steps != 1).argmax()])
            understood.note(
                f"{name} jumps in {many(gaps, 'place')}, the first after {rows.place(row)}: rows count as consecutive "
                "steps"
            )


def ends_of(table: Arrays, roles: Roles, rows: Rows, understood: Understood) -> tuple[np.ndarray, np.ndarray]:
    """The flags terminated and truncated of each row, as far as the table has them."""
    terminated = _terminated(table, roles, rows, understood)
    truncated = np.zeros(len(rows.order), bool)
    if roles.truncated is not None:
        truncated = _flags(roles.truncated, table, rows)
        truncated = _of_the_episode(roles.truncated, truncated, rows, understood)
        understood.column("truncated", roles.truncated, "flags", f"{truncated.sum():,} true", truncated[0])
    open_ends = rows.last & ~terminated & ~truncated
    if open_ends.any() and roles.terminated is not False:
        understood.note(
            f"no flag on the last row of {open_ends.sum():,} of {many(int(rows.last.sum()), 'episode')}: this counts "
            "as truncated, that is, only the recording stopped"
        )
    return terminated, truncated


def _terminated(table: Arrays, roles: Roles, rows: Rows, understood: Understood) -> np.ndarray:
    given: Any = roles.terminated
    if given is None:
        if not rows.last.all():
            raise DatasetError(
                "how do episodes end? Give terminated: a column of flags, true on a last row where the process ended "
                "by itself; or True if every episode does; or False if only the recording stopped "
                "(--columns terminated=COLUMN, terminated=true or terminated=false)."
            )
        understood.note("every episode has one row: each counts as terminated, as in a log of single decisions")
        given = True
    if isinstance(given, bool):
        understood.column("terminated", "–", "all last rows" if given else "never", "")
        return rows.last & given
    found = _of_the_episode(given, _flags(given, table, rows), rows, understood)
    understood.column("terminated", given, "flags", f"{found.sum():,} true", found[0])
    return found


def _flags(name: str, table: Arrays, rows: Rows) -> np.ndarray:
    column = table[name]
    if (absent := missing(column)).any():
        row = int(absent[rows.order].argmax())
        raise DatasetError(
            f"{name}: {absent.sum():,} missing, the first at {rows.place(row)}. Give true or false in every row."
        )
    return flags(name, column)[rows.order]


def _of_the_episode(name: str, flag: np.ndarray, rows: Rows, understood: Understood) -> np.ndarray:
    """The flag on last rows, if it says the same in all rows of each episode, such as the outcome of a patient."""
    inside = rows.episode[1:] == rows.episode[:-1]
    if not (flag[:-1] & inside).any() or (inside & (flag[1:] != flag[:-1])).any():
        return flag
    understood.note(
        f"{name} is the same in all rows of each episode: it counts as a flag of the episode, that is, of its last row"
    )
    return flag & rows.last
