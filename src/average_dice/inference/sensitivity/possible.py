"""The values that the rewards allow. Bounds beyond them say nothing more, and are clipped there."""

import numpy as np

from average_dice.inference.sensitivity.forms import Bounds, Gammas, Side
from average_dice.problem import Problem


def possible_range(problem: Problem) -> tuple[float, float]:
    """The least and the largest possible value (`Problem.value_bounds`).

    Forms by products count rewards up to truncation, and none after it: then 0 is possible, too.
    """
    low, high = problem.value_bounds
    return (min(low, 0.0), max(high, 0.0)) if problem.misses_rewards else (low, high)


def clipped(bounds: Bounds, low: float, high: float) -> Bounds:
    """The same bounds, but none beyond these two numbers."""

    def within(gammas: Gammas, side: Side) -> Gammas:
        return np.clip(bounds(gammas, side), low, high)

    return within
