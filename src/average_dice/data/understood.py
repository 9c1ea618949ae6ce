"""What was understood of a table: which column became what, and notes about what was assumed.

Both are kept in the metadata of a log, so that they can be printed, and so that a file keeps them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NOTES = "notes"
COLUMNS = "columns"


class Column(NamedTuple):
    """One line of the table: our name, the user's column, its kind, its values, and the first of them."""

    ours: str
    yours: str
    kind: str
    values: str
    example: str


@dataclass(frozen=True)
class Understood:
    """Collects lines and notes while a table is read. A note is a sentence without a full stop."""

    columns: list[Column] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def column(self, ours: str, yours: str, kind: str, values: str, example: Any = "") -> None:
        """Adds a line."""
        self.columns.append(Column(ours, yours, kind, values, str(example)))

    def note(self, text: str) -> None:
        """Adds a note."""
        self.notes.append(text)

    def to_metadata(self) -> dict[str, Any]:
        """For the metadata of the log."""
        return {COLUMNS: [one._asdict() for one in self.columns], NOTES: list(self.notes)}


def many(number: int, noun: str) -> str:
    """A number with its noun.

    >>> many(1, "row"), many(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size_of(transitions: int, episodes: int, noun: str = "transition") -> str:
    """The size of a log.

    >>> size_of(4_000, 1)
    '4,000 transitions in 1 episode'
    """
    return f"{many(transitions, noun)} in {many(episodes, 'episode')}"


def notes_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The notes in the metadata of a log, also of one that was joined from several files."""
    parts = [metadata, *(one for one in _list(metadata.get("parts")) if isinstance(one, dict))]
    return tuple(dict.fromkeys(str(note) for part in parts for note in _list(part.get(NOTES))))


def columns_of(metadata: Mapping[str, Any]) -> tuple[Column, ...]:
    """The table in the metadata of a log; empty if it was not made from a table."""
    return tuple(
        Column(*(str(one[name]) for name in Column._fields))
        for one in _list(metadata.get(COLUMNS))
        if isinstance(one, dict) and set(Column._fields) <= set(one)
    )


def others_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without these two."""
    return {name: value for name, value in metadata.items() if name not in (NOTES, COLUMNS)}


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []
