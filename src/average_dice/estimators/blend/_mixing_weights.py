"""The convex combination of estimates whose estimated mean squared error is least.

Each estimate comes with a row of errors, a number for each independent source of them, so that the covariance of two
estimates is the product of their rows. One combination of them, the reference, is taken to be unbiased. The distance
of an estimate from it, beyond what chance explains, is taken for its bias (the test of overlapping intervals is that of
SLOPE: Su, Srinath & Krishnamurthy, 2020; the objective is that of MAGIC: Thomas & Brunskill, 2016).

    min_x  xᵀ (Σ + b bᵀ) x,   x ≥ 0,  Σ x = 1,      b = the distance beyond `overlap` standard errors
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

Values = Float[np.ndarray, " estimate"]

SUM_WEIGHT = 1e3  # how much more the constraint Σ x = 1 counts than the errors; the weights are rescaled after it


@dataclass(frozen=True, eq=False)
class Mixture:
    """The weights, the bias that the reference finds in each estimate, and the mixture's value and standard error."""

    weights: Values
    bias: Values
    value: float
    standard_error: float


def mix(values: Values, errors: Float[np.ndarray, "estimate source"], reference: Values, *, overlap: float) -> Mixture:
    """The best mixture; `reference` are the weights of the combination that is taken to be unbiased."""
    apart = values - reference @ values
    chance = overlap * np.linalg.norm(errors - reference @ errors, axis=1)
    bias = np.sign(apart) * np.maximum(np.abs(apart) - chance, 0.0)
    every = np.column_stack([errors, bias])
    scale = np.sqrt(np.mean(every**2)) or 1.0
    rows = np.vstack([every.T / scale, np.full(len(values), SUM_WEIGHT)])
    goal = np.append(np.zeros(every.shape[1]), SUM_WEIGHT)
    weights, _ = nnls(rows, goal, maxiter=50 * len(values))
    weights /= weights.sum()
    return Mixture(weights, bias, float(weights @ values), float(np.linalg.norm(weights @ errors)))
