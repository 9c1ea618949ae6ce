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

TRAINS = "refuters refit the method about 100 times, and this one trains each time: refute a closed form instead"


def run_refuters(
    name: str,
    case: Case,
    refuters: Sequence[Refuter] = REFUTERS,
    starting: Callable[[str], None] = lambda name: None,
) -> Refutations:
    """Each refuter in turn. `name` is that of the estimator; `starting` is called with the name of each refuter."""
    if case.method.trains:
        return Refutations(name, tuple(refuter.not_applicable(TRAINS) for refuter in refuters))
    found = []
    for refuter in refuters:
        starting(f"refutation: {refuter.name}")
        found.append(refuter(case))
    return Refutations(name, tuple(found))


def order_in_time(data: LoggedDataset, time: str | None) -> Int[np.ndarray, " episode"]:
    """The episodes in the order of an extra column, at their first rows; in the order of the log if None."""
    if time is None:
        return np.arange(data.num_episodes)
    if time not in data.extra:
        known = ", ".join(data.extra) or "none"
        raise SettingError(f"the log has no extra column {time!r}. It has: {known}.")
    return np.argsort(data.extra[time][data.starts], kind="stable")
