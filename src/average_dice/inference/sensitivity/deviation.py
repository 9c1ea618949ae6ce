"""How far the true probability b of a logged action may lie from the recorded one, μ, for a given Γ ≥ 1.

Bounds on the factor λ = μ/b, by which the importance ratio π/b differs from the recorded π/μ:

    in odds          1/Γ ≤ [b/(1 − b)] / [μ/(1 − μ)] ≤ Γ     ⇔     μ + (1 − μ)/Γ ≤ λ ≤ μ + (1 − μ) Γ
    in probability   1/Γ ≤ b/μ ≤ Γ                           ⇔     1/Γ ≤ λ ≤ Γ

The first is the marginal sensitivity model (Tan, 2006; Zhao, Small & Bhattacharya, 2019; Kallus & Zhou, 2020). It
applies to discrete actions: an action that was taken with certainty stays certain. Densities have no odds, so
continuous actions take the second.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from average_dice.inference.sensitivity.forms import Gammas
from average_dice.problem import Rows

LogFactors = tuple[Float[np.ndarray, "gamma transition"], Float[np.ndarray, "gamma transition"]]
Deviation = Callable[[Rows, Gammas], LogFactors]  # (log μ, Γ) → logs of the smallest and the largest λ


def in_odds(log_probability: Rows, gammas: Gammas) -> LogFactors:
    """The odds of the logged action differ by at most a factor Γ."""
    taken = np.minimum(np.exp(log_probability), 1.0)
    other = 1.0 - taken
    return np.log(taken + other / gammas[:, None]), np.log(taken + other * gammas[:, None])


def in_probability(log_probability: Rows, gammas: Gammas) -> LogFactors:
    """The probability, or the density, of the logged action differs by at most a factor Γ."""
    factor = np.broadcast_to(np.log(gammas)[:, None], (len(gammas), len(log_probability)))
    return -factor, factor
