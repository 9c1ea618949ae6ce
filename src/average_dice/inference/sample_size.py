"""How many episodes an interval of a given width takes: numbers in, numbers out.

The standard error of an estimate falls as 1/√episodes, once there are enough of them. So from a pilot log of K episodes
with standard error s, N episodes have an expected half-width of

    h(N) = t_{N−1} s √(K/N)

with the quantile of Student's t. What s itself is uncertain by is told by the χ² distribution (`spread_ends`); whether
the law holds, by resamples of fewer episodes (`exponent`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

MOST_EPISODES = 10**9  # a plan with more is no plan
SQUARE_ROOT = 0.5  # the exponent of the law


def half_width(standard_error: float, pilot: int, number: int, level: float) -> float:
    """h(N): of the interval from `number` episodes, if `pilot` of them give this standard error."""
    return float(stats.t.ppf(0.5 + level / 2, number - 1) * standard_error * np.sqrt(pilot / number))


def episodes_for(width: float, standard_error: float, pilot: int, level: float, power: float = 0.5) -> int | None:
    """The fewest episodes whose half-width is at most `width`; None if they are more than `MOST_EPISODES`.

    With a `power` above 0.5: the fewest for which a difference of size `width` is significant with that probability,
    (t + z_power) s √(K/N) ≤ width.
    """
    extra = float(stats.norm.ppf(power))

    def is_enough(number: int) -> bool:
        more = extra * standard_error * (pilot / number) ** 0.5
        return bool(half_width(standard_error, pilot, number, level) + more <= width)

    if width <= 0 or not is_enough(MOST_EPISODES):
        return None
    low, high = 1, MOST_EPISODES  # an interval takes two episodes
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def freedom_of_spread(
    num_resamples: int, num_episodes: int, left_out: Float[np.ndarray, " group"] | None = None
) -> float:
    """Degrees of freedom f of a squared standard error from bootstrap resamples: its relative variance is 2/f.

        2/f = 2/(B − 1) + 2/(K − 1) + κ/G

    B resamples, K episodes; κ is the excess kurtosis of the values without each of G groups of episodes, at least 0. If
    a few episodes make most of the error, κ is large, and another log would give another standard error.
    """
    twice = 2 / (num_resamples - 1) + 2 / (num_episodes - 1)
    if left_out is not None and len(left_out) > 3 and np.ptp(left_out) > 0:
        twice += max(0.0, float(stats.kurtosis(left_out))) / len(left_out)
    return max(1.0, 2 / twice)


def spread_ends(standard_error: float, freedom: float, level: float) -> tuple[float, float]:
    """The interval of a standard error with this many degrees of freedom, by the χ² distribution."""
    low, high = np.sqrt(freedom / stats.chi2.ppf([0.5 + level / 2, 0.5 - level / 2], freedom))
    return float(standard_error * low), float(standard_error * high)


@dataclass(frozen=True)
class Exponent:
    """The standard error falls as episodes^(−value), with an interval. By the law it is a half."""

    value: float
    lower: float
    upper: float

    @property
    def is_square_root(self) -> bool:
        """Whether the law of the square root is not refuted."""
        return self.lower <= SQUARE_ROOT <= self.upper


def exponent(
    sizes: Sequence[int], standard_errors: Sequence[float], num_resamples: Sequence[int], level: float
) -> Exponent:
    """By weighted least squares of log s on log size; log s from B resamples has a variance of about 1/(2 (B − 1))."""
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(standard_errors, float))
    weight = 2.0 * (np.asarray(num_resamples, float) - 1)
    centred = x - weight @ x / weight.sum()
    total = float(weight @ centred**2)
    slope, reach = float(weight @ (centred * y)) / total, float(stats.norm.ppf(0.5 + level / 2)) / total**0.5
    return Exponent(-slope, -slope - reach, -slope + reach)
