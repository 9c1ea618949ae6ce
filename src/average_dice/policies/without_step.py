"""A policy for observations that have the step as their last entry: it sees the others."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from average_dice.policies.base import Actions, Observations, Policy, WeightedActions
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.smoothed import SmoothedPolicy


def without_step(policy: Policy) -> Policy:
    """The policy for a log up to a horizon (`LoggedDataset.up_to`). What it is stays known: deterministic, smoothed."""
    if isinstance(policy, DeterministicPolicy):
        action = policy.action
        return replace(policy, action=lambda observations: action(observations[:, :-1]))
    if isinstance(policy, SmoothedPolicy):
        mean, original = policy.mean, None if policy.original is None else without_step(policy.original)
        assert original is None or isinstance(original, DeterministicPolicy)
        return replace(policy, mean=lambda observations: mean(observations[:, :-1]), original=original)
    return WithoutStep(policy)


@dataclass(frozen=True)
class WithoutStep:
    """Any other policy."""

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

    def __repr__(self) -> str:
        return f"{self.policy!r}, which does not see the step"
