"""Linear systems that always have a solution: a small ridge makes a singular matrix regular."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

from average_dice.errors import NotApplicable

FACTOR, SUBSTITUTE = get_lapack_funcs(("getrf", "getrs"), dtype=np.float64)

SMALLEST_PENALTY = 1e-12  # relative to the largest diagonal entry, just above rounding; times 100 until it suffices

Vector = Float[np.ndarray, " feature"]


class LinearSystem:
    """A x = b, factored once for A and for its transpose."""

    def __init__(self, matrix: Float[np.ndarray, "feature feature"]) -> None:
        if not np.isfinite(matrix).all():
            raise NotApplicable("its linear system has no finite solution")
        self.factors, self.pivots, singular = FACTOR(matrix)
        penalty = SMALLEST_PENALTY * (float(np.abs(np.diag(matrix)).max(initial=0.0)) or 1.0)
        while singular:
            self.factors, self.pivots, singular = FACTOR(matrix + penalty * np.eye(len(matrix)))
            penalty *= 100

    def solve(self, right: Vector) -> Vector:
        """x with A x = b."""
        return np.asarray(SUBSTITUTE(self.factors, self.pivots, right)[0])

    def solve_transposed(self, right: Vector) -> Vector:
        """x with Aᵀ x = b."""
        return np.asarray(SUBSTITUTE(self.factors, self.pivots, right, trans=1)[0])


def solve(matrix: Float[np.ndarray, "feature feature"], right: Vector) -> Vector:
    """x with A x = b."""
    return LinearSystem(matrix).solve(right)
