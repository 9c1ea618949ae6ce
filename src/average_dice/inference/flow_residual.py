"""Violation of the flow equation by the learnt ratio on held-out episodes."""

import jax
import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable
from average_dice.estimators import AverageDICE, flow_mass
from average_dice.features.scaling import mean_and_std
from average_dice.problem import Problem, Rows
from average_dice.randomness import generator_from

FEWEST = 4  # episodes: two to learn from, two for the variance of the test


def flow_residual(problem: Problem, key: jax.Array) -> float | None:
    """The distance of the flow E[w (f(s) − γ m ρ f(s′))] from the starts (1 − γ) E[f(s₀)], over 1 − γ, without noise.

    f are the standardised observations: for the flow to be right, the starts would have to move by this many standard
    deviations. w, a function of state and step, is learnt from one half of the episodes and tested on the other, both
    ways. The variance of the mean is subtracted from its square.
    """
    data = problem.dataset
    if data.num_episodes < FEWEST:
        return None
    method = AverageDICE()
    half = generator_from(key).permutation(data.num_episodes) % 2
    squares = []
    for one in (0, 1):
        here = problem.select_episodes(np.flatnonzero(half != one))
        there = problem.select_episodes(np.flatnonzero(half == one))
        try:
            regression = method.regression_of(here).regression
            learnt = method.model.fit(regression, key=key, value_of=lambda f: float("nan"))
            held_out = method.regression_of(there)
        except NotApplicable:
            return None
        apart = _apart_from_starts(there, held_out.row_scale * learnt.predict(held_out.regression.inputs))
        squares.append(apart.mean(axis=0) ** 2 - apart.var(axis=0, ddof=1) / len(apart))
    return float(np.sqrt(max(np.mean(squares), 0.0)))


def _apart_from_starts(problem: Problem, ratio: Rows) -> Float[np.ndarray, "episode test"]:
    """The contribution of each episode to the difference between flow and starts."""
    data, discount = problem.dataset, problem.discount
    mean, std = mean_and_std(data.observation)
    logged, after = (data.observation - mean) / std, (data.next_observation - mean) / std
    continues = discount * np.where(data.terminated, 0.0, problem.ratio)
    ratio = ratio / float(np.mean(ratio * flow_mass(problem)))
    rows = ratio[:, None] * (logged - continues[:, None] * after)
    sums = np.stack([np.bincount(problem.episode_index, column, data.num_episodes) for column in rows.T], axis=1)
    return sums * (data.num_episodes / data.num_transitions) / problem.normaliser - logged[data.starts]
