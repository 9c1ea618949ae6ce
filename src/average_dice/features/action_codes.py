"""Codes of discrete actions, whose products are the kernel of their deviations: CCᵀ, centred over the actions.

Without features of the actions, all actions are equally far apart. With features, the kernel is a Gaussian one of
their distance, with the median distance as its bandwidth: similar actions have similar codes.
"""

import numpy as np
from jaxtyping import Float

from average_dice.features.fourier import median_distance
from average_dice.features.scaling import mean_and_std

# Eigenvalues that are smaller than this part of all of them are left out: codes cost as many features of the state.
LEAST_SHARE = 1e-4


def contrasts(num_actions: int) -> Float[np.ndarray, "action contrast"]:
    """C with C Cᵀ = I − 1/A: orthonormal columns that sum to 0, which span all differences between actions."""
    found = np.zeros((num_actions, num_actions - 1))
    for column in range(num_actions - 1):
        found[: column + 1, column] = 1.0
        found[column + 1, column] = -(column + 1.0)
    return found / np.linalg.norm(found, axis=0)


def codes_of_features(
    action_features: Float[np.ndarray, "choice feature"], most: int
) -> Float[np.ndarray, "choice code"]:
    """C with C Cᵀ ∝ (I − 1/A) K (I − 1/A), K the Gaussian kernel of the features, with at most `most` columns.

    The mean of the diagonal is 1 − 1/A, as that of the contrasts. Actions with equal features have equal codes.
    """
    number = len(action_features)
    mean, std = mean_and_std(action_features)
    points = (action_features - mean) / std
    squares = (points**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0)
    kernel = np.exp(-0.5 * distances / median_distance(points) ** 2)
    kernel -= kernel.mean(axis=0)
    kernel -= kernel.mean(axis=1, keepdims=True)
    eigenvalues, directions = np.linalg.eigh(kernel)
    kept = np.flatnonzero(eigenvalues > max(LEAST_SHARE * eigenvalues.sum(), 1e-12))[::-1][:most]
    codes = directions[:, kept] * np.sqrt(eigenvalues[kept])
    return codes * np.sqrt((number - 1) / max(float((codes**2).sum()), 1e-300))  # no codes if all features are equal
