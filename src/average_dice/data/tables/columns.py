"""Single columns of a user's table, as Arrow arrays, turned into numbers, flags, texts and codes.

Nulls and NaN are missing values. Here they stay missing: NaN in numbers, None in texts.
"""

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from average_dice.errors import DatasetError

YES = ("true", "t", "yes", "y", "1")
NO = ("false", "f", "no", "n", "0")
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T\s]|$)")  # 2024-01-31, 31.1.24
MOST_LOOKED_AT = 100  # values that show whether texts are dates
MOST_NAMED = 6  # categories in the table of what was understood


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One array without dictionaries and extension types."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if isinstance(column.type, pa.UuidType):
        return pa.array([None if one is None else str(one) for one in column.to_pylist()], pa.string())
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def taken(name: str, column: pa.Array, positions: np.ndarray) -> pa.Array:
    """The values at these positions."""
    try:
        return column.take(pa.array(positions))
    except pa.ArrowException:
        raise DatasetError(f"{name} is {kind_of(column)}, which cannot be read. Convert it.") from None


def is_text(column: pa.Array) -> bool:
    """Whether it holds texts."""
    kind = column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_list(column: pa.Array) -> bool:
    """Whether it holds a list in every row."""
    kind = column.type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_whole(column: pa.Array) -> bool:
    """Whether it holds integers."""
    return bool(pa.types.is_integer(column.type))


def is_number(column: pa.Array) -> bool:
    """Whether it holds numbers or booleans; a column without any value may be one."""
    kind = column.type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(test(kind) for test in tests)


def holds_dates(column: pa.Array) -> bool:
    """Whether it holds dates or times; also texts that look like dates."""
    if pa.types.is_temporal(column.type):
        return True
    if not is_text(column):
        return False
    known = column.drop_null()[:MOST_LOOKED_AT].to_pylist()
    return bool(known) and all(DATE.match(one) for one in known)


def numbers(name: str, column: pa.Array, what: str) -> np.ndarray:
    """The numbers as float64, NaN where they are missing. `what`: what the column is used as, for messages."""
    if pa.types.is_temporal(column.type):
        raise DatasetError(
            f"{name} holds times ({column.type}) and cannot be {what}. Convert it to a number, such as the days since "
            "the start of the episode, or give it as time."
        )
    if not is_number(column):
        raise DatasetError(f"{name} is {kind_of(column)} and cannot be {what}. Convert it to numbers.")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def vectors(name: str, column: pa.Array, what: str) -> np.ndarray:
    """Lists as a matrix; a row of NaN where the list is missing."""
    sizes = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.float64)
    known = sizes[~np.isnan(sizes)]
    if not len(known) or known[0] == 0:
        raise DatasetError(f"{name} holds no list with numbers. Give lists of the same length in every row.")
    if (known != known[0]).any():
        row = int(np.flatnonzero(~np.isnan(sizes) & (sizes != known[0]))[0])
        raise DatasetError(
            f"{name} has {int(sizes[row])} numbers in row {row} and {int(known[0])} in others. "
            "Give lists of the same length in every row."
        )
    found = np.full((len(column), int(known[0])), np.nan)
    found[~np.isnan(sizes)] = numbers(name, plain(pc.list_flatten(column)), what).reshape(-1, int(known[0]))
    return found


def texts(column: pa.Array) -> np.ndarray:
    """Every value as a text, None where it is missing; whole numbers without a decimal point."""
    if is_text(column):
        return np.array(column.to_pylist(), object)
    if is_number(column):
        values = numbers("", column, "")
        if is_whole(column):
            return np.array([None if one is None else str(one) for one in column.to_pylist()], object)
        return np.array([None if np.isnan(one) else name_of(one) for one in values], object)
    try:
        return np.array([None if one is None else str(one) for one in column.to_pylist()], object)
    except (OverflowError, ValueError, pa.ArrowException):
        raise DatasetError(f"a column of {kind_of(column)} holds values out of range. Convert it to texts.") from None


def text_of(value: pa.Scalar) -> str:
    """A value as a text for people; also a date that Python does not know."""
    try:
        return str(value)
    except (OverflowError, ValueError, pa.ArrowException):
        return f"{value.type} out of range"


def name_of(value: float) -> str:
    """A number as a text: 3 for 3.0."""
    return str(int(value)) if value == np.round(value) and abs(value) < 2**53 else repr(float(value))


def missing(column: pa.Array) -> np.ndarray:
    """Where a value is null or NaN."""
    return np.array(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), bool)


def flags(name: str, column: pa.Array) -> np.ndarray:
    """True or false in every row, from booleans, 0 and 1, or words. Values must not be missing."""
    if is_text(column):
        words = {one: str(one).strip().lower() for one in pc.unique(column).to_pylist()}
        if wrong := [one for one, word in words.items() if word not in YES + NO]:
            raise DatasetError(f"{name} holds {wrong[0]!r}. A flag is true or false, yes or no, 1 or 0.")
        return np.array([words[one] in YES for one in column.to_pylist()], bool)
    values = numbers(name, column, "a flag")
    if (others := values[~np.isin(values, (0, 1))]).size:
        raise DatasetError(f"{name} holds {others[0]:g}. A flag is true or false, yes or no, 1 or 0.")
    return values == 1


class Codes(NamedTuple):
    """The code of each row (NaN where it is missing) and the names of the codes; no names if codes are the values."""

    codes: np.ndarray
    names: tuple[str, ...]


def codes(columns: list[pa.Array]) -> list[Codes]:
    """Codes 0, 1, 2, … of the values in sorted order; the columns share them. Numbers sort as numbers."""
    if all(pa.types.is_boolean(one.type) or pa.types.is_null(one.type) for one in columns):
        return [Codes(numbers("", one, ""), ("false", "true")) for one in columns]
    if all(is_number(one) for one in columns):
        return _number_codes([numbers("", one, "") for one in columns])
    found = [texts(one) for one in columns]
    known = sorted({text for one in found for text in one if text is not None})
    place = {text: float(code) for code, text in enumerate(known)}
    return [Codes(np.array([place.get(text, np.nan) for text in one], np.float64), tuple(known)) for one in found]


def _number_codes(values: list[np.ndarray]) -> list[Codes]:
    known = np.unique(np.concatenate([one[~np.isnan(one)] for one in values]))
    if np.array_equal(known, np.arange(len(known))):
        return [Codes(one, ()) for one in values]
    names = tuple(name_of(one) for one in known)
    return [
        Codes(np.where(np.isnan(one), np.nan, np.searchsorted(known, one).astype(np.float64)), names) for one in values
    ]


def kind_of(column: pa.Array) -> str:
    """What a column holds, in a word."""
    kind = column.type
    if pa.types.is_null(kind):
        return "empty"
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_text(column):
        return "text"
    if is_list(column):
        return "lists"
    if pa.types.is_date(kind):
        return "dates"
    if pa.types.is_timestamp(kind):
        return "timestamps"
    if is_whole(column):
        return "integers"
    return "numbers" if is_number(column) else str(kind)


def range_of(values: np.ndarray) -> str:
    """The smallest and the largest number."""
    known = values[~np.isnan(values)]
    return f"{known.min():g} to {known.max():g}" if len(known) else "none"


def counted(names: tuple[str, ...]) -> str:
    """How many names, and the first of them."""
    more = ", …" if len(names) > MOST_NAMED else ""
    return f"{len(names):,}: {', '.join(names[:MOST_NAMED])}{more}"
