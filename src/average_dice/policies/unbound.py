"""A policy that needs the names of a log before it can answer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.policies.base import Actions, Observations, Policy, WeightedActions


@dataclass(frozen=True, eq=False)
class UnboundPolicy:
    """A policy by the names of a log's columns and actions, such as a file of rules. `bind` gives the policy itself.

    `evaluate`, `compare` and `Problem` bind it to their log.
    """

    bind: Callable[[LoggedDataset], Policy]
    source: str

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """Raises: bind the policy first."""
        raise self._error()

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """Raises: bind the policy first."""
        raise self._error()

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Raises: bind the policy first."""
        raise self._error()

    def _error(self) -> PolicyError:
        return PolicyError(f"{self.source}: what it returns depends on the log. Give it: as_policy(policy, data).")

    def __repr__(self) -> str:
        return f"UnboundPolicy({self.source})"
