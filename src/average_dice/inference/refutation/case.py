"""What all refuters share: the problem, the method, its value, and its values on bootstrap resamples."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator, Fit, Prepared, prepared_once
from average_dice.inference.bootstrap import Replicates, replicate, resampled_episodes
from average_dice.policies import Policy
from average_dice.problem import Problem
from average_dice.resampling import Resample

NUM_RESAMPLES = 25  # for differences; intervals need more
FEWEST_EPISODES = 20  # halves of fewer have less than ten episodes, and no test on them is reliable
LEAST_CHANGE = 0.01  # of the value; on Hopper and CartPole intervals are much narrower than that
NORMAL_95 = 1.96  # standard errors to each end of a 95 % interval


@dataclass(frozen=True, eq=False)
class Case:
    """One estimate that is to be refuted.

    - `given`: the values on bootstrap resamples behind its interval, if there are any.
    - `order`: the episodes in order of time. `behaviour`: μ as a policy object, if the user has it.
    """

    problem: Problem
    method: Estimator
    key: jax.Array
    seed: int
    order: Int[np.ndarray, " episode"]
    behaviour: Policy | None = None
    given: Replicates | None = None
    num_resamples: int = NUM_RESAMPLES

    @cached_property
    def prepared(self) -> Prepared:
        """The method on the log."""
        return prepared_once(self.method, self.problem, key=self.key)

    @property
    def value(self) -> float:
        """The estimate."""
        return self.prepared.fit().value

    @property
    def num_episodes(self) -> int:
        """The number of episodes of the log."""
        return self.problem.dataset.num_episodes

    @cached_property
    def values(self) -> Replicates:
        """The values of the method on resamples that all problems with these episodes share."""
        return self.values_on_resamples(self.method, self.problem, self.prepared)

    @cached_property
    def spread(self) -> float:
        """The standard error of the estimate."""
        return standard_error(self.values if self.given is None else self.given, self.num_episodes)

    @property
    def standard_error(self) -> float:
        """The same. Raises `NotApplicable` if it is 0."""
        if self.spread == 0:
            raise NotApplicable("every bootstrap resample gives the same value")
        return self.spread

    @property
    def half_width(self) -> float:
        """Half of the width of a 95 % interval."""
        return NORMAL_95 * self.standard_error

    @property
    def matters(self) -> float:
        """The half-width, or 1 % of the value if that is more: a smaller change would hardly change a decision."""
        return max(self.half_width, LEAST_CHANGE * abs(self.value))

    def values_on_resamples(self, method: Estimator, problem: Problem, prepared: Prepared | None = None) -> Replicates:
        """The values of a method on these resamples, with the same random features in all: differences are paired."""
        chosen = list(resampled_episodes(self.num_episodes, self.num_resamples, self.seed))
        return replicate(method, problem, chosen, key=self.key, prepared=prepared, feature_draws=1)

    def fits_of_parts(self, parts: Sequence[Int[np.ndarray, " chosen"]]) -> list[Fit]:
        """The fit of the method to each of these parts of the log."""
        self.require_episodes()
        return self.prepared.refit([Resample.of(self.problem, part) for part in parts])

    def random_halves(self, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of random halves of the episodes."""
        generator, middle = np.random.default_rng((self.seed, 11)), self.num_episodes // 2
        shuffled = [generator.permutation(self.num_episodes) for _ in range(number)]
        return [(np.sort(one[:middle]), np.sort(one[middle:])) for one in shuffled]

    def require_episodes(self) -> None:
        """Raises `NotApplicable` if the log is too small for halves."""
        if self.num_episodes < FEWEST_EPISODES:
            raise NotApplicable(f"the log has {self.num_episodes} episodes, and halves need {FEWEST_EPISODES}")


def standard_error(values: Float[np.ndarray, " resample"], num_episodes: int) -> float:
    """The spread of values on resamples, as that of logs: wider by √(K / (K − 1))."""
    finite = values[np.isfinite(values)]
    if len(finite) < max(2, len(values) // 2):
        raise NotApplicable("the method fails on most bootstrap resamples")
    return float(finite.std(ddof=1)) * np.sqrt(num_episodes / max(num_episodes - 1, 1))


def returns_of(problem: Problem) -> Float[np.ndarray, " episode"]:
    """(1 − γ) Σ γᵗ r of each episode."""
    rows = problem.normaliser * np.exp(problem.log_discount) * problem.dataset.reward
    return problem.by_episode(rows)


def value_of(method: Estimator, problem: Problem, key: jax.Array) -> float:
    """The value by the method."""
    return method.prepare(problem, key=key).fit().value
