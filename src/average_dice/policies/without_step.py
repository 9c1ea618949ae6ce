"""A policy for observations that have the step as their last entry: it sees the others."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.policies.base import Actions, Observations, Policy, WeightedActions


@dataclass(frozen=True)
class WithoutStep:
    """The policy for a log up to a horizon (`LoggedDataset.up_to`)."""

    policy: Policy

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log π(a|s) for each row."""
        return self.policy.log_prob(observations[:, :-1], actions)

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One action for each row."""
        return self.policy.sample(observations[:, :-1], generator=generator)

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Actions of π and their weights for each row."""
        return self.policy.weighted_actions(observations[:, :-1], num_draws=num_draws, generator=generator)
