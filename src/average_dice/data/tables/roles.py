"""Roles: which column of a user's table is what."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

from average_dice.errors import DatasetError, did_you_mean

MOST_SHOWN = 30  # names of columns in a message

Several = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The names of columns, as in `from_dataframe`."""

    episode: str | None
    observations: Several
    action: Several
    reward: str
    time: str | None = None
    terminated: str | bool | None = None
    truncated: str | None = None
    behaviour_prob: str | None = None
    behaviour_log_prob: str | None = None
    target_prob: str | None = None
    target_log_prob: str | None = None
    next_observations: Several | None = None
    action_mask: Several | None = None
    categorical: Sequence[str | int] = ()
    extra: Sequence[str] = ()
    matched: Sequence[str] = ()  # observations that no name but a pattern gave

    def of(self, columns: Sequence[str]) -> "Roles":
        """The same for a table with these columns: patterns such as lab_* become names, and all names are known."""
        for name in ("behaviour", "target"):
            if getattr(self, f"{name}_prob") is not None and getattr(self, f"{name}_log_prob") is not None:
                raise DatasetError(f"give {name}_prob or {name}_log_prob, not both.")
        observations, matched = self.observations, list(self.matched)
        if not isinstance(observations, str):
            matched += [name for one in observations for name in _expanded(one, columns) if name != one]
            observations = [name for one in observations for name in _expanded(one, columns)]
            if not observations:
                raise DatasetError("no observation column is given. Name at least one.")
            if repeated := sorted({name for name in observations if observations.count(name) > 1}):
                raise DatasetError(f"observation column {', '.join(repeated)} is given twice. Name it once.")
        following = self.next_observations
        if isinstance(following, str) and "*" in following and following not in columns:
            following = [following.replace("*", one) for one in listed(observations)]
        if following is not None and len(listed(following)) != len(listed(observations)):
            raise DatasetError(
                f"{len(listed(following))} next_observations are given for {len(listed(observations))} observations. "
                "Give one for each, in the same order."
            )
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        found = Roles(**given | {"observations": observations, "next_observations": following, "matched": matched})
        for name in found.names:
            require(name, columns)
        return found

    @property
    def names(self) -> list[str]:
        """Every column that is used, once."""
        single = (
            self.episode,
            self.time,
            self.reward,
            self.terminated,
            self.truncated,
            self.behaviour_prob,
            self.behaviour_log_prob,
            self.target_prob,
            self.target_log_prob,
        )
        several = (self.observations, self.next_observations, self.action, self.action_mask, self.extra)
        found = [one for one in single if one is not None and not isinstance(one, bool)]
        return list(dict.fromkeys(found + [name for one in several if one is not None for name in listed(one)]))


def listed(given: Several) -> list[str]:
    """One name, or several, as a list."""
    return [given] if isinstance(given, str) else list(given)


def _expanded(name: str, columns: Sequence[str]) -> list[str]:
    if name in columns or not any(one in name for one in "*?["):
        return [name]
    return [one for one in columns if fnmatchcase(one, name)] or [name]


def require(name: str, columns: Sequence[str]) -> None:
    """Raises unless the table has this column, once."""
    if not isinstance(name, str):
        raise DatasetError(f"{name!r} is not the name of a column. Names are texts.")
    if name not in columns:
        raise DatasetError(f"no column {name!r}.{did_you_mean(name, columns)} The columns are {shown(columns)}.")
    if list(columns).count(name) > 1:
        raise DatasetError(f"column {name} occurs more than once. Keep one of each name.")


def shown(columns: Sequence[str]) -> str:
    """The names for a message; not all of them if there are many."""
    more = f" and {len(columns) - MOST_SHOWN:,} more" if len(columns) > MOST_SHOWN else ""
    return ", ".join(columns[:MOST_SHOWN]) + more
