"""The tipping Γ: the smallest at which the bounds no longer exclude a reference, such as the behaviour policy's value.

Bounds widen with Γ, so it is found by sections: an interval of Γ is divided by several points, which are bounded at
once, and the part with the change is divided again.
"""

import numpy as np

from average_dice.inference.sensitivity.forms import LOWER, UPPER, Bounds

LARGEST_GAMMA = 20.0  # far beyond what can be argued about: an action of 50 % would be one of 5 % or 95 %
RESOLUTION = 1e-3  # of log Γ


def tipping_gamma(bounds: Bounds, reference: float, better: bool, points: int = 15) -> float:
    """The smallest Γ whose bounds contain the reference; ∞ if there is none up to `LARGEST_GAMMA`.

    `better`: the conclusion is that the value is above the reference, so that the lower bound counts. It is 1 if the
    bounds contain the reference even at Γ = 1. `points`: evaluated at once; 1 is bisection.
    """

    def turned(logs: np.ndarray) -> np.ndarray:
        if better:
            return bounds(np.exp(logs), LOWER) <= reference
        return bounds(np.exp(logs), UPPER) >= reference

    first, last = 0.0, float(np.log(LARGEST_GAMMA))
    start, end = turned(np.array([first, last]))
    if start or not end:
        return 1.0 if start else float("inf")
    while last - first > RESOLUTION:
        inner = np.linspace(first, last, points + 2)[1:-1]
        place = int(np.searchsorted(turned(inner), True))
        edges = [first, *inner, last]
        first, last = float(edges[place]), float(edges[place + 1])
    return float(np.exp(last))
