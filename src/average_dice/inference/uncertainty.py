"""The interval of a method.

- If the estimate is a mean over independent episodes (`Fit.episode_values`): Student's t of these values. Not if the
  behaviour policy was estimated: all episodes share its error, and the bootstrap estimates it again.
- Otherwise: the bootstrap over whole episodes, with a refit to every resample.
- Methods that train: the same, with as many resamples as the user requests.

If resamples are too few for percentiles, Student's t with their spread is used instead.

All these intervals cover the sampling error, from one log to the next. None covers a bias that every log shares.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import Estimator, Fit, Interval, Prepared, uses_behaviour
from average_dice.inference.bootstrap import (
    Replicates,
    left_out_episodes,
    refits_behaviour,
    replicate,
    resampled_episodes,
)
from average_dice.inference.intervals import Ends, bias_corrected, from_few, percentile, student_t, tail_share
from average_dice.notes import Note, NoteCode
from average_dice.problem import Episodes, Problem

MOST_FAILURES = 0.1  # of the resamples: with more failures, the others are no longer a fair sample


@dataclass(frozen=True)
class IntervalSettings:
    """Settings of intervals: confidence level, numbers of resamples (also for methods that train), random seed."""

    level: float = 0.95
    bootstrap: int = 100
    bootstrap_trained: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise SettingError(f"the confidence level must lie between 0 and 1, not {self.level}.")
        if self.bootstrap < 0 or self.bootstrap_trained < 0:
            raise SettingError("the number of bootstrap resamples must not be negative.")

    def resamples_of(self, method: Estimator) -> int:
        """The number of resamples for the method."""
        return self.bootstrap_trained if method.trains else self.bootstrap


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """An interval, a note that says why there is none or what it lacks, and the values on resamples, if any."""

    interval: Interval | None
    note: Note | None = None
    replicates: Replicates | None = None


def uncertainty(
    method: Estimator, problem: Problem, prepared: Prepared, settings: IntervalSettings, *, key: jax.Array
) -> Uncertainty:
    """The interval of the method, which was prepared for this problem with this key."""
    if problem.dataset.num_episodes < 2:
        return _none("the log has one episode. Log more, or check the column of episodes if there are several")
    number = settings.resamples_of(method)
    if number == 0 and method.trains:
        return _none("the method trains anew on every resample; ask for some with bootstrap_trained")
    fit = prepared.fit()
    values = None if refits_behaviour(method, problem) else _independent_values(fit)  # these need no resamples
    if values is not None:
        kind = f"Student's t over {len(values)} episodes"
        interval = Interval(*student_t(values, settings.level), settings.level, kind)
        return Uncertainty(interval, _fixed_behaviour(method, problem))
    if number == 0:
        return _none("no bootstrap resamples were asked for")
    if number == 1:
        return _none("an interval takes at least two bootstrap resamples")
    replicates = bootstrap_values(method, problem, number, settings.seed, key=key, prepared=prepared)
    found = of_replicates(fit.value, replicates, settings.level, problem.dataset.num_episodes)
    if prepared.is_first_order and found.interval is not None:
        found = replace(found, interval=to_first_order(found.interval))
    return found if found.note is not None else replace(found, note=_fixed_behaviour(method, problem))


def to_first_order(interval: Interval) -> Interval:
    """The same interval, which says that its resamples were not refitted."""
    return replace(interval, kind=f"{interval.kind}, to first order")


def _fixed_behaviour(method: Estimator, problem: Problem) -> Note | None:
    """A note if the method uses estimated probabilities that cannot be estimated again."""
    estimated = problem.dataset.estimated_behaviour is not None
    if not estimated or refits_behaviour(method, problem) or not uses_behaviour(method):
        return None
    return Note(
        NoteCode.BEHAVIOUR_FIXED,
        "the interval does not include the error of the estimated probabilities of the logged actions, because they "
        "come with the log: estimate them in the same run, with --estimate-behaviour (ad.estimate_behaviour)",
    )


def bootstrap_values(
    method: Estimator, problem: Problem, number: int, seed: int, *, key: jax.Array, prepared: Prepared | None = None
) -> Replicates:
    """The method's values on `number` resamples."""
    chosen = list(resampled_episodes(problem.dataset.num_episodes, number, seed))
    return replicate(method, problem, chosen, key=key, prepared=prepared)


def of_replicates(value: float, replicates: Replicates, level: float, num_episodes: int) -> Uncertainty:
    """Percentiles of the replicates, if there are enough."""
    found = replicates[np.isfinite(replicates)]
    num_failed = len(replicates) - len(found)
    if num_failed > MOST_FAILURES * len(replicates) or len(found) < 2:
        why = f"the method fails on {num_failed} of {len(replicates)} bootstrap resamples"
        return Uncertainty(None, _no_interval(why), replicates)
    failed = f", {num_failed} failed" if num_failed else ""
    if tail_share(level, num_episodes) * (len(found) + 1) < 1:  # the percentile would lie beyond the last replicate
        kind = f"Student's t with the spread of {len(replicates)} bootstrap resamples{failed}"
        return Uncertainty(Interval(*from_few(value, found, level, num_episodes), level, kind), None, replicates)
    kind = f"percentiles of {len(replicates)} bootstrap resamples{failed}"
    return Uncertainty(Interval(*percentile(found, level, num_episodes), level, kind), None, replicates)


def bias_corrected_interval(
    method: Estimator, problem: Problem, fit: Fit, replicates: Replicates, level: float, key: jax.Array
) -> Ends:
    """BCa, which also refits without each episode (or group of episodes)."""
    if problem.dataset.num_episodes < 2:
        raise SettingError("an interval takes at least two episodes.")
    others = left_out_episodes(problem.dataset.num_episodes)
    left_out = replicate(method, problem, others, key=key, feature_draws=1)  # the same features in all
    return bias_corrected(fit.value, replicates[np.isfinite(replicates)], left_out[np.isfinite(left_out)], level)


def _independent_values(fit: Fit) -> Episodes | None:
    if fit.episode_values is None:
        return None
    try:
        return fit.episode_values()
    except NotApplicable:
        return None


def _none(why: str) -> Uncertainty:
    return Uncertainty(None, _no_interval(why))


def _no_interval(why: str) -> Note:
    return Note(NoteCode.NO_INTERVAL, f"no interval: {why}")
