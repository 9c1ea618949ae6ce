"""Policies from a function for densities and one for samples, such as those of a distribution of another library."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.errors import PolicyError
from average_dice.policies.base import Actions, Observations, WeightedActions


@dataclass(frozen=True, eq=False)
class DensityPolicy:
    """A continuous policy from `density`, (observations, actions) → log π(a|s) [row], and `draws`, (observations,
    number, seed) → actions [row, draw, action].
    """

    density: Callable[[Observations, Actions], Float[np.ndarray, " row"]]
    draws: Callable[[Observations, int, int], Float[np.ndarray, "row draw action"]]
    source: str = "two functions"

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log π(a|s) of each row, a density."""
        if actions.ndim != 2:
            raise PolicyError(
                "the policy has continuous actions, the log has discrete ones. "
                "Give the policy that belongs to this log."
            )
        return np.asarray(self.density(observations, actions), np.float64)

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One action for each row."""
        return self._draws(observations, 1, generator)[:, 0]

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """`num_draws` independent samples for each row, with equal weights."""
        actions = self._draws(observations, num_draws, generator)
        return actions, np.full(actions.shape[:2], 1.0 / num_draws)

    def _draws(self, observations: Observations, number: int, generator: np.random.Generator) -> np.ndarray:
        actions = np.asarray(self.draws(observations, number, int(generator.integers(2**31))), np.float64)
        if actions.ndim != 3 or actions.shape[:2] != (len(observations), number):
            raise PolicyError(
                f"the policy's samples have shape {actions.shape}, not {(len(observations), number, 'action')}: "
                "one action for each observation and draw."
            )
        return actions

    def __repr__(self) -> str:
        return f"DensityPolicy({self.source})"
