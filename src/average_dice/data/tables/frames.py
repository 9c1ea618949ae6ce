"""Data frames: pandas, polars, Arrow tables and DuckDB relations, all through narwhals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from average_dice.data.action_features import as_action_features
from average_dice.data.dataset import LoggedDataset
from average_dice.data.tables.log import log_of_table
from average_dice.data.tables.roles import Roles
from average_dice.errors import DatasetError


def from_dataframe(
    frame: Any,
    *,
    episode: str | None,
    time: str | None = None,
    observations: str | Sequence[str],
    action: str | Sequence[str],
    reward: str,
    terminated: str | bool | None = None,
    truncated: str | None = None,
    behaviour_prob: str | None = None,
    behaviour_log_prob: str | None = None,
    target_prob: str | None = None,
    target_log_prob: str | None = None,
    next_observations: str | Sequence[str] | None = None,
    categorical: Sequence[str | int] = (),
    action_mask: str | Sequence[str] | None = None,
    actions: Sequence[Any] | None = None,
    action_features: Any = None,
    extra: Sequence[str] = (),
    impute: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> LoggedDataset:
    """A log from a data frame of pandas or polars, an Arrow table or a DuckDB relation. Arguments name its columns.

    - `episode`: integers stay; other identifiers are numbered by their first step (its date, or its place in the table)
      and kept in `extra["episode_name"]`.
      None: every row is an episode, as in a log of single decisions.
    - `time`: rows are sorted by it within the episode. Without it, the rows of an episode must be in order of time.
    - `observations`: numbers, booleans, texts (which become codes), a column of lists, or patterns such as `"lab_*"`.
    - `action`: texts, booleans and integers are discrete. A float column, a list of columns or a column of lists is
      continuous. `actions`: all discrete actions in the order of the policy; by default those of the log, sorted.
      `action_features`: one row of numbers for each of them, in this order; similar actions share values.
    - `terminated`: a column of flags; or True if every episode ends by itself with its last row; or False if only the
      recording stopped. It may be left out if every episode has one row. An end without a flag is a truncation.
    - `next_observations`: by default the next row's. A truncated last row without it is not used as a transition.
    - `behaviour_prob`, `target_prob`: of the logged action; or their logarithms.
    - `categorical`: observations, by name or place, whose numbers are codes; also the action, to make it discrete.
    - `action_mask`: a column for each action, or one of lists, in the order of the actions' numbers.
    - `extra`: other columns to keep, such as a second reward.
    - `impute="median"`: missing observations become the median, with an indicator; by default they are refused.

    `metadata["columns"]` and `metadata["notes"]` of the log say what was understood.

    >>> import pyarrow as pa
    >>> table = pa.table({"patient": ["a", "a", "b"], "age": [50, 51, 60], "drug": ["no", "yes", "no"],
    ...                   "outcome": [0.0, 1.0, 0.0]})
    >>> log = from_dataframe(
    ...     table, episode="patient", observations=["age"], action="drug", reward="outcome", terminated=True)
    >>> log.num_episodes, log.action.tolist(), log.names.actions
    (2, [0, 1, 0], ('no', 'yes'))
    """
    roles = Roles(
        episode=episode,
        time=time,
        observations=observations,
        action=action,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        behaviour_prob=behaviour_prob,
        behaviour_log_prob=behaviour_log_prob,
        target_prob=target_prob,
        target_log_prob=target_log_prob,
        next_observations=next_observations,
        categorical=[categorical] if isinstance(categorical, str) else categorical,
        action_mask=action_mask,
        extra=[extra] if isinstance(extra, str) else extra,
    )
    table = _arrow(frame, roles)
    log = log_of_table(table, roles, impute=impute, actions=actions, metadata=metadata)
    if action_features is None:
        return log
    return replace(log, action_features=as_action_features(action_features, log.action))


def _arrow(frame: Any, roles: Roles) -> pa.Table:
    """The columns that are used, as an Arrow table."""
    import narwhals as nw

    try:
        found = nw.from_native(frame)
        columns = list(found.collect_schema().names())
    except TypeError:
        raise DatasetError(
            f"{type(frame).__name__} is no data frame. Give one of pandas or polars, an Arrow table or a DuckDB "
            "relation."
        ) from None
    except nw.exceptions.DuplicateError:
        raise DatasetError("the data frame has two columns of the same name. Rename or remove one.") from None
    if wrong := [name for name in columns if not isinstance(name, str)]:
        raise DatasetError(f"the name of column {wrong[0]!r} is no text. Rename the columns.")
    names = roles.of(columns).names
    if isinstance(found, nw.LazyFrame):
        return found.select(names).collect("pyarrow").to_native()
    return pa.table({name: _column(found.get_column(name), name == roles.episode) for name in names})


def _column(series: Any, is_episode: bool) -> Any:
    """One column. Objects that Arrow does not know may be identifiers of episodes, by their texts."""
    import narwhals as nw

    if series.dtype == nw.Object and is_episode:
        return pa.array([None if one is None else str(one) for one in series.to_list()], pa.string())
    if series.dtype == nw.Object and series.implementation.is_polars():
        raise DatasetError(f"column {series.name} holds Python objects. Convert it to numbers or texts.")
    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DatasetError(
            f"column {series.name} holds values of different types. Convert it to numbers or texts."
        ) from None
