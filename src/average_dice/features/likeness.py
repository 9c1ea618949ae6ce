"""How much the values of discrete actions have in common, chosen on held-out episodes.

The likeness κ is the prior correlation of the values of two actions at one state. For each candidate, ridge regression
predicts the targets (1 − γ) r + γ m v(s′) of held-out episodes from the features of states and actions; v is a first
critic with a fixed likeness, the same for all candidates. The candidate with the least squared error is used, if it is
significantly better than the default of 0.9.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.features.state_action import LIKENESS, StateActionFeatures, scales
from average_dice.linear_systems import solve
from average_dice.problem import Episodes, Problem, Rows

CANDIDATES = (0.5, 0.9, 0.97, 0.99, 0.997, 0.999)  # about a factor of three apart in 1 − κ
RIDGES = (1e-4, 1e-3, 1e-2)  # those of the recommended estimator; the best for each candidate
FIRST_RIDGE = 1e-3  # of the critic in the targets
SIGNIFICANT = 2.0  # standard errors over episodes
NUM_FOLDS = 5  # one more fold costs a factorisation for each candidate and ridge, and gains little


@dataclass(frozen=True)
class Likeness:
    """The chosen likeness."""

    value: float


def choose(
    problem: Problem,
    features: StateActionFeatures,
    logged: Float[np.ndarray, "transition feature"],
    after: Float[np.ndarray, "transition feature"],
) -> Likeness:
    """The best of `CANDIDATES` on these features of the rows and of the next states."""
    targets = _targets(problem, logged, after)
    fold = np.arange(problem.dataset.num_episodes)[problem.episode_index] % NUM_FOLDS
    folds = [np.flatnonzero(fold == one) for one in range(min(NUM_FOLDS, problem.dataset.num_episodes))]
    grams = np.array([logged[rows].T @ logged[rows] for rows in folds])
    rights = np.array([logged[rows].T @ targets[rows] for rows in folds])

    def errors(likeness: float, ridge: float) -> Episodes:
        """The squared errors of each episode, by a regression on the other folds."""
        penalty = ridge * _relative_penalty(features, likeness)
        residuals = np.empty(len(targets))
        for one, rows in enumerate(folds):
            left = grams.sum(axis=0) - grams[one] + np.diag((len(targets) - len(rows)) * penalty)
            residuals[rows] = targets[rows] - logged[rows] @ solve(left, rights.sum(axis=0) - rights[one])
        return problem.by_episode(residuals**2)

    best = {
        likeness: min((errors(likeness, ridge) for ridge in RIDGES), key=lambda one: float(one.sum()))
        for likeness in CANDIDATES
    }
    gains = {likeness: best[LIKENESS] - found for likeness, found in best.items()}
    significant = [one for one in CANDIDATES if _standard_errors(gains[one]) > SIGNIFICANT]
    return Likeness(max(significant, key=lambda one: float(gains[one].sum()), default=LIKENESS))


def _standard_errors(gains: Episodes) -> float:
    """The mean gain over its standard error."""
    spread = float(gains.std(ddof=1))
    return float(gains.mean()) * np.sqrt(len(gains)) / spread if spread > 0 else 0.0


def _targets(problem: Problem, logged: np.ndarray, after: np.ndarray) -> Rows:
    """(1 − γ) r + γ m v(s′), with v by LSTD-Q, clipped to the bounds of the rewards; `after` is 0 after termination."""
    reward = problem.normaliser * problem.dataset.reward
    penalty = np.diag(np.append(0.0, np.full(logged.shape[1] - 1, FIRST_RIDGE * len(reward))))
    theta = solve(logged.T @ (logged - problem.discount * after) + penalty, logged.T @ reward)
    values = np.where(problem.dataset.terminated, 0.0, np.clip(after @ theta, *problem.value_bounds))
    return reward + problem.discount * values


def _relative_penalty(features: StateActionFeatures, likeness: float) -> Float[np.ndarray, " feature"]:
    """The penalty that has the effect of another likeness, without one on the constant."""
    assert features.codes is not None
    number = len(features.codes)
    (shared, own), (shared_now, own_now) = scales(number, likeness), scales(number, features.likeness)
    is_shared = np.arange(features.size) < features.states.size
    return np.where(features.free, 0.0, np.where(is_shared, (shared_now / shared) ** 2, (own_now / own) ** 2))
