"""Gaussian policies over real actions: π(a|s) = N(a; mean(s), diag(exp(log_std))²)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.errors import PolicyError
from average_dice.policies.base import Actions, Observations, WeightedActions, short_name


@dataclass(frozen=True, eq=False)
class GaussianPolicy:
    """A continuous policy from any function that returns mean actions.

    Actions are *unclipped*: their log-probability is that of the Gaussian. `low` and `high`, if given, are the bounds
    of the environment; only `clip` applies them.
    """

    mean: Callable[[Observations], Float[np.ndarray, "row action"]]
    log_std: Any  # one number for each dimension of the action
    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        for name in ("log_std", "low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), np.float64)))
        if self.log_std.ndim != 1 or not np.isfinite(self.log_std).all():
            raise PolicyError("log_std must be one finite number for each action dimension.")
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound is not None and bound.shape != self.log_std.shape:
                raise PolicyError(f"action {name} has shape {bound.shape}, log_std {self.log_std.shape}.")

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log π(a|s) of each row, a density."""
        if actions.ndim != 2 or actions.shape[1] != len(self.log_std):
            found = "discrete ones" if actions.ndim == 1 else f"actions of {actions.shape[1]} numbers"
            raise PolicyError(
                f"the policy has actions of {len(self.log_std)} numbers, the log has {found}. "
                "Give the policy that belongs to this log."
            )
        standardised = (actions - self._means(observations)) / np.exp(self.log_std)
        constant = self.log_std.sum() + 0.5 * len(self.log_std) * np.log(2 * np.pi)
        return -0.5 * (standardised**2).sum(axis=1) - constant

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One unclipped action for each row."""
        noise = generator.standard_normal((len(observations), len(self.log_std)))
        return self._means(observations) + np.exp(self.log_std) * noise

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """`num_draws` actions for each row, in pairs of opposite noise, with equal weights."""
        shape = (len(observations), -(-num_draws // 2), len(self.log_std))
        half = generator.standard_normal(shape)
        noise = np.concatenate([half, -half], axis=1)[:, :num_draws]
        actions = self._means(observations)[:, None, :] + np.exp(self.log_std) * noise
        return actions, np.full(actions.shape[:2], 1.0 / num_draws)

    def _means(self, observations: Observations) -> Float[np.ndarray, "row action"]:
        means = np.asarray(self.mean(observations), np.float64)
        if means.shape != (len(observations), len(self.log_std)):
            raise PolicyError(
                f"the policy's mean has shape {means.shape}, not {(len(observations), len(self.log_std))}: "
                "one row for each observation, one column for each number of the action."
            )
        return means

    def __repr__(self) -> str:
        return f"GaussianPolicy({short_name(self.mean, 'dimensions of the action')})"

    def clip(self, actions: Float[np.ndarray, "row action"]) -> Float[np.ndarray, "row action"]:
        """The actions within the bounds of the environment."""
        return np.clip(actions, self.low, self.high)
