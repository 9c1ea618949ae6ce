"""Is it better than what we do now? Differences between two values on the same bootstrap resamples.

What the behaviour policy earns is estimated by the same method as what π earns, on the log with a single action. Every
importance ratio is then 1, and a critic learns the values of states. (The plain discounted return ignores rewards after
truncation. Another method than π's would continue in another way after it; on paired resamples, where chance cancels,
even μ would then differ significantly from μ.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax

from average_dice.estimators import Estimator
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.uncertainty import bootstrap_values, of_replicates
from average_dice.problem import Problem


@dataclass(frozen=True)
class Difference:
    """How much more one earns than the other (the baseline), with its interval."""

    value: float
    lower: float | None
    upper: float | None
    level: float
    baseline: float

    @property
    def judgement(self) -> str:
        """Better, worse, no significant difference, or no interval."""
        if self.lower is None or self.upper is None:
            return "no interval"
        return "better" if self.lower > 0 else "worse" if self.upper < 0 else "no significant difference"

    def in_words(self, shown: Callable[[float], str]) -> str:
        """The judgement, with its numbers."""
        size = f"{shown(abs(self.value))} {'less' if self.value < 0 else 'more'}"
        words = f"{self.judgement}, {size} than its {shown(self.baseline)}"
        if self.lower is None or self.upper is None:
            return words
        return f"{words} ({100 * self.level:g}% interval {shown(self.lower)} to {shown(self.upper)})"


def behaviour_value(
    method: Estimator, problem: Problem, number: int, seed: int, *, key: jax.Array
) -> tuple[float, Replicates]:
    """What μ earns by this method, and the same on so many bootstrap resamples."""
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
