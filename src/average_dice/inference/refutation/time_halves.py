"""Halves in time: the first and the second half of the log must agree, and so must blocks of consecutive episodes.

Three distances, the largest of which counts:

- the value by the method on the first half, minus that on the second, in standard errors of the difference;
- the same of what the logged episodes earned;
- the spread of what blocks of consecutive episodes earned, against that of independent episodes: too large if
  neighbours are alike (the same person, the same day), too small if blocks repeat each other (copies).

Time is the order of episodes in the log, or an extra column.
"""

import numpy as np
from scipy import stats

from average_dice.inference.refutation.base import STANDARD_ERRORS, Measured, Refuter
from average_dice.inference.refutation.case import Case, returns_of

NUM_BLOCKS = 10
FURTHEST = 1e3


def _measure(case: Case) -> Measured:
    case.require_episodes()
    middle = case.num_episodes // 2
    halves = np.sort(case.order[:middle]), np.sort(case.order[middle:])
    values = [fit.value for fit in case.fits_of_parts(halves)]
    distances = {
        "value": abs(values[0] - values[1]) / (2 * case.standard_error),
        "logged returns": _apart(*(returns_of(case.problem)[half] for half in halves)),
        "blocks": _blocks(returns_of(case.problem)[case.order]),
    }
    number = max(distances.values())
    failed = {
        "value": f"the first half of the log gives {values[0]:.4g}, the second {values[1]:.4g}",
        "logged returns": "what episodes earn differs between the first and the second half of the log",
        "blocks": "episodes depend on their neighbours: consecutive ones are too alike, or blocks repeat each other",
    }[max(distances, key=lambda name: distances[name])]
    return Measured(number, "the first and the second half of the log agree", failed)


def _apart(first: np.ndarray, second: np.ndarray) -> float:
    """The distance of two means in standard errors."""
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    gap = abs(float(first.mean() - second.mean()))
    return min(gap / error, FURTHEST) if error > 0 else 0.0


def _blocks(returns: np.ndarray) -> float:
    """The spread of the means of consecutive blocks, as the distance of a normal variable with the same tail."""
    blocks = np.array_split(returns, NUM_BLOCKS)
    variance, size = float(returns.var(ddof=1)), len(returns) / NUM_BLOCKS
    if variance == 0:
        return 0.0
    found = size * float(np.var([block.mean() for block in blocks])) * NUM_BLOCKS / variance
    tail = min(stats.chi2.logsf(found, NUM_BLOCKS - 1), stats.chi2.logcdf(found, NUM_BLOCKS - 1))
    return min(float(-stats.norm.ppf(max(np.exp(tail), 1e-300))), FURTHEST)


TIME_HALVES = Refuter(
    name="halves-in-time",
    asks="Do the first and the second half of the log agree?",
    unit=STANDARD_ERRORS,
    limit=4.0,
    why="Chosen on sound logs, where it is at most 3.3",
    measure=_measure,
)
