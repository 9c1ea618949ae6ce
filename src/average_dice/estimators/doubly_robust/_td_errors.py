"""TD errors of a critic on the rows of a log, and the contribution of each episode to a doubly robust estimate.

For the interval, a critic is evaluated on episodes that it was not fitted to (cross-fitting). On its own episodes its
errors are too small, and the interval would be too narrow (Chernozhukov et al., 2018; Kallus & Uehara, 2020).
"""

import numpy as np

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators._shared.ratio_fits import added_by_episode
from average_dice.estimators.base import Estimator, Prepared
from average_dice.estimators.results import Critic, Fit, LoggedValues
from average_dice.problem import Episodes, Problem, Rows
from average_dice.resampling import Resample

NUM_FOLDS = 5  # each critic sees four fifths of the episodes; more folds cost more refits


def critic_of(fit: Fit, method: Estimator) -> Critic:
    """The critic that the method learnt."""
    if fit.critic is None:
        raise SettingError(f"{type(method).__name__} learns no values of states and actions. Use FittedQ, for example.")
    return fit.critic


def logged_values(problem: Problem, critic: Critic) -> LoggedValues:
    """The critic on the rows of the log."""
    data = problem.dataset
    return critic.logged or LoggedValues(
        critic.q(data.observation, data.action),
        np.where(data.terminated, 0.0, critic.v(data.next_observation)),
        critic.v(problem.start_observation),
    )


def td_errors(problem: Problem, values: LoggedValues) -> Rows:
    """δ = (1 − γ) r + γ m v(s′) − q(s, a), of every row."""
    return problem.normaliser * problem.dataset.reward + problem.discount * values.after - values.q


def cross_fitted(problem: Problem, critic: Prepared, method: Estimator, weights: Rows) -> Episodes:
    """v(s₀) + the weighted TD errors of each episode, by a critic that was fitted to other episodes.

    The weighted TD errors are averaged over rows.
    """
    num_folds = min(NUM_FOLDS, problem.dataset.num_episodes)
    if num_folds < 2:
        raise NotApplicable("cross-fitting takes at least two episodes")
    fold = np.arange(problem.dataset.num_episodes) % num_folds
    values = _values_by_others(problem, critic, method, fold)
    return values.start + added_by_episode(problem, weights * td_errors(problem, values))


def _values_by_others(problem: Problem, prepared: Prepared, method: Estimator, fold: np.ndarray) -> LoggedValues:
    """The critic on the rows of each fold, fitted to the other folds."""
    data = problem.dataset
    others = [Resample.of(problem, np.flatnonzero(fold != one)) for one in range(int(fold.max()) + 1)]
    q, after, start = np.empty(data.num_transitions), np.empty(data.num_transitions), np.empty(data.num_episodes)
    for one, fit in enumerate(prepared.refit(others)):
        critic = critic_of(fit, method)
        rows = fold[problem.episode_index] == one
        q[rows] = critic.q(data.observation[rows], data.action[rows])
        after[rows] = np.where(data.terminated[rows], 0.0, critic.v(data.next_observation[rows]))
        start[fold == one] = critic.v(problem.start_observation[fold == one])
    return LoggedValues(q, after, start)
