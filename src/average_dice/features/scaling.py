"""Inputs on one scale."""

import numpy as np
from jaxtyping import Float

from average_dice.models.regression import Inputs


def mean_and_std(inputs: Inputs) -> tuple[Float[np.ndarray, " input"], Float[np.ndarray, " input"]]:
    """Mean and standard deviation of each input; a deviation of 1 where an input never varies."""
    std = inputs.std(axis=0)
    varies = std > 1e-12 * (1 + np.abs(inputs).max(axis=0))
    return inputs.mean(axis=0), np.where(varies, std, 1.0)
