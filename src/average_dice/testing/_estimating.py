"""The calls of the estimator contract that the checks use, and the comparison of numbers."""

import jax
import numpy as np
from jaxtyping import Int

from average_dice.estimators import Estimator, Fit
from average_dice.problem import Problem
from average_dice.resampling import Resample


def fit(method: Estimator, problem: Problem) -> Fit:
    """A fit with a fixed key."""
    return method.fit(problem, key=jax.random.key(0))


def refit(method: Estimator, problem: Problem, chosen: Int[np.ndarray, " choice"] | None) -> Fit:
    """A refit to these episodes of the log, or to the whole log if None, after one preparation."""
    resample = Resample.everything(problem) if chosen is None else Resample.of(problem, chosen)
    return method.prepare(problem, key=jax.random.key(0)).refit([resample])[0]


def assert_close(found: float, expected: float, tolerance: float, what: str, hint: str = "") -> None:
    """Raises an AssertionError with both numbers, unless they differ by no more than the tolerance."""
    if not abs(found - expected) <= tolerance:  # so that NaN fails
        off = found - expected
        message = f"{what}: found {found:.6g}, expected {expected:.6g} ± {tolerance:g}, off by {off:+.3g}."
        raise AssertionError(f"{message} {hint}".rstrip())
