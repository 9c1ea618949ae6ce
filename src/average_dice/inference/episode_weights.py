"""The weights of episodes, and their effective number.

The weight of an episode is its contribution to J if every reward is 1, with self-normalised products W:

    g = (1 − γ) Σ_t γᵗ W_t / c_t      W_t = ρ_{0:t} over its mean over episodes

so that late steps count as little as they do in J. c_t is the share of episodes not yet truncated at step t (1 if all
are truncated at one length): uncensored episodes are weighted up.
"""

import numpy as np

from average_dice.problem import Episodes, Problem, Rows

FEWEST_GOING_ON = 10  # if fewer episodes continue past a truncation, the log shows too little of what follows it


def episode_weights(problem: Problem, products: Rows) -> Episodes:
    """g of each episode."""
    discounted = problem.discount**problem.dataset.step * products
    return problem.normaliser * problem.by_episode(discounted)


def effective_number(weights: np.ndarray) -> float:
    """The effective sample size (Σ w)² / Σ w²."""
    square = float(weights @ weights)
    return float(weights.sum()) ** 2 / square if square > 0 else 0.0


def effective_by_step(problem: Problem, products: Rows) -> list[float]:
    """The effective number of the episodes that reach each step."""
    step = problem.dataset.step
    sums, squares = np.bincount(step, products), np.bincount(step, products**2)
    return [float(number) for number in np.divide(sums**2, squares, out=np.zeros(len(sums)), where=squares > 0)]


def beyond_truncation(problem: Problem, products: Rows) -> float:
    """Σ_truncated γᵀ W / K: 0 where every episode terminated, γᴴ where all are truncated after H steps.

    Truncations do not count if enough other episodes continue past them: the log then shows what follows.
    """
    data = problem.dataset
    last = data.starts + data.lengths - 1
    going_on = data.num_episodes - np.searchsorted(np.sort(data.lengths), data.lengths, side="right")
    unseen = ~data.terminated[last] & (going_on < FEWEST_GOING_ON)
    over = problem.discount ** data.lengths[unseen] * products[last[unseen]]
    return float(over.sum()) / data.num_episodes
