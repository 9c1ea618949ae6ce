"""The convex combination of estimates with the least estimated mean squared error.

Each estimate has a row of errors, one number for each independent source, so that the covariance of two estimates is
the product of their rows. One combination of them, the reference, is assumed to be unbiased. The distance of an
estimate from it, minus what chance explains, is used as its bias (the test of overlapping intervals is that of SLOPE:
Su, Srinath & Krishnamurthy, 2020; the objective is that of MAGIC: Thomas & Brunskill, 2016).

    min_x  xᵀ (Σ + b bᵀ) x,   x ≥ 0,  Σ x = 1,      b = the distance beyond `overlap` standard errors
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

Values = Float[np.ndarray, " estimate"]

SUM_WEIGHT = 1e3  # of the constraint Σ x = 1 against errors of about 1; rescaling then makes it exact


@dataclass(frozen=True, eq=False)
class Mixture:
    """The weights, the bias of each estimate against the reference, and the mixture's value and standard error."""

    weights: Values
    bias: Values
    value: float
    standard_error: float


def mix(values: Values, errors: Float[np.ndarray, "estimate source"], reference: Values, *, overlap: float) -> Mixture:
    """The best mixture. `reference` holds the weights of the combination that is assumed to be unbiased."""
    apart = values - reference @ values
    chance = overlap * np.linalg.norm(errors - reference @ errors, axis=1)
    bias = np.sign(apart) * np.maximum(np.abs(apart) - chance, 0.0)
    every = np.column_stack([errors, bias])
    scale = np.sqrt(np.mean(every**2)) or 1.0
    rows = np.vstack([every.T / scale, np.full(len(values), SUM_WEIGHT)])
    goal = np.append(np.zeros(every.shape[1]), SUM_WEIGHT)
    weights, _ = nnls(rows, goal, maxiter=50 * len(values))  # far above SciPy's default of 3: it raises at the limit
    weights /= weights.sum()
    return Mixture(weights, bias, float(weights @ values), float(np.linalg.norm(weights @ errors)))
