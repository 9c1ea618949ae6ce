"""Pareto k̂: how heavy the tail of the weights is.

A generalised Pareto distribution is fitted to the weights above a threshold. Its shape k tells which moments exist: the
variance is finite for k < ½ and the mean for k < 1. Below 0.7 estimates are reliable in practice (Vehtari, Simpson,
Gelman, Yao & Gabry, 2024). The fit is the profile Bayes estimate of Zhang & Stephens (2009), with a weak prior at ½.
The size of the tail, the grid of points and the prior are those of these papers.
"""

import numpy as np
from jaxtyping import Float

FEWEST = 5  # weights in the tail, as in Vehtari et al.: fewer do not determine a shape
PRIOR_WEIGHTS = 10  # the prior counts like this many weights, as in Vehtari et al.


def pareto_k(weights: Float[np.ndarray, " weight"]) -> float:
    """k̂ of the largest weights; NaN if they are too few, −∞ if they are equal."""
    num_tail = int(min(0.2 * len(weights), 3 * np.sqrt(len(weights))))
    if num_tail < FEWEST:
        return float("nan")
    ordered = np.sort(weights)
    excess = ordered[-num_tail:] - ordered[-num_tail - 1]
    excess = excess[excess > 1e-12 * ordered[-1]]  # smaller ones are rounding
    return _shape(excess) if len(excess) >= FEWEST else float("-inf")


def _shape(excess: Float[np.ndarray, " excess"]) -> float:
    """The shape k of a generalised Pareto distribution from sorted values above its threshold."""
    num = len(excess)
    num_points = 30 + int(np.sqrt(num))
    quartile = excess[int(num / 4 + 0.5) - 1]
    points = 1 / excess[-1] + (1 - np.sqrt(num_points / (np.arange(1, num_points + 1) - 0.5))) / (3 * quartile)
    shapes = np.mean(np.log1p(-points[:, None] * excess), axis=1)
    likelihood = num * (np.log(-points / shapes) - shapes - 1)
    weights = np.exp(likelihood - likelihood.max())
    point = float(points @ weights / weights.sum())
    shape = float(np.mean(np.log1p(-point * excess)))
    return (num * shape + PRIOR_WEIGHTS * 0.5) / (num + PRIOR_WEIGHTS)
