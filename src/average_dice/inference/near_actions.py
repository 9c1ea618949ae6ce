"""How near the logged actions come to those of a deterministic policy, which has no importance ratios.

An action is near if it lies within one standard deviation of π(s) in every dimension: the standard deviation of logged
actions around their linear regression on the observation. With d dimensions the share of near rows falls like its d-th
power, even if π(s) is the mean of μ: 68 % for one dimension of a Gaussian, 10 % for six. So its d-th root is judged.
"""

from dataclasses import dataclass

import numpy as np

from average_dice.inference.episode_weights import effective_number
from average_dice.policies.smoothed import residual_spread
from average_dice.problem import Problem


@dataclass(frozen=True)
class NearActions:
    """The share of near rows, weighted by γᵗ, to the power 1/d; and their effective number."""

    share: float
    rows: float


def near_actions(problem: Problem) -> NearActions | None:
    """None where π has probabilities or densities: importance ratios tell more."""
    if problem.has_density:
        return None
    data = problem.dataset
    actions, _ = problem.target_actions(data.observation, num_draws=1, generator=np.random.default_rng(0))
    near = (np.abs(data.action - actions[:, 0]) <= residual_spread(data)).all(axis=1)
    weight = np.exp(problem.log_discount)
    share = float(weight @ near / weight.sum())
    return NearActions(share ** (1 / data.action.shape[1]), effective_number(weight * near))
