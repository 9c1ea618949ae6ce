"""How much each row counts in the regression of a critic."""

from collections.abc import Callable

import numpy as np

from average_dice.problem import Problem, Rows

RowWeights = Callable[[Problem], Rows]


def evenly(problem: Problem) -> Rows:
    """Every row counts the same."""
    return np.ones(problem.dataset.num_transitions)


def discounted(problem: Problem) -> Rows:
    """γᵗ: rows count as they do in J.

    Where π acts like the log, TD is a contraction in this norm, and rewards that γᵗ no longer sees do not disturb it.
    """
    return problem.discount**problem.dataset.step
