"""Tests of the assumptions behind every estimate. Each gives the distance from its assumption in standard errors.

- **Mean ratio**: E[ρ] = 1 under μ, over the log and at every step.
- **Balance**: E[ρ | s, t] = 1 under μ, at every state and step. It is below 1 where π takes actions that μ never takes
  there (no support), and above 1 only where probabilities are wrong.
- **Memory**: the ratios of two consecutive steps are uncorrelated, if actions were sampled with the recorded
  probabilities.
- **Truncation** does not depend on what happened: truncated rows are distributed like the others of their step.
- **Episodes** are independent and identically distributed: returns have no trend over the log, and no correlation with
  the return of the episode before.

All are tests on sums over episodes, which are independent, with a mean of 0 if the assumption holds.

Ratios of a deterministic policy are 0 or 1 / μ. If one of the two is rare, a log may lack it by chance, and ρ then has
no spread in the log. So where π has probabilities of 0 or 1, the standard error uses at least the spread that π implies
(`spread_implied`). Where μ was estimated, its errors raise ρ; the tests of ρ take that off (`EstimatedRatios`). A log
without any of π's actions tests nothing; the rules about coverage say that it has none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy import stats

from average_dice import memory as memory_limit
from average_dice.data import LoggedDataset
from average_dice.features.fourier import FourierMap
from average_dice.features.scaling import mean_and_std
from average_dice.inference.estimated_ratios import EstimatedRatios
from average_dice.labels import as_logged, self_normalised
from average_dice.linear_systems import solve
from average_dice.problem import Episodes, Problem, Rows
from average_dice.randomness import generator_from

# The regression for the balance. The test on held-out episodes is valid for any choice; a poor one has less power.
NUM_FEATURES = 100  # enough to find a region of states
RIDGE = 0.01  # times the number of rows: larger finds only large regions, smaller fits noise
NUM_FOLDS = 5  # learns from four fifths of the episodes; more folds cost more regressions

COLUMNS_AT_ONCE = 32  # of discrete actions, in the test of truncation
FEWEST = 10  # with fewer episodes, or truncated rows, a test has no power
LARGEST_RATIO = 10.0  # in the regression larger ratios are clipped, because few would dominate; the test does not clip
FURTHEST = 1e3  # standard errors; larger distances, infinite without any spread, are reported as this
CERTAIN = 1e-12  # a probability this close to 1 is 1: rounding of a softmax stays below it
COUNTS = 0.1  # steps with a discount γᵗ below this are not tested alone: they hardly change J, and add false alarms


def mean_ratio(problem: Problem, ratios: EstimatedRatios | None = None) -> tuple[float, float]:
    """The mean of ρ over rows, and its distance from 1 in standard errors: E_μ[ρ | s] = 1 at every state.

    The distance is that of the mean less the excess from errors of estimated probabilities.
    """
    ratios = ratios or EstimatedRatios.of(problem)
    data = problem.dataset
    apart = problem.by_episode(ratios.corrected - 1)
    least = spread_implied(problem) * float(np.sqrt(data.lengths.mean()))
    shared = ratios.shared_error(np.full(data.num_transitions, 1 / data.num_episodes))
    return float(problem.ratio.mean()), distance_from_zero(apart, fewest=2, least_spread=least, shared_error=shared)


def spread_implied(problem: Problem) -> float:
    """The standard deviation of ρ under μ if E_μ[ρ] = 1, where π has probabilities of 0 or 1; otherwise 0.

    E_μ[ρ²] = E_π[ρ], whose self-normalised estimate is Σρ² / Σρ; ∞ if every ratio is 0. Deviations of different rows
    are uncorrelated, so the variance of a sum is the sum of the variances.
    """
    ratio = problem.ratio
    if not problem.dataset.is_discrete or not _has_certain_actions(problem):
        return 0.0
    return float(np.sqrt(max(ratio @ ratio / ratio.sum() - 1, 0.0))) if ratio.any() else np.inf


def _has_certain_actions(problem: Problem) -> bool:
    """Whether π takes any of the logged actions never or always."""
    log_prob = problem.target_log_prob
    return bool((np.isneginf(log_prob) | (log_prob > -CERTAIN)).any())


def worst_step(problem: Problem, ratios: EstimatedRatios | None = None) -> tuple[int, float, float]:
    """Of the steps that count, γᵗ > 1/10, the one whose mean of ρ lies the most standard errors from 1.

    An action that π takes and μ never takes at some step lowers the mean there, and hardly changes the mean over all.
    The standard error uses the spread of all rows if that of the step is smaller: among many steps, a rare action that
    π prefers is missing from some by chance, and no ratio at that step shows how rare it is. The mean is less the
    excess from errors of estimated probabilities.
    """
    data, ratios = problem.dataset, ratios or EstimatedRatios.of(problem)
    corrected = ratios.corrected
    spread = max(float(problem.ratio.std()), spread_implied(problem))
    found = []
    for step in range(int(data.lengths.max())):
        if problem.discount**step < COUNTS:
            break
        here = data.step == step
        ratio = corrected[here]
        if len(ratio) >= FEWEST:
            shared = ratios.shared_error(here / len(ratio))
            distance = distance_from_zero(ratio - 1, fewest=2, least_spread=spread, shared_error=shared)
            found.append((step, float(ratio.mean()), distance))
    return max(found, key=lambda one: one[2], default=(0, 1.0, 0.0))


@dataclass(frozen=True)
class Balance:
    """Distance of E[ρ | s, t] from 1 in standard errors, and the discounted weight of π lost or added by it."""

    distance: float
    missing: float
    excess: float


def balance(problem: Problem, ratios: EstimatedRatios | None = None, *, key: jax.Array) -> Balance:
    """Tests E[ρ | s, t] = 1 where a regression on other episodes predicts a violation.

    m(s, t) is learnt from 1 − ρ on other folds of episodes. Under the assumption E[m(s, t) (1 − ρ)] = 0 for every m.
    The missing or excess mass is E[Σ γᵗ W_t (1 − ρ_t)] over the rows where m is positive or negative: how often in an
    episode, discounted, π leaves the support of the log. W is self-normalised at every step, so it may exceed 1.
    """
    data = problem.dataset
    if data.num_episodes < FEWEST:
        return Balance(0.0, 0.0, 0.0)
    # Less the excess from errors of estimated probabilities. Those of different states nearly cancel: the distance is
    # at most 2.3 on 21 sound logs with estimates, so it needs no larger standard error, which would cost power.
    corrected = (ratios or EstimatedRatios.of(problem)).corrected
    lost = 1 - corrected
    predicted = _predicted(problem, 1 - np.minimum(corrected, LARGEST_RATIO), key)
    weight = np.exp(self_normalised(problem) + as_logged(problem, problem.log_product))
    by_row = weight * lost / data.num_episodes
    implied = spread_implied(problem)
    least = implied * float(np.sqrt(problem.by_episode(predicted**2).mean())) if implied else 0.0
    return Balance(
        distance_from_zero(problem.by_episode(predicted * lost), least_spread=least, one_sided=True),
        float(by_row[predicted > 0].sum()),
        float(-by_row[predicted < 0].sum()),
    )


def _predicted(problem: Problem, target: Rows, key: jax.Array) -> Rows:
    """The target of each row, by ridge regression on the state and the step in other episodes."""
    data, generator = problem.dataset, generator_from(key)
    inputs = np.column_stack([data.encoding.encode(data.observation), data.step])
    number = memory_limit.halved(NUM_FEATURES, len(inputs), lambda one: 1 + inputs.shape[1] + one)
    phi = FourierMap.draw(inputs, number, generator)(inputs).astype(np.float64)
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
    least = spread_implied(problem) ** 2 * float(np.sqrt(data.lengths.mean()))  # of a product of independent factors
    return distance_from_zero(problem.by_episode(together), least_spread=least)


def truncation(data: LoggedDataset) -> float:
    """The largest distance, over all columns, of truncated rows from the others of their step.

    Terminated rows and rows of the last step, where all episodes are truncated, are left out.
    """
    at_risk = ~data.terminated & (data.step < data.step.max())
    truncated = at_risk & data.truncated
    if int(truncated.sum()) < FEWEST:
        return 0.0
    return max(_truncated_apart(data, columns, at_risk, truncated) for columns in _columns(data))


def _columns(data: LoggedDataset) -> Iterator[Float[np.ndarray, "transition column"]]:
    """The columns of the log, in parts: those of many discrete actions would not fit into memory at once."""
    beside = [] if data.is_discrete else [data.action]
    before, after = data.encoding.encode(data.observation), data.encoding.encode(data.next_observation)
    yield np.column_stack([before, *beside, after, data.reward])
    if data.is_discrete:
        seen = np.unique(data.action)
        for start in range(0, len(seen), COLUMNS_AT_ONCE):
            yield (data.action[:, None] == seen[start : start + COLUMNS_AT_ONCE]).astype(np.float64)


def _truncated_apart(data: LoggedDataset, columns: np.ndarray, at_risk: np.ndarray, truncated: np.ndarray) -> float:
    """The largest distance over these columns."""
    mean, std = mean_and_std(columns)
    scaled, step = ((columns - mean) / std)[at_risk], data.step[at_risk]
    number = np.bincount(step, minlength=int(data.step.max()) + 1)
    counts = np.maximum(number, 1)[:, None]
    means = np.stack([np.bincount(step, one, len(number)) for one in scaled.T], axis=1) / counts
    variances = np.stack([np.bincount(step, one**2, len(number)) for one in scaled.T], axis=1) / counts - means**2
    chosen = step[truncated[at_risk]]
    apart = (scaled[truncated[at_risk]] - means[chosen]).sum(axis=0)
    # the variance of sampling without replacement from the rows at risk at the step
    drawn = np.bincount(chosen, minlength=len(number))[:, None]
    spread = np.sum(drawn * variances * (counts - drawn) / np.maximum(counts - 1, 1), axis=0)
    varies = spread > 1e-12  # a smaller spread of standardised columns is rounding
    if not varies.any():
        return 0.0
    return min(float(np.max(np.abs(apart[varies]) / np.sqrt(spread[varies]))), FURTHEST)


def trend(problem: Problem) -> float:
    """Rank correlation of the returns with the place in the log."""
    returns = _returns(problem)
    if len(returns) < FEWEST or np.ptp(returns) == 0:
        return 0.0
    return abs(float(stats.spearmanr(np.arange(len(returns)), returns).statistic)) * np.sqrt(len(returns) - 1)


def neighbours(problem: Problem) -> float:
    """Rank correlation of the return of an episode with that of the next."""
    returns = _returns(problem)
    if len(returns) < FEWEST or np.ptp(returns[1:]) == 0 or np.ptp(returns[:-1]) == 0:
        return 0.0
    return abs(float(stats.spearmanr(returns[:-1], returns[1:]).statistic)) * np.sqrt(len(returns) - 2)


def _returns(problem: Problem) -> Episodes:
    """The discounted return of each episode."""
    return problem.by_episode(problem.discount**problem.dataset.step * problem.dataset.reward)


def distance_from_zero(
    values: Float[np.ndarray, " value"],
    *,
    fewest: int = FEWEST,
    least_spread: float = 0.0,
    one_sided: bool = False,
    shared_error: float = 0.0,
) -> float:
    """The distance of the mean of independent values from 0, in standard errors; 0 if there are too few of them.

    `shared_error`: a standard error of the mean that the spread of the values does not show, because all share it.
    """
    if len(values) < fewest or not values.any():
        return 0.0
    error = np.hypot(max(float(values.std(ddof=1)), least_spread) / np.sqrt(len(values)), shared_error)
    distance = float(values.mean()) if one_sided else abs(float(values.mean()))
    return max(0.0, min(distance / max(error, 1e-300), FURTHEST))  # 1e-300 avoids a division by 0
