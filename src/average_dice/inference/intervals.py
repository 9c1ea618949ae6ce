"""Intervals: arrays in, two numbers out. All are two-sided, with half of 1 − level on each side."""

import numpy as np
from jaxtyping import Float
from scipy import stats

from average_dice.errors import SettingError

Ends = tuple[float, float]
Values = Float[np.ndarray, " value"]


def tail_share(level: float, num_episodes: int) -> float:
    """The share of replicates on each side of the interval: less than half of 1 − level for few episodes.

    Resamples of K episodes spread less than logs do, by √((K − 1)/K), and a normal distribution has lighter tails than
    Student's: the share is Φ(−√(K/(K − 1)) t) in place of Φ(−z) (Hesterberg, 2015).
    """
    _at_least_two(num_episodes)
    reach = np.sqrt(num_episodes / (num_episodes - 1)) * stats.t.ppf(0.5 + level / 2, num_episodes - 1)
    return float(stats.norm.cdf(-reach))


def percentile(replicates: Values, level: float, num_episodes: int) -> Ends:
    """The percentile interval of the replicates (Efron, 1979), made wider for few episodes."""
    tail = tail_share(level, num_episodes)
    return _quantiles(replicates, [tail, 1 - tail])


def _quantiles(replicates: Values, shares: list[float]) -> Ends:
    """The quantile p of n replicates is at rank p (n + 1), so that it is not biased for small n."""
    low, high = np.quantile(replicates, shares, method="weibull")
    return float(low), float(high)


def bias_corrected(value: float, replicates: Values, left_out: Float[np.ndarray, " left_out"], level: float) -> Ends:
    """BCa (Efron, 1987): percentiles corrected for a biased median (z₀) and a spread that grows with the value (a).

        α ↦ Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))),     a = Σ d³ / 6 (Σ d²)^{3/2},   d = mean of left_out − left_out

    `left_out`: the values without one episode (or one group of episodes) each.
    """
    num = len(replicates)
    below = (np.sum(replicates < value) + 0.5 * np.sum(replicates == value)) / num
    centre = float(stats.norm.ppf(np.clip(below, 0.5 / num, 1 - 0.5 / num)))
    apart = left_out.mean() - left_out
    spread = float(np.sum(apart**2))
    skew = float(np.sum(apart**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    tail = (1 - level) / 2
    moved = centre + stats.norm.ppf([tail, 1 - tail])
    return _quantiles(replicates, list(stats.norm.cdf(centre + moved / (1 - skew * moved))))


def student_t(values: Values, level: float) -> Ends:
    """Student's t of the mean of independent values, one for each episode."""
    _at_least_two(len(values))
    reach = stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - reach), float(values.mean() + reach)


def empirical_bernstein(values: Values, level: float, low: float, high: float) -> Ends:
    """For the mean of independent values between `low` and `high`, with any distribution.

        mean ± √(2 V ln(4/δ) / n) + 7 (high − low) ln(4/δ) / (3 (n − 1)),      δ = 1 − level

    (Maurer & Pontil, 2009, for each side δ/2.) It holds for every n. It is wide, and needs right bounds.
    """
    _at_least_two(len(values))
    if values.min() < low or values.max() > high:
        raise SettingError(f"values from {values.min():g} to {values.max():g} lie outside [{low:g}, {high:g}].")
    num, logarithm = len(values), np.log(4 / (1 - level))
    reach = np.sqrt(2 * values.var(ddof=1) * logarithm / num) + 7 * (high - low) * logarithm / (3 * (num - 1))
    return max(low, float(values.mean() - reach)), min(high, float(values.mean() + reach))


def from_few(value: float, replicates: Values, level: float, num_episodes: int) -> Ends:
    """Student's t with the spread of the replicates, around the value; for replicates too few for percentiles."""
    _at_least_two(num_episodes)
    freedom = min(len(replicates), num_episodes) - 1
    spread = replicates.std(ddof=1) * np.sqrt(num_episodes / (num_episodes - 1))
    reach = float(stats.t.ppf(0.5 + level / 2, freedom) * spread)
    return value - reach, value + reach


def _at_least_two(num_episodes: int) -> None:
    if num_episodes < 2:
        raise SettingError("an interval takes at least two episodes.")
