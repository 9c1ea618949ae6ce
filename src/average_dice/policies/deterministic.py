"""Deterministic policies: one action for each state, a = π(s)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable, PolicyError
from average_dice.policies.base import Actions, Observations, WeightedActions, short_name

NO_DENSITY = (
    "the policy is deterministic and actions are continuous, so importance ratios do not exist unless it is "
    "smoothed: --smooth"
)


@dataclass(frozen=True, eq=False)
class DeterministicPolicy:
    """A policy from any function that returns one action for each observation.

    `action` maps observations [row, observation] to [row, action] floats. For discrete actions give `num_actions`, and
    a function to [row] integers: probabilities are then exactly 0 or 1.
    Continuous actions have no density: `log_prob` raises `NotApplicable`, and methods that need importance ratios are
    not applicable (docs/deterministic.md).

    >>> greedy = DeterministicPolicy(lambda observations: (observations[:, 0] > 0).astype(int), num_actions=2)
    >>> greedy.log_prob(np.array([[0.5], [0.5]]), np.array([1, 0])).tolist()
    [0.0, -inf]
    """

    action: Callable[[Observations], Any]  # [row, action] floats, or [row] integers
    num_actions: int | None = None

    @property
    def is_discrete(self) -> bool:
        """Whether its actions are discrete."""
        return self.num_actions is not None

    def actions(self, observations: Observations) -> Actions:
        """π(s) for each row, checked."""
        found = np.asarray(self.action(observations))
        if self.num_actions is None:
            if found.ndim == 1 and found.dtype.kind in "iu":
                raise PolicyError("the policy returns integers. If actions are discrete, give num_actions.")
            if found.ndim != 2 or len(found) != len(observations) or found.shape[1] == 0:
                raise PolicyError(
                    f"the deterministic policy's actions have shape {found.shape}. Give one row for each of the "
                    f"{len(observations)} observations, one column for each number of the action."
                )
            found = found.astype(np.float64)
            if not np.isfinite(found).all():
                raise PolicyError("the deterministic policy's actions are NaN or infinite: correct it.")
            return found
        if found.shape != (len(observations),) or found.dtype.kind not in "iu":
            raise PolicyError(
                f"the deterministic policy's actions are {found.dtype} of shape {found.shape}. Give one integer for "
                f"each of the {len(observations)} observations."
            )
        if len(found) and not (found.min() >= 0 and found.max() < self.num_actions):
            wrong = found.max() if found.max() >= self.num_actions else found.min()
            raise PolicyError(
                f"the deterministic policy takes action {wrong}, and num_actions = {self.num_actions} allows 0 to "
                f"{self.num_actions - 1}. Correct one of them."
            )
        return found.astype(np.int64)

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """Discrete: 0 where π takes the action, −∞ elsewhere. Continuous: `NotApplicable`, there is no density."""
        self._require_kind(actions)
        if self.num_actions is None:
            raise NotApplicable(NO_DENSITY)
        if len(actions) and not (actions.min() >= 0 and actions.max() < self.num_actions):
            raise PolicyError(
                f"the log has action {actions.max() if actions.max() >= self.num_actions else actions.min()}, "
                f"the policy has actions 0 to {self.num_actions - 1}. Give the policy that belongs to this log."
            )
        return np.where(self.actions(observations) == actions, 0.0, -np.inf)

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """π(s) for each row; nothing is random."""
        return self.actions(observations)

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Continuous: π(s) with weight 1. Discrete: every action, with weight 1 for π(s) and 0 for the others."""
        chosen = self.actions(observations)
        if self.num_actions is None:
            return chosen[:, None], np.ones((len(chosen), 1))
        every = np.broadcast_to(np.arange(self.num_actions), (len(chosen), self.num_actions))
        return every, (every == chosen[:, None]).astype(np.float64)

    def __repr__(self) -> str:
        kind = "continuous" if self.num_actions is None else f"{self.num_actions} actions"
        return f"DeterministicPolicy({short_name(self.action, 'dimensions of the action')}, {kind})"

    def _require_kind(self, actions: Actions) -> None:
        if (actions.ndim == 1) == self.is_discrete:
            return
        if self.is_discrete:
            raise PolicyError(
                "the policy has discrete actions, the log has continuous ones. "
                "Give the policy that belongs to this log."
            )
        raise PolicyError(
            "the log has discrete actions. Give DeterministicPolicy the number of them: num_actions=…, and a function "
            "that returns one integer for each observation."
        )
