"""One number from many: the convex combination of estimates whose estimated mean squared error is least.

Each estimate comes with a row of errors, a number for each independent source of them, so that the covariance of two
estimates is the product of their rows. One combination of them, the reference, is taken to be without bias; whatever
lies further from it than chance explains is biased by the rest (the test of overlapping intervals of SLOPE: Su,
Srinath & Krishnamurthy, 2020; the objective is that of MAGIC: Thomas & Brunskill, 2016).

    min_x  xᵀ (Σ + b bᵀ) x,   x ≥ 0,  Σ x = 1,      b = what parts them beyond `overlap` standard errors
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

Values = Float[np.ndarray, " estimate"]

MUCH = 1e3  # how much more the sum of the weights counts than their error


@dataclass(frozen=True, eq=False)
class Combination:
    """The weights, and for each estimate the bias that the reference finds in it."""

    weights: Values
    bias: Values
    value: float
    standard_error: float


def combine(
    values: Values, errors: Float[np.ndarray, "estimate source"], reference: Values, *, overlap: float
) -> Combination:
    """Weights for the estimates; `reference` are those of the combination that is taken to be without bias."""
    apart = values - reference @ values
    chance = overlap * np.linalg.norm(errors - reference @ errors, axis=1)
    bias = np.sign(apart) * np.maximum(np.abs(apart) - chance, 0.0)
    every = np.column_stack([errors, bias])
    scale = np.sqrt(np.mean(every**2)) or 1.0
    rows = np.vstack([every.T / scale, np.full(len(values), MUCH)])
    goal = np.append(np.zeros(every.shape[1]), MUCH)
    weights, _ = nnls(rows, goal, maxiter=50 * len(values))
    weights /= weights.sum()
    return Combination(weights, bias, float(weights @ values), float(np.linalg.norm(weights @ errors)))
