"""Gaussian policies whose standard deviation, too, depends on the state; with or without a tanh after it.

    a = mean(s) + scale(s) ε                                     ε ~ N(0, I)
    a = middle + half · tanh(mean(s) + scale(s) ε)               squashed: between the bounds middle ± half

The density of a squashed action is N(u) / Π half (1 − tanh² u), with u = artanh((a − middle) / half).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.errors import PolicyError
from average_dice.policies.base import Actions, Observations, WeightedActions

Moments = tuple[np.ndarray, np.ndarray]  # means [row, action], and standard deviations [row, action] or [row, a, a]

# A tanh in float32 rounds to 1 beyond this: such an action counts as the largest below it, as in Stable-Baselines3.
ROUNDED_TO_ONE = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class ConditionalGaussianPolicy:
    """A continuous policy from any function to means and standard deviations, [row, action] each.

    Instead of standard deviations it may give lower triangular factors of covariances, [row, action, action]. With
    `low` and `high` a tanh maps the sample between these bounds. Without them actions are unbounded.

    >>> policy = ConditionalGaussianPolicy(lambda observations: (observations, 1 + observations**2))
    >>> policy.log_prob(np.array([[2.0]]), np.array([[7.0]])).round(4).tolist()  # log N(7; 2, 5²)
    [-3.0284]
    """

    moments: Callable[[Observations], Moments]
    low: Any = None  # one number for each dimension of the action
    high: Any = None
    source: str = "a function"

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise PolicyError("a squashed policy needs both bounds of the action, low and high.")
        if self.low is not None:
            low, high = (np.atleast_1d(np.asarray(bound, np.float64)) for bound in (self.low, self.high))
            if low.shape != high.shape or not (
                np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()
            ):
                raise PolicyError("the bounds of a squashed policy must be finite, with low below high.")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log π(a|s) of each row, a density; −∞ outside the bounds."""
        if actions.ndim != 2:
            raise PolicyError(
                "the policy has continuous actions, the log has discrete ones. "
                "Give the policy that belongs to this log."
            )
        mean, factor = self._checked(observations, actions.shape[1])
        if self.low is None:
            return _log_normal(actions, mean, factor)
        half = (self.high - self.low) / 2
        squashed = (actions - (self.high + self.low) / 2) / half
        outside = (np.abs(squashed) > 1 + ROUNDED_TO_ONE).any(axis=1)
        squashed = np.clip(squashed, ROUNDED_TO_ONE - 1, 1 - ROUNDED_TO_ONE)
        volume = np.log(half * (1 - squashed) * (1 + squashed)).sum(axis=1)
        return np.where(outside, -np.inf, _log_normal(np.arctanh(squashed), mean, factor) - volume)

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One action for each row."""
        mean, factor = self._checked(observations)
        return self._squashed(mean + _scaled(factor[:, None], generator.standard_normal(mean.shape)[:, None])[:, 0])

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """`num_draws` actions for each row, in pairs of opposite noise, with equal weights."""
        mean, factor = self._checked(observations)
        half = generator.standard_normal((len(mean), -(-num_draws // 2), mean.shape[1]))
        noise = np.concatenate([half, -half], axis=1)[:, :num_draws]
        actions = self._squashed(mean[:, None] + _scaled(factor[:, None], noise))
        return actions, np.full(actions.shape[:2], 1.0 / num_draws)

    def _squashed(self, values: np.ndarray) -> np.ndarray:
        if self.low is None:
            return values
        return (self.high + self.low) / 2 + (self.high - self.low) / 2 * np.tanh(values)

    def _checked(self, observations: Observations, num_dimensions: int | None = None) -> Moments:
        mean, factor = (np.asarray(one, np.float64) for one in self.moments(observations))
        if num_dimensions is not None and mean.ndim == 2 and mean.shape[1] != num_dimensions:
            raise PolicyError(
                f"the policy has actions of {mean.shape[1]} numbers, the log has actions of {num_dimensions} numbers. "
                "Give the policy that belongs to this log."
            )
        if (
            mean.ndim != 2
            or len(mean) != len(observations)
            or factor.shape
            not in (
                mean.shape,
                (*mean.shape, mean.shape[-1]),
            )
        ):
            raise PolicyError(
                f"the policy's means have shape {mean.shape} and its standard deviations {factor.shape}. Give one row "
                f"for each of the {len(observations)} observations, one column for each number of the action."
            )
        diagonal = factor if factor.ndim == 2 else np.diagonal(factor, axis1=1, axis2=2)
        if not (np.isfinite(mean).all() and np.isfinite(factor).all() and (diagonal > 0).all()):
            raise PolicyError(
                "the policy's means or standard deviations are NaN, infinite, or not above zero. If it returns "
                "logarithms of standard deviations, take their exponential."
            )
        return mean, factor

    def __repr__(self) -> str:
        bounds = "" if self.low is None else ", squashed by tanh"
        return f"ConditionalGaussianPolicy({self.source}{bounds})"


def _log_normal(values: np.ndarray, mean: np.ndarray, factor: np.ndarray) -> Float[np.ndarray, " row"]:
    """log N(value; mean, factor factorᵀ) for each row."""
    diagonal = factor if factor.ndim == 2 else np.diagonal(factor, axis1=1, axis2=2)
    centred = values - mean
    whitened = centred / factor if factor.ndim == 2 else np.linalg.solve(factor, centred[..., None])[..., 0]
    constant = np.log(diagonal).sum(axis=1) + 0.5 * mean.shape[1] * np.log(2 * np.pi)
    return -0.5 * (whitened**2).sum(axis=1) - constant


def _scaled(factor: np.ndarray, noise: Float[np.ndarray, "row draw action"]) -> Float[np.ndarray, "row draw action"]:
    """The noise times the standard deviation, or times the factor of the covariance, of its row."""
    return factor * noise if factor.ndim == 3 else np.einsum("rij,rdj->rdi", factor[:, 0], noise)
