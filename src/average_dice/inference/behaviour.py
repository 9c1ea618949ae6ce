"""The value of the behaviour policy: one number with one interval, wherever it is shown.

- Where the log has every reward that counts (no episode is truncated, or γ = 0): the mean of the logged returns.
- Where rewards after truncation are missing: the estimate by the same method as that of π (see `difference`).
"""

from dataclasses import dataclass

import jax

from average_dice.estimators import BehaviourReturn, Interval
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.uncertainty import IntervalSettings, of_replicates, uncertainty
from average_dice.problem import Estimand, Problem

LOGGED_RETURNS = "behaviour-return"  # the registered name of the mean of the logged returns
MEAN_OF = {
    Estimand.PER_STEP: "the mean of the logged returns",
    Estimand.TOTAL: "the mean of the logged episodes",
    Estimand.ONE_STEP: "the mean of the first rewards of the logged episodes",
}


@dataclass(frozen=True)
class Behaviour:
    """The value of μ, its interval, the name of the method, and in words where it comes from or why there is none."""

    value: float | None
    interval: Interval | None
    estimator: str | None
    source: str


def from_logged_returns(problem: Problem, settings: IntervalSettings, *, key: jax.Array) -> Behaviour:
    """The mean of the logged returns, for a log that has every reward that counts."""
    method = BehaviourReturn()
    prepared = method.prepare(problem, key=key)
    found = uncertainty(method, problem, prepared, settings, key=key)
    source = "the mean of the logged rewards" if problem.dataset.is_one_step else MEAN_OF[problem.estimand]
    return Behaviour(prepared.fit().value, found.interval, LOGGED_RETURNS, source)


def by_same_method(name: str, value: float, replicates: Replicates, level: float, num_episodes: int) -> Behaviour:
    """The estimate by the method of this name, from its values on the log and on bootstrap resamples."""
    interval = of_replicates(value, replicates, level, num_episodes).interval
    return Behaviour(value, interval, name, f"by {name}, because the log has no rewards after truncation")


def without_value(reason: str) -> Behaviour:
    """No value, because rewards after truncation are missing and no method estimates them."""
    return Behaviour(
        None, None, None, f"no value, because the log ends at truncations and nothing replaces it: {reason}"
    )
