"""The convex combination of estimates with the least estimated mean squared error.

Each estimate has a row of errors, one number for each independent source, so that the covariance of two estimates is
the product of their rows. One or more combinations of them, the references, are assumed to be unbiased. The distance of
an estimate from a reference, minus what chance explains, is used as its bias (the test of overlapping intervals is that
of SLOPE: Su, Srinath & Krishnamurthy, 2020; the objective is that of MAGIC: Thomas & Brunskill, 2016).

    min_x  xᵀ (Σ + Σ_k b_k b_kᵀ) x,   x ≥ 0,  Σ x = 1,      b_k = the distance beyond `overlap` standard errors
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

Values = Float[np.ndarray, " estimate"]

LEAST_VARIANCE = 1e-4  # relative to the largest: limits the ratio of standard errors in the reference to 100
SUM_WEIGHT = 1e3  # of the constraint Σ x = 1 against errors of about 1; rescaling then makes it exact


@dataclass(frozen=True, eq=False)
class Reference:
    """The weights of the combination that is assumed to be unbiased, and the standard errors that chance explains."""

    weights: Values
    overlap: float

    def bias(self, values: Values, errors: Float[np.ndarray, "estimate source"]) -> Values:
        """The bias of each estimate."""
        apart = values - self.weights @ values
        chance = self.overlap * np.linalg.norm(errors - self.weights @ errors, axis=1)
        return np.sign(apart) * np.maximum(np.abs(apart) - chance, 0.0)


@dataclass(frozen=True, eq=False)
class Mixture:
    """The weights, the bias of each estimate against each reference, and the mixture's value and standard error."""

    weights: Values
    bias: Float[np.ndarray, "reference estimate"]
    value: float
    standard_error: float


def mix(values: Values, errors: Float[np.ndarray, "estimate source"], references: Sequence[Reference]) -> Mixture:
    """The best mixture."""
    bias = np.array([reference.bias(values, errors) for reference in references])
    every = np.column_stack([errors, bias.T])
    scale = np.sqrt(np.mean(every**2)) or 1.0
    rows = np.vstack([every.T / scale, np.full(len(values), SUM_WEIGHT)])
    goal = np.append(np.zeros(every.shape[1]), SUM_WEIGHT)
    weights, _ = nnls(rows, goal, maxiter=50 * len(values))  # far above SciPy's default of 3: it raises at the limit
    weights /= weights.sum()
    return Mixture(weights, bias, float(weights @ values), float(np.linalg.norm(weights @ errors)))


def reference_of(errors: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Weights of the fully corrected estimates, by precision: otherwise a noisy one could hide a bias."""
    variance = np.sum(errors**2, axis=1)
    least = LEAST_VARIANCE * variance[full].max()  # at a bound of the rewards an estimate may have an error of 0
    precision = full / np.maximum(variance, least) if least > 0 else full.astype(np.float64)
    return precision / precision.sum()
