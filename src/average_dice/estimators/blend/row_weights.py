"""Weights of the rows in the regression of a critic."""

from collections.abc import Callable

import numpy as np

from average_dice.problem import Problem, Rows

RowWeights = Callable[[Problem], Rows]


def evenly(problem: Problem) -> Rows:
    """Every row has the same weight."""
    return np.ones(problem.dataset.num_transitions)


def discounted(problem: Problem) -> Rows:
    """γᵗ, the weight of the row's step in J.

    If π acts like the log, TD is a contraction in this norm, and late rewards, which hardly count in J, add no noise.
    """
    return problem.discount**problem.dataset.step
