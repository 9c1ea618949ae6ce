"""From a mapping such as reward=outcome, and from names that are equal to ours, to the roles of a file's columns."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from average_dice.data.tables.roles import Roles, require, shown
from average_dice.errors import DatasetError, SettingError, did_you_mean
from average_dice.listing import as_option

NEEDED = ("episode", "action", "reward")
OPTIONAL = ("time", "terminated", "truncated", "action_mask", "next_observations")
PROBABILITIES = ("behaviour_log_prob", "behaviour_prob", "target_log_prob", "target_prob")
KEYS = (*NEEDED, *OPTIONAL, *PROBABILITIES, "observations")
ALIASES = {"step": "time", "observation": "observations", "next_observation": "next_observations"}
CONSTANTS = {"true": True, "false": False}
EACH_ROW = "none"  # episode=none: every row is an episode

# What such columns are often called, for the command that an error suggests; parts of names in lower case.
USUAL = {
    "episode": "episode|traj|patient|subject|session|user|visit|stay|_id$|^id$",
    "time": "time|step|day|date|hour|^t$",
    "action": "action|treat|drug|dose|arm|decision|choice",
    "reward": "reward|outcome|return|score|profit|click|benefit",
    "terminated": "terminat|done|terminal|discharg|churn|final|end",
}


def roles_of(
    names: Sequence[str],
    columns: Mapping[str, Any],
    observations: Sequence[str] | None,
    categorical: Sequence[str | int],
    extra: Sequence[str],
    dates: Callable[[], Collection[str]] = tuple,
) -> Roles:
    """The roles of a file with these columns. What `columns` does not map may have our name.

    `dates`: gives the columns that hold dates or times, which are not suggested as observations.
    """
    given = _known(columns)
    if observations is not None:
        given["observations"] = list(observations)
    own = {"time": ("time", "step"), "observations": ("observation",)}
    for key in (*NEEDED, "time", "terminated", "truncated", "action_mask", "observations"):
        if key not in given and (same := [name for name in own.get(key, (key,)) if name in names]):
            given[key] = same[0]
    for kind in ("behaviour", "target"):
        both = [f"{kind}_log_prob", f"{kind}_prob"]
        if not set(both) & set(given) and (same := [name for name in both if name in names]):
            given[same[0]] = same[0]
    if absent := [key for key in (*NEEDED, "observations") if key not in given]:
        for value in given.values():
            if isinstance(value, str) and not any(one in value for one in "*+"):
                require(value, names)
        raise DatasetError(_foreign(absent, names, given, dates()))
    if isinstance(action := given["action"], str) and action not in names and "+" in action:
        given["action"] = action.split("+")
    if "next_observations" not in given and (following := _following(given["observations"], names)):
        given["next_observations"] = following
    return Roles(**given, categorical=categorical, extra=extra)


def _known(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping by our names, with true and false for terminated, and no column for episodes of one row."""
    found: dict[str, Any] = {}
    for key, value in columns.items():
        ours = ALIASES.get(key, key)
        if ours not in KEYS:
            raise SettingError(
                f"columns maps {key!r}, which is no column of a log.{did_you_mean(str(key), KEYS)} "
                f"It can map {', '.join(KEYS)}."
            )
        if ours in found:
            raise SettingError(f"columns maps {ours} twice.")
        if ours == "terminated" and isinstance(value, str):
            value = CONSTANTS.get(value.lower(), value)
        if ours == "episode" and isinstance(value, str) and value.lower() == EACH_ROW:
            value = None
        found[ours] = value
    return found


def _following(observations: str | Sequence[str], names: Sequence[str]) -> str | list[str] | None:
    """Columns called next_… for all observations, if the file has them."""
    listed = [observations] if isinstance(observations, str) else list(observations)
    following = [f"next_{one}" for one in listed]
    return following if all(one in names for one in following) else None


def _foreign(absent: Sequence[str], names: Sequence[str], given: Mapping[str, Any], dates: Collection[str]) -> str:
    """What is missing, and a command to start from."""
    mapped = {key: value for key, value in given.items() if key != "observations"}
    taken = {str(value) for value in given.values()}
    for key, pattern in USUAL.items():
        close = [name for name in names if name not in taken and re.search(pattern, name.lower())]
        if key not in mapped and close:
            mapped[key] = close[0]
            taken.add(close[0])
        elif key not in mapped and key in NEEDED:
            mapped[key] = "COLUMN"
    rest = [name for name in names if name not in taken and not re.search("prob", name.lower())]
    left_out = [name for name in rest if name in dates]
    rest = [name for name in rest if name not in dates]
    pairs = as_option(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in mapped.items()
    )
    several = as_option(rest[:5] or ["COLUMN", "COLUMN"]) + (",…" if len(rest) > 5 else "")
    return (
        f"no column for {', '.join(absent)}. Its columns are {shown(names)}. Say which is which, for example: "
        f"--columns {pairs} --observations {several} (in Python: columns={{…}}, observations=[…])."
        + (f" Left out: {', '.join(left_out)}, with dates or times, which are no observations." if left_out else "")
    )
