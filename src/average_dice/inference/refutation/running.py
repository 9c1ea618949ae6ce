"""Runs the refuters on one estimate."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from average_dice.data import LoggedDataset
from average_dice.errors import SettingError
from average_dice.inference.refutation.base import Refuter
from average_dice.inference.refutation.case import Case
from average_dice.inference.refutation.registry import REFUTERS
from average_dice.inference.refutation.results import Refutations


def run_refuters(
    name: str,
    case: Case,
    refuters: Sequence[Refuter] = REFUTERS,
    starting: Callable[[str], None] = lambda name: None,
) -> Refutations:
    """Each refuter in turn. `name` is that of the estimator; `starting` is called with the name of each refuter."""
    if case.method.trains:
        raise SettingError(
            f"refutation refits the method about a hundred times, and {name} trains each time. Refute a method in "
            "closed form, such as average-dice-blend."
        )
    found = []
    for refuter in refuters:
        starting(f"refutation: {refuter.name}")
        found.append(refuter(case))
    return Refutations(name, case.value, tuple(found))


def order_in_time(data: LoggedDataset, time: str | None) -> Int[np.ndarray, " episode"]:
    """The episodes in the order of an extra column, at their first rows; in the order of the log if None."""
    if time is None:
        return np.arange(data.num_episodes)
    if time not in data.extra:
        known = ", ".join(data.extra) or "none"
        raise SettingError(f"the log has no extra column {time!r}. It has: {known}.")
    return np.argsort(data.extra[time][data.starts], kind="stable")
