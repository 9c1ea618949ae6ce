"""The interval that suits a method.

- means of independent episodes (the behaviour's return, IS, per-decision IS): Student's t;
- doubly robust estimates: Student's t of what each episode adds, with a critic fitted to the others; but where products
  of ratios end at a cut and the critic stands for what lies beyond, its own error counts, too, and the bootstrap knows;
- everything else: the bootstrap over whole episodes, refitted to every draw;
- methods that train: the same with the few draws that one can wait for.

Where draws are too few for percentiles, Student's t with their spread takes over.

All of them speak of the error by chance, from one log to the next. None knows of a bias that every log would share.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import (
    BehaviourReturn,
    DoublyRobust,
    Estimator,
    Fit,
    ImportanceSampling,
    MarginalisedDoublyRobust,
)
from average_dice.estimators.importance.importance_sampling import by_decision, by_episode
from average_dice.estimators.value_rules import is_truncated
from average_dice.inference import influence
from average_dice.inference.bootstrap import drawn_episodes, left_out_episodes, replicate
from average_dice.inference.intervals import Interval, bias_corrected, from_few, percentile, student_t, tail_share
from average_dice.labels import log_uncensored
from average_dice.problem import Problem

MOST_FAILURES = 0.1


@dataclass(frozen=True)
class Sampling:
    """How uncertainty is found: the level, the number of draws, those of methods that train, and the seed."""

    level: float = 0.95
    num_draws: int = 100
    num_trained_draws: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise SettingError(f"the level of an interval must lie between 0 and 1, not {self.level}.")
        if self.num_draws < 0 or self.num_trained_draws < 0:
            raise SettingError("the number of draws must not be negative.")


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """An interval, how it was found, and the values on draws of episodes where there are any."""

    lower: float | None
    upper: float | None
    kind: str
    replicates: Float[np.ndarray, " draw"] | None = None


def uncertainty(method: Estimator, problem: Problem, fit: Fit, sampling: Sampling, *, key: jax.Array) -> Uncertainty:
    """The interval of the kind that suits the method."""
    if problem.dataset.num_episodes < 2:
        return Uncertainty(None, None, "no interval: the log has one episode")
    num_draws = sampling.num_trained_draws if method.trains else sampling.num_draws
    if num_draws == 0:
        why = "it trains anew for each draw; ask for some" if method.trains else "no draws were asked for"
        return Uncertainty(None, None, f"no interval: {why}")
    values = _independent_values(method, problem, fit, key)
    if values is not None:
        return Uncertainty(*student_t(values, sampling.level), f"Student's t over {len(values)} episodes")
    if num_draws == 1:
        return Uncertainty(None, None, "no interval: it takes two draws of episodes or more")
    replicates = draw_values(method, problem, num_draws, sampling.seed, key=key)
    return of_replicates(fit.value, replicates, sampling.level, problem.dataset.num_episodes)


def draw_values(
    method: Estimator, problem: Problem, num_draws: int, seed: int, *, key: jax.Array
) -> Float[np.ndarray, " draw"]:
    draws = list(drawn_episodes(problem.dataset.num_episodes, num_draws, seed))
    return replicate(method, problem, draws, key=key)


def of_replicates(value: float, replicates: Float[np.ndarray, " draw"], level: float, num_episodes: int) -> Uncertainty:
    """Percentiles of what was drawn, if that is enough."""
    found = replicates[np.isfinite(replicates)]
    num_failed = len(replicates) - len(found)
    if num_failed > MOST_FAILURES * len(replicates) or len(found) < 2:
        return Uncertainty(None, None, f"no interval: it fails on {num_failed} of {len(replicates)} draws", replicates)
    failed = f", {num_failed} failed" if num_failed else ""
    if tail_share(level, num_episodes) * (len(found) + 1) < 1:  # the end would lie beyond the outermost draw
        kind = f"Student's t with the spread of {len(replicates)} draws of episodes{failed}"
        return Uncertainty(*from_few(value, found, level, num_episodes), kind, replicates)
    kind = f"percentiles of {len(replicates)} draws of episodes{failed}"
    return Uncertainty(*percentile(found, level, num_episodes), kind, replicates)


def bias_corrected_interval(
    method: Estimator, problem: Problem, fit: Fit, replicates: Float[np.ndarray, " draw"], level: float, key: jax.Array
) -> Interval:
    """BCa: refits without each episode (or group of episodes) besides the draws."""
    if problem.dataset.num_episodes < 2:
        raise SettingError("an interval takes at least two episodes.")
    others = left_out_episodes(problem.dataset.num_episodes)
    left_out = replicate(method, problem, others, key=key, feature_draws=1)  # what moves is the episode left out
    return bias_corrected(fit.value, replicates[np.isfinite(replicates)], left_out[np.isfinite(left_out)], level)


def _independent_values(
    method: Estimator, problem: Problem, fit: Fit, key: jax.Array
) -> Float[np.ndarray, " episode"] | None:
    """One number for each episode whose mean is the estimate, where there are such numbers."""
    try:
        match method:
            case BehaviourReturn():
                data, discount = problem.dataset, problem.discount
                discounted = (1 - discount) * discount**data.step * np.exp(-log_uncensored(problem)) * data.reward
                return np.bincount(problem.episode_index, discounted, data.num_episodes)
            case ImportanceSampling() if method.log_weights in (by_episode, by_decision):
                return influence.of_weighted_rewards(problem, fit)
            case DoublyRobust() if method.log_weights is by_decision and not is_truncated(problem):
                return influence.cross_fitted(method, problem, key=key)
            case MarginalisedDoublyRobust():
                return influence.cross_fitted(method, problem, key=key)
    except NotApplicable:
        return None
    return None
