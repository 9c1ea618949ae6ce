"""Intervals for all differences between several policies that hold together: arrays in, arrays out.

Of many 95 % intervals, some miss by chance, and "A is the best" needs all of them at once. The maximum over all pairs,

    max_{i<j} |d*_ij − d_ij| / s_ij,      d_ij = J_i − J_j,   d*_ij on a bootstrap resample,   s_ij their spread,

has a quantile c over the same resamples, and d_ij ± c s_ij hold together with that confidence (max-t; Romano & Wolf,
2005). Policies that are evaluated on the same resamples have correlated values, which makes c smaller than the
Bonferroni correction would.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from average_dice.errors import SettingError

# Of the largest value: a smaller spread is rounding, as between two policies that are the same.
ROUNDING = 1e-12

Matrix = Float[np.ndarray, "policy policy"]


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """`lower[i, j]` and `upper[i, j]` are the ends of the interval of J_i − J_j; all hold together.

    `critical`: their half-width over the spread of the difference on resamples. `kind`: how it was found.
    """

    lower: Matrix
    upper: Matrix
    level: float
    critical: float
    kind: str

    @property
    def not_excluded(self) -> Bool[np.ndarray, " policy"]:
        """Whether each policy may be the best: no other is significantly better."""
        return np.asarray(~(self.lower > 0).any(axis=0))


def simultaneous(
    values: Float[np.ndarray, " policy"],
    replicates: Float[np.ndarray, "resample policy"],
    level: float,
    num_episodes: int,
) -> Simultaneous:
    """The intervals of all differences of `values`, from the values on the same bootstrap resamples.

    A resample on which any policy has no value (NaN) is left out.
    """
    values, replicates = np.asarray(values, np.float64), np.asarray(replicates, np.float64)
    known = replicates[np.isfinite(replicates).all(axis=1)]
    if len(known) < 2 or num_episodes < 2:
        raise SettingError("simultaneous intervals take at least two episodes and two bootstrap resamples.")
    first, second = np.triu_indices(len(values), 1)
    gap, gaps = values[first] - values[second], known[:, first] - known[:, second]
    spread = gaps.std(axis=0, ddof=1)
    rounding = ROUNDING * max(float(np.abs(known).max()), float(np.abs(values).max()))
    varies = spread > rounding
    largest = (np.abs(gaps - gap)[:, varies] / spread[varies]).max(axis=1, initial=0.0)
    critical, kind = _critical(largest, int(varies.sum()), level, num_episodes)
    reach = np.where(varies, critical * spread, 2 * rounding)
    lower, upper = np.zeros((2, len(values), len(values)))
    lower[first, second], upper[first, second] = gap - reach, gap + reach
    lower[second, first], upper[second, first] = -gap - reach, reach - gap
    return Simultaneous(lower, upper, level, critical, kind)


def _critical(
    largest: Float[np.ndarray, " resample"], num_pairs: int, level: float, num_episodes: int
) -> tuple[float, str]:
    """The quantile of the maxima, made larger for few episodes; by Šidák's inequality if resamples are too few.

    Resamples of K episodes spread less than logs do, by √((K − 1)/K), and a normal distribution has lighter tails than
    Student's with K − 1 degrees of freedom. So the quantile is multiplied by √(K/(K − 1)) and by the ratio of the two
    distributions' quantiles at the same share, as in `intervals.tail_share`. The ratio is taken at Šidák's quantile, if
    that is smaller: maxima of normal differences do not exceed it, and far out the ratio explodes.
    """
    number, freedom = len(largest), num_episodes - 1
    more = np.sqrt(num_episodes / freedom)
    alone = (1 - level ** (1 / max(num_pairs, 1))) / 2  # the share on each side of independent intervals
    if (1 - level) * (number + 1) < 1:  # the quantile would lie beyond the largest maximum
        critical = more * stats.t.isf(alone, min(number - 1, freedom))
        return float(critical), f"Šidák's inequality and Student's t with the spread of {number} bootstrap resamples"
    quantile = float(np.quantile(largest, level, method="weibull"))
    at = min(quantile, float(stats.norm.isf(alone)))
    heavier = stats.t.isf(stats.norm.sf(at), freedom) / at if at > 0 else 1.0
    return float(more * heavier * quantile), f"max-t of {number} bootstrap resamples"
