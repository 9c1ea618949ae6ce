"""Kernel losses in closed form: the smallest vector of moments."""

import numpy as np
from jaxtyping import Float

from average_dice.linear_systems import solve


def smallest_moments(
    left: Float[np.ndarray, "test feature"],
    right: Float[np.ndarray, " test"],
    penalty: Float[np.ndarray, "feature feature"],
) -> Float[np.ndarray, " feature"]:
    """argmin_θ ‖left θ − right‖² + θᵀ penalty θ.

    The sum over test features of squared moments is, for Fourier features, max_f L(w, f)² over the unit ball of their
    kernel, up to a constant factor.
    """
    orthogonal, triangle = np.linalg.qr(np.concatenate([left, np.sqrt(penalty)]))
    return solve(triangle, orthogonal[: len(right)].T @ right)
