"""The observations of a user's table: numbers and codes, the next ones, and missing values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from average_dice.data.tables.columns import (
    codes,
    counted,
    is_list,
    is_text,
    kind_of,
    name_of,
    numbers,
    range_of,
    vectors,
)
from average_dice.data.tables.roles import Roles, listed
from average_dice.data.tables.rows import Rows
from average_dice.data.understood import Understood
from average_dice.errors import DatasetError, did_you_mean

MISSING = "missing"  # the name of the category of missing values
MOST_TEXTS = 20  # a column with more different texts, most of them once, may be an identifier

Arrays = Mapping[str, pa.Array]


@dataclass(frozen=True)
class Cell:
    """One observation column: its values and, if the table has them, the next ones. NaN is a missing value."""

    name: str
    values: np.ndarray
    following: np.ndarray | None
    kind: str
    categories: tuple[str, ...] = ()
    categorical: bool = False


@dataclass(frozen=True)
class Observed:
    """All observation columns. `following` is the next observation; NaN is a missing value in both."""

    values: np.ndarray
    following: np.ndarray
    names: tuple[str, ...]
    categorical: tuple[int, ...]
    categories: Mapping[int, tuple[str, ...]]


def observed(table: Arrays, roles: Roles, understood: Understood) -> list[Cell]:
    """The columns in the order in which they are given. Lists become several columns."""
    sources = listed(roles.observations)
    following = [None] * len(sources) if roles.next_observations is None else listed(roles.next_observations)
    cells: list[Cell] = []
    declared = _declared(roles, table)
    for source, after in zip(sources, following, strict=True):
        parts = [table[source]] if after is None else [table[source], table[after]]
        if is_list(parts[0]):
            cells += _of_lists(source, parts, len(cells), declared)
        else:
            cells.append(_single(source, parts, is_text(parts[0]) or {source, len(cells)} & declared, understood))
    known = {one for cell in cells for one in (cell.name, cell.name.partition("[")[0])}
    if wrong := [one for one in declared if one not in known and not (isinstance(one, int) and one < len(cells))]:
        raise DatasetError(
            f"categorical names {wrong[0]!r}, which is no observation."
            f"{did_you_mean(str(wrong[0]), sources)} The observations are {', '.join(sources)}."
        )
    for place, cell in enumerate(cells):
        values = counted(cell.categories) if cell.categories else range_of(cell.values)
        example = cell.values[0]
        shown = cell.categories[int(example)] if cell.categories and example == example else f"{example:g}"
        understood.column(f"observation {place}", cell.name, cell.kind, values, shown)
    return cells


def _declared(roles: Roles, table: Arrays) -> set[str | int]:
    """The names and positions in `categorical`, but for the action. Numbers may be texts, as on the command line."""
    actions = listed(roles.action)
    given = [one for one in roles.categorical if one not in actions]
    return {int(one) if isinstance(one, str) and one.isdecimal() and one not in table else one for one in given}


def _of_lists(source: str, parts: Sequence[pa.Array], first: int, declared: set[str | int]) -> list[Cell]:
    what = "an observation"
    if not all(is_list(one) for one in parts):
        raise DatasetError(f"{source} holds lists, so next_observations must be a column of lists, too.")
    values = [vectors(source, one, what) for one in parts]
    width = values[0].shape[1]
    if values[-1].shape[1] != width:
        raise DatasetError(f"{source} has {width} numbers and its next observation {values[-1].shape[1]}.")
    cells = []
    for place in range(width):
        name = source if width == 1 else f"{source}[{place}]"
        is_code = bool({name, first + place} & declared) or source in declared
        after = values[1][:, place] if len(values) > 1 else None
        kind = "categorical" if is_code else "numbers"
        cells.append(Cell(name, values[0][:, place], after, kind, categorical=is_code))
    return cells


def _single(source: str, parts: Sequence[pa.Array], is_code: object, understood: Understood) -> Cell:
    if not is_code:
        values = [numbers(source, one, "an observation") for one in parts]
        return Cell(source, values[0], values[1] if len(values) > 1 else None, kind_of(parts[0]))
    if not is_text(parts[0]):
        numbers(source, parts[0], "an observation")  # refuses times and other kinds
    found = codes(list(parts))
    names = found[0].names
    if is_text(parts[0]) and len(names) > max(MOST_TEXTS, len(parts[0]) / 2):
        understood.note(
            f"{source} holds {len(names):,} different texts in {len(parts[0]):,} rows. "
            "If it is an identifier, leave it out"
        )
    after = found[1].codes if len(found) > 1 else None
    return Cell(source, found[0].codes, after, "categorical", names, categorical=True)


def joined(cells: Sequence[Cell], rows: Rows, terminated: np.ndarray) -> tuple[Observed, np.ndarray]:
    """The observations with the next ones, and which rows cannot be used because they have none.

    A next observation that the table does not have is that of the next row. After a termination it does not matter:
    it is the row's own. After a truncation it is unknown, and the row cannot be used.
    """
    values = np.column_stack([one.values for one in cells])
    following = np.column_stack(
        [np.full(len(values), np.nan) if one.following is None else one.following for one in cells]
    )
    unused = rows.last & ~terminated & np.isnan(following).all(axis=1)
    inside = ~rows.last
    source = np.where(inside, np.arange(len(values)) + 1, np.arange(len(values)))
    fill = (inside | terminated)[:, None] & np.isnan(following)
    following = np.where(fill, values[source], following)
    plain = len(cells) > 1 and all(one.name.startswith("observation[") for one in cells)
    found = Observed(
        values,
        following,
        () if plain or [one.name for one in cells] == ["observation"] else tuple(one.name for one in cells),
        tuple(place for place, one in enumerate(cells) if one.categorical),
        {place: one.categories for place, one in enumerate(cells) if one.categories},
    )
    return found, unused


def check_missing(observed: Observed, cells: Sequence[Cell], rows: Rows, terminated: np.ndarray) -> None:
    """Raises with a count for each column with missing values."""
    ends = rows.last & ~terminated & ~np.isnan(observed.following).all(axis=1)
    gaps = np.isnan(observed.values), np.isnan(observed.following) & ends[:, None]
    numbers = gaps[0].sum(axis=0) + gaps[1].sum(axis=0)
    if numbers.any():
        found = [(cell.name, number) for cell, number in zip(cells, numbers, strict=True) if number]
        counts = ", ".join(f"{name}: {number:,} missing" for name, number in found)
        row = int((gaps[0] | gaps[1]).any(axis=1).argmax())
        raise DatasetError(
            f"{counts} (the first at {rows.place(row)}). Fill them in, leave these columns out, or impute them: "
            'impute="median" (--impute median) fills in the median and adds a column that says where.'
        )


def imputed(observed: Observed, cells: Sequence[Cell], unused: np.ndarray, understood: Understood) -> Observed:
    """Missing numbers become the median, with an indicator as a new last column; missing codes a category."""
    values, following = observed.values.copy(), observed.following.copy()
    names, categories, indicators, told = list(observed.names), dict(observed.categories), [], []
    for place, cell in enumerate(cells):
        gaps, after = np.isnan(values[:, place]), np.isnan(following[:, place]) & ~unused
        if not (gaps.any() or after.any()):
            continue
        if gaps.all():
            raise DatasetError(f"{cell.name} is missing in every row. Leave it out.")
        if cell.categorical:
            fill, categories[place] = _missing_code(values[:, place], cell)
            told.append(f"{cell.name}: {gaps.sum():,} as the category {MISSING}")
        else:
            fill = float(np.median(values[~gaps, place]))
            indicators.append((f"{cell.name}_{MISSING}", gaps, np.isnan(following[:, place])))
            told.append(f"{cell.name}: {gaps.sum():,} by {fill:g}")
        values[gaps, place] = fill
        following[np.isnan(following[:, place]), place] = fill
    if not told:
        return observed
    added = f". New observations: {', '.join(name for name, _, _ in indicators)}" if indicators else ""
    understood.note(f"missing values are imputed by the median ({'; '.join(told)}){added}")
    width = values.shape[1]
    for place, (name, gaps, _) in enumerate(indicators):
        understood.column(f"observation {width + place}", name, "indicator", f"{gaps.sum():,} true", f"{gaps[0]:g}")
    return replace(
        observed,
        values=np.column_stack([values, *(gaps for _, gaps, _ in indicators)]).astype(np.float64),
        following=np.column_stack([following, *(after for _, _, after in indicators)]).astype(np.float64),
        names=(*names, *(name for name, _, _ in indicators)) if names else (),
        categories=categories,
    )


def _missing_code(values: np.ndarray, cell: Cell) -> tuple[float, tuple[str, ...]]:
    """The code of missing values, and the names of all codes."""
    if MISSING in cell.categories:
        return float(cell.categories.index(MISSING)), cell.categories
    fill = float(np.nanmax(values)) + 1
    known = cell.categories or tuple(name_of(code) for code in range(int(fill)))
    return fill, (*known, MISSING)
