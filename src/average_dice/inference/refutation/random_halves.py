"""Random halves: two random halves of the log must give the same value, up to the noise that the interval claims.

The two values of a half each have twice the variance of the whole log's, so their difference is 2 standard errors of
the estimate wide. The root of the mean square over several splits is near 1. It is larger where a few episodes decide,
or where the method is less stable than its bootstrap resamples show.
"""

import numpy as np

from average_dice.inference.refutation.base import STANDARD_ERRORS, Measured, Refuter
from average_dice.inference.refutation.case import Case

NUM_SPLITS = 4


def _measure(case: Case) -> Measured:
    case.require_episodes()
    error = 2 * case.standard_error
    halves = [half for pair in case.random_halves(NUM_SPLITS) for half in pair]
    values = np.array([fit.value for fit in case.fits_of_parts(halves)]).reshape(NUM_SPLITS, 2)
    number = float(np.sqrt(np.mean(((values[:, 0] - values[:, 1]) / error) ** 2)))
    return Measured(
        number,
        f"random halves of the log agree: they differ by {number:.1f} standard errors",
        f"random halves of the log differ by {number:.1f} standard errors: the interval is too narrow",
    )


RANDOM_HALVES = Refuter(
    name="random-halves",
    asks="Do random halves of the log give the same value?",
    unit=STANDARD_ERRORS,
    limit=2.5,
    why="Chosen on sound logs, where it is at most 2.3",
    measure=_measure,
)
