"""The largest weighted mean of some values, with each weight between two bounds.

    max Σ m_i y_i / Σ m_i      over  low_i ≤ m_i ≤ high_i

is a linear-fractional program. At its optimum v the weight is high_i where y_i > v and low_i where y_i < v, so it is
enough to sort the values and to try each place between two of them (Zhao, Small & Bhattacharya, 2019).
"""

import numpy as np
from jaxtyping import Float

Masses = Float[np.ndarray, "gamma item"]


def largest_mean(values: Float[np.ndarray, " item"], low: Masses, high: Masses) -> Float[np.ndarray, " gamma"]:
    """The largest mean for each row of bounds; −∞ where all weights are zero."""
    order = np.argsort(-values, kind="stable")
    values, low, more = values[order], low[:, order], (high - low)[:, order]
    zero = np.zeros((len(low), 1))
    sums = (low @ values)[:, None] + np.hstack([zero, np.cumsum(more * values, axis=1)])
    masses = low.sum(axis=1)[:, None] + np.hstack([zero, np.cumsum(more, axis=1)])
    means = np.divide(sums, masses, out=np.full_like(sums, -np.inf), where=masses > 0)
    return np.asarray(means.max(axis=1))
