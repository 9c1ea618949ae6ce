"""Differences between two values on the same bootstrap resamples: is the policy better than the behaviour policy?

In the difference the behaviour policy is estimated by the same method as π, on the log with a single action. Every
importance ratio is then 1, and a critic learns the values of states. (The plain discounted return ignores rewards after
truncation, and another method would extrapolate in another way. On paired resamples, where chance cancels, even μ would
then differ significantly from μ.)
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import jax

from average_dice.estimators import Estimator
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.uncertainty import bootstrap_values, of_replicates
from average_dice.problem import Problem
from average_dice.randomness import key_name


@dataclass(frozen=True)
class Difference:
    """The value of one policy minus that of another (the baseline), both by the same method, with its interval.

    `supported`: whether the log supports the values. If not, nothing follows from the difference.
    """

    value: float
    lower: float | None
    upper: float | None
    level: float
    baseline: float
    supported: bool = True

    @property
    def judgement(self) -> str:
        """Better, worse, no significant difference, no interval, or no conclusion."""
        if not self.supported:
            return "no conclusion"
        if self.lower is None or self.upper is None:
            return "no interval"
        return "better" if self.lower > 0 else "worse" if self.upper < 0 else "no significant difference"

    def in_words(self, shown: Callable[[float], str], unit: str) -> str:
        """The judgement, with its numbers; `unit` follows the difference."""
        because = "" if self.supported else " because the log does not support the value; the estimate is"
        size = f"{shown(abs(self.value))} {'less' if self.value < 0 else 'more'}{unit}"
        words = f"{self.judgement}{because or ','} {size}"
        if self.lower is None or self.upper is None:
            return words
        return f"{words} ({100 * self.level:g}% interval {shown(self.lower)} to {shown(self.upper)})"


BehaviourValue = tuple[float, Replicates]


@dataclass(frozen=True, eq=False)
class OnBehaviour:
    """What μ earns by a method, kept for all policies on the same log: it does not depend on the policy."""

    found: dict[Hashable, BehaviourValue] = field(default_factory=dict)

    def value(self, method: Estimator, problem: Problem, number: int, seed: int, *, key: jax.Array) -> BehaviourValue:
        """`behaviour_value`, computed once for the same log, discount, method, resamples and seed."""
        log, knows_policy = problem.dataset.sha256, problem.policy is not None
        question = (log, knows_policy, problem.discount, method, number, seed, key_name(key))
        try:
            hash(question)
        except TypeError:  # a setting of the method cannot be hashed
            return behaviour_value(method, problem, number, seed, key=key)
        if question not in self.found:
            self.found[question] = behaviour_value(method, problem, number, seed, key=key)
        return self.found[question]


def behaviour_value(method: Estimator, problem: Problem, number: int, seed: int, *, key: jax.Array) -> BehaviourValue:
    """The value of μ by this method, and its values on `number` bootstrap resamples."""
    on_policy = problem.with_single_action()
    prepared = method.prepare(on_policy, key=key)
    value = prepared.fit().value
    return value, bootstrap_values(method, on_policy, number, seed, key=key, prepared=prepared)


def difference(
    value: float, baseline: float, values: Replicates, baselines: Replicates, level: float, num_episodes: int
) -> Difference:
    """The interval of the differences on each resample."""
    found = of_replicates(value - baseline, values - baselines, level, num_episodes).interval
    lower, upper = (None, None) if found is None else (found.lower, found.upper)
    return Difference(value - baseline, lower, upper, level, baseline)
