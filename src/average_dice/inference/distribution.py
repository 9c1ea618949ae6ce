"""The distribution of the return under π, by weighted episodes.

    F(x) = Σ_i w_i 1{G_i ≤ x},      G_i = Σ_t γᵗ r_t,      w_i = ρ_{0:T−1} of the episode, over the sum of all

(Chandak, Niekum, da Silva, Learned-Miller, Brunskill & Thomas, 2021, with self-normalised weights.) Quantiles, tail
means (CVaR) and probabilities follow from F. The weight is that of the whole episode, since no single reward decides
where a return lies: it fails where episodes are long and policies differ, which the effective number of episodes shows.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable
from average_dice.problem import LOWEST_LOG_PRODUCT, Episodes, Problem

ROUNDING = 1e-12  # of sums of weights: a quantile does not move by it

Cumulative = Float[np.ndarray, " episode"]


@dataclass(frozen=True, eq=False)
class WeightedReturns:
    """Returns in ascending order with their weights, which sum to one."""

    returns: Episodes
    weights: Episodes

    @staticmethod
    def of(returns: Episodes, weights: Episodes) -> "WeightedReturns":
        """From returns in ascending order and weights on any scale. Raises `NotApplicable` if all weights are zero."""
        total = float(weights.sum())
        if total == 0:
            raise NotApplicable("no logged episode has only actions that the policy would take")
        return WeightedReturns(returns, weights / total)

    @property
    def cumulative(self) -> Cumulative:
        """The sum of the weights up to each return, itself included."""
        return np.cumsum(self.weights)

    @property
    def mean(self) -> float:
        """The expected return."""
        return float(self.weights @ self.returns)

    def below(self, threshold: float) -> float:
        """P(G < threshold)."""
        return float(self.weights[: np.searchsorted(self.returns, threshold, side="left")].sum())

    def quantile(self, share: float) -> float:
        """The smallest return with F(x) ≥ share."""
        place = int(np.searchsorted(self.cumulative, share - ROUNDING, side="left"))
        return float(self.returns[min(place, len(self.returns) - 1)])

    def tail_mean(self, share: float, *, upper: bool) -> float:
        """The mean of the lowest (or the highest) `share` of returns: CVaR. An atom at the edge counts in part."""
        returns, weights = (self.returns[::-1], self.weights[::-1]) if upper else (self.returns, self.weights)
        before = np.cumsum(weights) - weights
        return float(np.clip(share - before, 0.0, weights) @ returns / share)


def discounted_returns(problem: Problem) -> Episodes:
    """Σ γᵗ r_t of each episode, up to its end or its truncation."""
    return problem.by_episode(np.exp(problem.log_discount) * problem.dataset.reward)


def episode_products(problem: Problem) -> Episodes:
    """ρ_{0:T−1} of each episode, up to a common factor. Steps that a discount of 0 ignores have no part in it."""
    logs = problem.log_ratio[problem.dataset.starts] if problem.discount == 0 else problem.final_log_product
    return np.exp(logs - max(float(logs.max()), LOWEST_LOG_PRODUCT))


def missing_part(problem: Problem) -> tuple[float, float]:
    """How much the return of a truncated episode could still change: γᵀ Σ γᵏ r for rewards within those of the log.

    Both are 0 where every episode terminated. T is the length of the shortest truncated episode.
    """
    if not problem.misses_rewards:
        return 0.0, 0.0
    data = problem.dataset
    shortest = int(data.lengths[~data.terminated[data.starts + data.lengths - 1]].min())
    low, high = problem.value_bounds
    factor = problem.discount**shortest / problem.normaliser
    return min(factor * low, 0.0), max(factor * high, 0.0)


def ends_of_certainty(share: float, effective: float, level: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share of 0 or 1 of this many episodes: resamples would not vary."""
    tail = (1 - level) / 2
    reach = 1 - tail ** (1 / max(effective, 1.0))
    return (0.0, reach) if share <= ROUNDING else (1 - reach, 1.0)
