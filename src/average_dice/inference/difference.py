"""Is it better than what we do now? Differences between two values on the same draws of episodes.

What the behaviour policy earns is estimated by the same method as what π does, on the log as a process without
choices: a single action, taken for certain. Every ratio is then 1, and what a critic learns are the values of states.
(The plain discounted return leaves out what lies beyond the cut. Another method than π's would continue beyond it in
another way, and on paired draws, where chance cancels, even μ itself would be told apart from μ.)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float

from average_dice.estimators import Estimator
from average_dice.inference.uncertainty import draw_values, of_replicates
from average_dice.policies import CategoricalPolicy, Network
from average_dice.problem import Problem

Draws = Float[np.ndarray, " draw"]


@dataclass(frozen=True)
class Difference:
    """How much more one earns than the other, with its interval."""

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


def without_choices(problem: Problem) -> Problem:
    """The log with a single action, and the policy that takes it; no policy where there was none."""
    data = problem.dataset
    certain = np.zeros(data.num_transitions)
    log = replace(
        data,
        action=np.zeros(data.num_transitions, np.int64),
        behaviour_log_prob=certain,
        target_log_prob=certain,
    )
    single = Network(weights=(np.zeros((1, data.observation.shape[1])),), biases=(np.zeros(1),))
    return Problem(log, None if problem.policy is None else CategoricalPolicy(single), problem.discount)


def behaviour_value(
    method: Estimator, problem: Problem, num_draws: int, seed: int, *, key: jax.Array
) -> tuple[float, Draws]:
    """What μ earns by this method, and the same on draws of episodes."""
    as_it_was = without_choices(problem)
    return method.fit(as_it_was, key=key).value, draw_values(method, as_it_was, num_draws, seed, key=key)


def difference(
    value: float, baseline: float, draws: Draws, baseline_draws: Draws, level: float, num_episodes: int
) -> Difference:
    """The interval of the differences on each draw."""
    found = of_replicates(value - baseline, draws - baseline_draws, level, num_episodes)
    return Difference(value - baseline, found.lower, found.upper, level, baseline)
