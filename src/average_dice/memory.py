"""Memory: how much may be used, how much the features of a log need, and what was reduced to stay below the limit.

The limit is half of what the machine or its container has, unless it is set: by `evaluate(…, memory="2GiB")`, the
option `--memory 2GiB` or the environment variable AVERAGE_DICE_MEMORY. It does not depend on what other programs use,
so the same log gives the same answer on a busy machine.

Needs are estimates from the number of rows and features, before anything is computed. Above the limit, first fewer
things are kept or done at once, which changes nothing but time; then random features are halved until they fit.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from average_dice.errors import NotEnoughMemory, SettingError
from average_dice.notes import Note, NoteCode

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

VARIABLE = "AVERAGE_DICE_MEMORY"
SHARE = 2  # the limit is the machine's memory divided by this: other programs, and the log itself, need some
UNKNOWN = 4 * 2**30  # taken for the machine's memory if nothing says what it has
FEWEST_ROWS = 256  # at once: fewer would be slow
FEWEST_FEATURES = 25  # fewer random features approximate nothing

# The recommended estimator with intervals, in matrices of rows × features, numbers per row, and matrices of features ×
# features that exist at once. Measured by speed/actions.py and tests/test_memory.py, and rounded up.
AT_LEAST = (20, 300, 60)
WITHOUT_LIMIT = (64, 400, 400)

CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNITS = {"": 0, "B": 0, "K": 1, "KIB": 1, "M": 2, "MIB": 2, "G": 3, "GIB": 3, "T": 4, "TIB": 4}
REMEDY = "Raise the limit (memory=…, --memory or AVERAGE_DICE_MEMORY), or evaluate fewer rows of the log."


@dataclass(frozen=True)
class Reduction:
    """Something of which fewer were used than asked for."""

    what: str
    asked: int
    used: int


_limit: ContextVar[int | None] = ContextVar("limit", default=None)
_reductions: ContextVar[list[Reduction] | None] = ContextVar("reductions", default=None)


@cache
def available() -> int:
    """Bytes that the machine has, or its container if that has less."""
    found = []
    for path in CGROUPS:
        with suppress(OSError, ValueError):  # not in a container, or "max": no limit
            found.append(int(Path(path).read_text()))
    with suppress(AttributeError, OSError, ValueError):  # not on Windows
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((one for one in found if one > 0), default=UNKNOWN)


def limit() -> int:
    """The bytes that an evaluation may take besides its log."""
    if (given := _limit.get()) is not None:
        return given
    if text := os.environ.get(VARIABLE, ""):
        return parsed(text)
    return available() // SHARE


def parsed(given: int | str) -> int:
    """A number of bytes from a number, or from a text such as 500MiB or 2GiB.

    >>> parsed("1.5GiB")
    1610612736
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(given))
    if found is None or found[2].upper() not in UNITS:
        raise SettingError(f"{given!r} is not an amount of memory. Give bytes, or a number with a unit: 500MiB, 2GiB.")
    number = int(float(found[1]) * 1024 ** UNITS[found[2].upper()])
    if number == 0:
        raise SettingError("the limit of memory must be above zero.")
    return number


def shown(number: int) -> str:
    """Bytes for people.

    >>> shown(1610612736), shown(300_000_000)
    ('1.5 GiB', '286 MiB')
    """
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{max(1, round(number / 2**20))} MiB"


@contextmanager
def limited(given: int | str | None) -> Iterator[None]:
    """Within this context the limit is this one; None changes nothing."""
    if given is None:
        yield
        return
    token = _limit.set(parsed(given))
    try:
        yield
    finally:
        _limit.reset(token)


def by_argument(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function whose keyword argument `memory` is the limit while it runs."""

    @wraps(function)
    def within(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with limited(kwargs.get("memory")):  # type: ignore[arg-type]
            return function(*args, **kwargs)

    return within


@contextmanager
def recording() -> Iterator[list[Reduction]]:
    """Within this context, what is reduced is appended to this list; and to that of the context around it, after."""
    outer, found = _reductions.get(), list[Reduction]()
    token = _reductions.set(found)
    try:
        yield found
    finally:
        _reductions.reset(token)
        if outer is not None:
            outer.extend(found)


def record(*reductions: Reduction) -> None:
    """Adds to the list of the context, if anybody records."""
    if (found := _reductions.get()) is not None:
        found.extend(reductions)


def note_of(reductions: list[Reduction]) -> tuple[Note, ...]:
    """A note that says what was reduced; none if nothing was."""
    different = dict.fromkeys(one for one in reductions if one.used < one.asked)
    if not different:
        return ()
    parts = ", ".join(f"{one.used} {one.what} instead of {one.asked}" for one in different)
    text = f"{parts}, to stay below {shown(limit())} of memory: raise it with memory=…, --memory or {VARIABLE}"
    return (Note(NoteCode.LESS_MEMORY, text),)


def need(num_rows: int, size: int, counts: tuple[int, int, int] = AT_LEAST) -> int:
    """Bytes for a log of this many rows with this many features."""
    matrices, by_row, squares = counts
    return 8 * (num_rows * (matrices * size + by_row) + squares * size**2)


def rows_at_once(most: int) -> int:
    """Rows that are worked on together: `most`, or fewer if the limit is low (1 GiB: 8,192)."""
    return min(most, max(FEWEST_ROWS, limit() // 2**17))


def is_tight(num_rows: int, size: int) -> bool:
    """Whether only the form that needs the least memory fits."""
    return need(num_rows, size, WITHOUT_LIMIT) > limit()


def require(bytes_needed: int, what: str) -> None:
    """Raises an error if this does not fit."""
    if bytes_needed > limit():
        raise NotEnoughMemory(f"{what} needs {shown(bytes_needed)} of memory, the limit is {shown(limit())}. {REMEDY}")


def features_within(num_features: int, num_rows: int, size_of: Callable[[int], int], what: str, more: int = 0) -> int:
    """The number of random features, halved until they fit; recorded.

    `size_of`: from this number to that of all features. `more`: bytes that are needed besides.
    """
    number = halved(num_features, num_rows, size_of, more)
    require(need(num_rows, size_of(number)) + more, f"a log of {num_rows:,} rows with {number} {what}")
    record(Reduction(what, num_features, number))
    return number


def halved(num_features: int, num_rows: int, size_of: Callable[[int], int], more: int = 0) -> int:
    """The number of features, halved until they fit or are the fewest."""
    number = num_features
    while number > FEWEST_FEATURES and need(num_rows, size_of(number)) + more > limit():
        number = max(number // 2, FEWEST_FEATURES)
    return number
