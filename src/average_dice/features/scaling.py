"""Standardisation of inputs."""

import numpy as np
from jaxtyping import Float


def mean_and_std(
    inputs: Float[np.ndarray, "row input"],
) -> tuple[Float[np.ndarray, " input"], Float[np.ndarray, " input"]]:
    """Mean and standard deviation of each input; a deviation of 1 where an input never varies."""
    std = inputs.std(axis=0)
    varies = std > 1e-12 * (1 + np.abs(inputs).max(axis=0))  # a smaller deviation is rounding
    return inputs.mean(axis=0), np.where(varies, std, 1.0)
