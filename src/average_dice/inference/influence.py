"""How much each episode adds to an estimate: values whose mean it is, and whose spread is its error.

For doubly robust estimates the critic is fitted to other episodes than those it is asked about (cross-fitting): on its
own episodes it would look better than it is, and the interval would be too narrow (Chernozhukov et al., 2018; Kallus &
Uehara, 2020).

    per decision      ψ = v(s₀) + Σ_t γᵗ ρ_{0:t} δ_t
    marginalised      ψ = v(s₀) + (K/n) Σ_t w ρ δ_t / (1 − γ)
"""

import jax
import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable
from average_dice.estimators import DoublyRobust, Fit, MarginalisedDoublyRobust
from average_dice.estimators.base import LoggedValues
from average_dice.estimators.doubly_robust.per_decision import critic_of, td_error
from average_dice.estimators.importance.importance_sampling import by_decision
from average_dice.estimators.value_rules import added_by_episode
from average_dice.problem import Problem
from average_dice.resampling import Draw

Episodes = Float[np.ndarray, " episode"]

NUM_FOLDS = 5


def of_weighted_rewards(problem: Problem, fit: Fit) -> Episodes:
    """Of the mean of weights · rewards."""
    if fit.weights is None:
        raise NotApplicable("it weights no rows")
    return added_by_episode(problem, fit.weights * problem.dataset.reward)


def cross_fitted(method: DoublyRobust | MarginalisedDoublyRobust, problem: Problem, *, key: jax.Array) -> Episodes:
    """ψ of each episode, with a critic fitted to the others."""
    data = problem.dataset
    num_folds = min(NUM_FOLDS, data.num_episodes)
    if num_folds < 2:
        raise NotApplicable("it takes at least two episodes")
    if isinstance(method, DoublyRobust):
        weights = np.exp(by_decision(problem) + data.step * np.log(problem.discount)) * (
            data.num_transitions / data.num_episodes
        )
    else:
        found = method.ratio.fit(problem, key=key).weights
        assert found is not None
        weights = found / (1 - problem.discount)
    fold = np.arange(data.num_episodes) % num_folds
    values = _values_by_others(method, problem, fold, key)
    return values.start + added_by_episode(problem, weights * td_error(problem, values))


def _values_by_others(
    method: DoublyRobust | MarginalisedDoublyRobust, problem: Problem, fold: np.ndarray, key: jax.Array
) -> LoggedValues:
    """The critic on the rows of each fold, fitted to the others."""
    data = problem.dataset
    refit = method.critic.prepare(problem, key=key)
    q, after, start = np.empty(data.num_transitions), np.empty(data.num_transitions), np.empty(data.num_episodes)
    for one in range(int(fold.max()) + 1):
        critic = critic_of(refit(Draw.of(problem, np.flatnonzero(fold != one))), method.critic)
        rows = fold[problem.episode_index] == one
        q[rows] = critic.q(data.observation[rows], data.action[rows])
        after[rows] = np.where(data.terminated[rows], 0.0, critic.v(data.next_observation[rows]))
        start[fold == one] = critic.v(problem.start_observation[fold == one])
    return LoggedValues(q, after, start)
