"""Names in one text, as the options of the command line take them and as suggested commands print them.

A name with a comma is quoted as in a CSV file: '"a, b",c' is the two names `a, b` and `c`.
"""

import csv
import io
import shlex
from collections.abc import Iterable

from average_dice.errors import SettingError


def split_names(text: str) -> list[str]:
    """The names in a text, separated by commas; empty ones, too.

    >>> split_names('"a, b",c')
    ['a, b', 'c']
    """
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error:
        lines = []
    if text.strip() and len(lines) != 1:
        raise SettingError(f"{text}: cannot be read as names. Put a name with a comma in quotes: '\"a, b\",c'.")
    return [name.strip() for name in lines[0]] if text.strip() else [""]


def join_names(names: Iterable[str]) -> str:
    """One text that `split_names` takes apart.

    >>> join_names(["a, b", "c"])
    '"a, b",c'
    """
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(names)
    return written.getvalue()


def as_option(names: Iterable[str]) -> str:
    """The names as a value of an option in a command that can be copied to a shell."""
    return shlex.quote(join_names(names))
