"""Tests of what every estimate from a log takes for granted. Each gives a distance from it in standard errors.

- **Balance**: E[ρ | s, t] = 1 under μ, at every state and step. It is less where π does what μ never does there, a
  hole in the support; it is more only where probabilities are wrong.
- **Memory**: the ratios of two steps in a row are uncorrelated, if the recorded probabilities are those that the
  actions were drawn with.
- **Truncation** does not look at what happened: the rows that end so are like the others of their step.
- **Episodes** are independent and alike: what they earn has no trend over the log, and none resembles its neighbour.

All are tests on sums over episodes, which are independent, with a mean of 0 if the assumption holds.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy import stats

from average_dice.data import LoggedDataset
from average_dice.estimators.value_rules import Rows
from average_dice.features.fourier import FourierMap
from average_dice.features.scaling import mean_and_std
from average_dice.features.state_action import join_action
from average_dice.labels import as_logged, self_normalised
from average_dice.models.linear_systems import solve
from average_dice.problem import Problem
from average_dice.randomness import generator_from

NUM_FEATURES = 100
RIDGE = 0.01
NUM_FOLDS = 5
FEWEST = 10  # episodes, or truncated rows, below which a test says nothing
LARGEST_RATIO = 10.0  # in learning where to look; what is found there is judged by the ratios as they are
FURTHEST = 1e3
Episodes = Float[np.ndarray, " episode"]


@dataclass(frozen=True)
class Balance:
    """How many standard errors E[ρ | s, t] is from 1, and how often, discounted, π's weight is lost or made thereby."""

    distance: float
    missing: float
    excess: float


def balance(problem: Problem, *, key: jax.Array) -> Balance:
    """E[ρ | s, t] = 1, where a regression on other episodes says that it is not.

    m(s, t) is learnt from 1 − ρ on other folds of episodes. Under the assumption E[m(s, t) (1 − ρ)] = 0 whatever m is.
    What is missing or in excess is E[Σ γᵗ W_t (1 − ρ_t)] over the rows where m is positive or negative: how often,
    discounted, π leaves what the log shows. W is over its mean, as if who left came back: it may exceed 1.
    """
    data = problem.dataset
    if data.num_episodes < FEWEST:
        return Balance(0.0, 0.0, 0.0)
    lost = 1 - problem.ratio
    predicted = _predicted(problem, 1 - np.minimum(problem.ratio, LARGEST_RATIO), key)
    weight = np.exp(self_normalised(problem) + as_logged(problem, problem.log_product))
    by_row = weight * lost / data.num_episodes
    return Balance(
        distance_from_zero(_by_episode(problem, predicted * lost), one_sided=True),
        float(by_row[predicted > 0].sum()),
        float(-by_row[predicted < 0].sum()),
    )


def _predicted(problem: Problem, target: Rows, key: jax.Array) -> Rows:
    """The target of each row, by ridge regression on the state and the step in other episodes."""
    data, generator = problem.dataset, generator_from(key)
    inputs = np.column_stack([data.observation, data.step])
    phi = FourierMap.draw(inputs, NUM_FEATURES, generator)(inputs).astype(np.float64)
    fold = (generator.permutation(data.num_episodes) % NUM_FOLDS)[problem.episode_index]
    folds = [np.flatnonzero(fold == one) for one in range(NUM_FOLDS)]
    grams = np.array([phi[rows].T @ phi[rows] for rows in folds])
    rights = np.array([phi[rows].T @ target[rows] for rows in folds])
    predicted = np.empty(len(target))
    for one, rows in enumerate(folds):
        penalty = RIDGE * (len(target) - len(rows)) * np.eye(phi.shape[1])
        predicted[rows] = phi[rows] @ solve(grams.sum(0) - grams[one] + penalty, rights.sum(0) - rights[one])
    return predicted


def memory(problem: Problem) -> float:
    """E[(ρ_t − ρ̄)(ρ_{t+1} − ρ̄)] = 0."""
    data = problem.dataset
    apart = problem.ratio - problem.ratio.mean()
    together = np.zeros(data.num_transitions)
    follows = data.step[1:] > 0
    together[1:][follows] = apart[:-1][follows] * apart[1:][follows]
    return distance_from_zero(_by_episode(problem, together))


def truncation(data: LoggedDataset) -> float:
    """The largest distance, over all columns, of truncated rows from the others that might have been at their step.

    Rows of the last step, where all that is left is truncated, say nothing; nor do terminated ones.
    """
    num_actions = int(data.action.max()) + 1 if data.is_discrete else None
    columns = np.column_stack(
        [join_action(data.observation, data.action, num_actions), data.next_observation, data.reward]
    )
    at_risk = ~data.terminated & (data.step < data.step.max())
    truncated = at_risk & data.truncated
    if int(truncated.sum()) < FEWEST:
        return 0.0
    mean, std = mean_and_std(columns)
    scaled, step = ((columns - mean) / std)[at_risk], data.step[at_risk]
    number = np.bincount(step, minlength=int(data.step.max()) + 1)
    counts = np.maximum(number, 1)[:, None]
    means = np.stack([np.bincount(step, one, len(number)) for one in scaled.T], axis=1) / counts
    variances = np.stack([np.bincount(step, one**2, len(number)) for one in scaled.T], axis=1) / counts - means**2
    chosen = step[truncated[at_risk]]
    apart = (scaled[truncated[at_risk]] - means[chosen]).sum(axis=0)
    # drawn without replacement from those at risk at the step
    drawn = np.bincount(chosen, minlength=len(number))[:, None]
    spread = np.sum(drawn * variances * (counts - drawn) / np.maximum(counts - 1, 1), axis=0)
    varies = spread > 1e-12
    if not varies.any():
        return 0.0
    return min(float(np.max(np.abs(apart[varies]) / np.sqrt(spread[varies]))), FURTHEST)


def trend(problem: Problem) -> float:
    """Rank correlation of what episodes earn with their place in the log."""
    earned = _earned(problem)
    if len(earned) < FEWEST or np.ptp(earned) == 0:
        return 0.0
    return abs(float(stats.spearmanr(np.arange(len(earned)), earned).statistic)) * np.sqrt(len(earned) - 1)


def neighbours(problem: Problem) -> float:
    """Rank correlation of what an episode earns with what the next one does."""
    earned = _earned(problem)
    if len(earned) < FEWEST or np.ptp(earned[1:]) == 0 or np.ptp(earned[:-1]) == 0:
        return 0.0
    return abs(float(stats.spearmanr(earned[:-1], earned[1:]).statistic)) * np.sqrt(len(earned) - 2)


def _earned(problem: Problem) -> Episodes:
    """The discounted return of each episode."""
    return _by_episode(problem, problem.discount**problem.dataset.step * problem.dataset.reward)


def _by_episode(problem: Problem, rows: Rows) -> Episodes:
    return np.bincount(problem.episode_index, rows, problem.dataset.num_episodes)


def distance_from_zero(values: Episodes, *, one_sided: bool = False) -> float:
    """Of their mean, in standard errors."""
    if len(values) < FEWEST or not values.any():
        return 0.0
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    distance = float(values.mean()) if one_sided else abs(float(values.mean()))
    return max(0.0, min(distance / max(error, 1e-300), FURTHEST))
