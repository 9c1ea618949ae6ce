"""Samples from many categorical distributions at once."""

import numpy as np
from jaxtyping import Float, Int


def draw_categorical(
    probabilities: Float[np.ndarray, "row outcome"], generator: np.random.Generator
) -> Int[np.ndarray, " row"]:
    """One outcome for each row."""
    cumulative = probabilities.cumsum(axis=1)
    uniform = generator.random((len(probabilities), 1)) * cumulative[:, -1:]  # below the sum, also after rounding
    return (uniform >= cumulative).sum(axis=1)
