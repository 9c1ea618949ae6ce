"""From a user's table to a log: rows, ends of episodes, observations, actions, rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from average_dice.data.dataset import LoggedDataset
from average_dice.data.names import EPISODE_NAME, Names
from average_dice.data.tables.actions import actions_of, log_probabilities, mask_of, require_all
from average_dice.data.tables.columns import holds_dates, is_number, kind_of, numbers, plain, range_of, taken, texts
from average_dice.data.tables.observations import check_missing, imputed, joined, observed
from average_dice.data.tables.roles import Roles, listed
from average_dice.data.tables.rows import Rows, ends_of, rows_of
from average_dice.data.understood import Understood, many
from average_dice.errors import DatasetError, SettingError

IMPUTE = "median"


def log_of_table(
    table: pa.Table,
    roles: Roles,
    *,
    impute: str | None = None,
    actions: Sequence[Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    understood: Understood | None = None,
) -> LoggedDataset:
    """The log in a table with these roles of columns. What was understood goes into its metadata."""
    if impute not in (None, IMPUTE):
        raise SettingError(f"impute is {impute!r}. It can be {IMPUTE!r}, or left out.")
    roles = roles.of(table.column_names)
    if table.num_rows == 0:
        raise DatasetError("the table has no rows. Check how it was written or filtered.")
    understood = understood or Understood()
    roles = _with_categoricals(_without_dates(roles, table, understood), table)
    unsorted = {name: plain(table.column(name)) for name in roles.names}
    rows = rows_of(unsorted, roles, understood)
    terminated, truncated = ends_of(unsorted, roles, rows, understood)
    columns = {name: taken(name, column, rows.order) for name, column in unsorted.items()}

    cells = observed(columns, roles, understood)
    seen, unused = joined(cells, rows, terminated)
    if impute is None:
        check_missing(seen, cells, rows, terminated)
    else:
        seen = imputed(seen, cells, unused, understood)
    _tell_next(roles, rows, unused, understood)

    used = np.flatnonzero(~unused)
    kept = rows.chosen(used)
    columns = {name: taken(name, column, used) for name, column in columns.items()}
    action, action_names = actions_of(columns, roles, kept, actions, understood)
    require_all([roles.reward], columns, kept, "Rewards")
    reward = numbers(roles.reward, columns[roles.reward], "a reward")
    understood.column("reward", roles.reward, kind_of(columns[roles.reward]), range_of(reward), f"{reward[0]:g}")
    found: dict[str, Any] = {
        "episode": kept.episode,
        "step": kept.step,
        "observation": seen.values[used],
        "action": action,
        "reward": reward,
        "next_observation": seen.following[used],
        "terminated": terminated[used],
        "truncated": truncated[used] | (kept.last & ~terminated[used]),
    }
    for name in ("behaviour", "target"):
        for suffix in ("prob", "log_prob"):
            if (given := getattr(roles, f"{name}_{suffix}")) is not None:
                found[f"{name}_log_prob"] = log_probabilities(
                    given, suffix == "log_prob", columns, kept, action.ndim == 1, name == "target", understood
                )
    if roles.action_mask is not None:
        found["action_mask"] = mask_of(roles.action_mask, columns, kept, understood)
    extra = _extra(roles, columns, kept, understood)  # before what was understood is written down
    return LoggedDataset.from_columns(
        found,
        {**(metadata or {}), **understood.to_metadata()},
        categorical=seen.categorical,
        names=Names(seen.names, action_names, dict(seen.categories)),
        extra=extra,
    )


def _without_dates(roles: Roles, table: pa.Table, understood: Understood) -> Roles:
    """A pattern such as * matches dates, too, and they are no observations. One that is named is refused elsewhere."""
    dates = [name for name in roles.matched if holds_dates(plain(table.column(name)))]
    if not dates:
        return roles
    sources = listed(roles.observations)
    kept = [place for place, name in enumerate(sources) if name not in dates]
    if not kept:
        raise DatasetError(f"the observations {', '.join(dates)} hold dates or times. Name at least one other column.")
    holds = "holds dates or times and is" if len(dates) == 1 else "hold dates or times and are"
    understood.note(
        f"{', '.join(dates)} {holds} left out of the observations. If it matters, add a number, such as the days since "
        "the start of the episode"
    )
    following = None if roles.next_observations is None else listed(roles.next_observations)
    return replace(
        roles,
        observations=[sources[place] for place in kept],
        next_observations=None if following is None else [following[place] for place in kept],
        matched=[],
    )


def _with_categoricals(roles: Roles, table: pa.Table) -> Roles:
    """Columns that a data frame calls categorical are categorical here, too."""
    single = [*listed(roles.observations), *listed(roles.action)]
    found = [name for name in single if pa.types.is_dictionary(table.schema.field(name).type)]
    return replace(roles, categorical=list(dict.fromkeys([*roles.categorical, *found])))


def _tell_next(roles: Roles, rows: Rows, unused: np.ndarray, understood: Understood) -> None:
    """Says where next observations come from. Raises if nothing is left."""
    if roles.next_observations is None:
        understood.column("next_observation", "–", "the next row", "")
    else:
        given = roles.next_observations
        understood.column("next_observation", given if isinstance(given, str) else ", ".join(given), "given", "")
    if unused.all():
        raise DatasetError(
            "no transition is left: every episode has one row, is not terminated, and has no next observation. If each "
            "row is a decision by itself, say terminated=True (--columns terminated=true); otherwise give "
            "next_observations."
        )
    if unused.any():
        single = int((unused & (rows.step == 0)).sum())
        gone = f"; left out: {many(single, 'episode')} of one row" if single else ""
        understood.note(
            f"{many(int(unused.sum()), 'truncated episode')} without a next observation after the last row: this row "
            f"only gives the next observation of the row before, its action and reward are not used{gone}"
        )


def _extra(roles: Roles, columns: Mapping[str, pa.Array], rows: Rows, understood: Understood) -> dict[str, np.ndarray]:
    """Other columns: numbers, with NaN where they are missing, or texts, empty where they are missing."""
    found: dict[str, np.ndarray] = {}
    for name in roles.extra:
        column = columns[name]
        if is_number(column):
            found[name] = numbers(name, column, "an extra column")
            values = range_of(found[name])
        else:
            found[name] = np.array(["" if one is None else one for one in texts(column)], object)
            values = f"{len(set(found[name])):,} different"
        understood.column("extra", name, kind_of(column), values, found[name][0])
    if rows.names is not None:
        found[EPISODE_NAME] = rows.names
    return found
