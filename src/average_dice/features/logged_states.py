"""Fourier features of the states of a log: where it stood, where it went, where it began."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from average_dice.features.fourier import FourierMap
from average_dice.problem import Problem
from average_dice.randomness import generator_from


@dataclass(frozen=True, eq=False)
class StateFeatures:
    """φ(s), φ(s′) and φ(s₀), in float64."""

    features: FourierMap
    logged: Float[np.ndarray, "transition feature"]
    after: Float[np.ndarray, "transition feature"]  # zero where the episode terminated
    start: Float[np.ndarray, "episode feature"]

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array) -> "StateFeatures":
        data = problem.dataset
        features = FourierMap.draw(data.observation, num_features, generator_from(key))
        logged = features(data.observation).astype(np.float64)
        after = np.where(data.terminated[:, None], 0.0, features(data.next_observation).astype(np.float64))
        return StateFeatures(features, logged, after, logged[data.starts])

    def __call__(self, observations: Float[np.ndarray, "row observation"]) -> Float[np.ndarray, "row feature"]:
        return self.features(observations).astype(np.float64)

    def penalty(self, ridge: float) -> np.ndarray:
        """λ I, without the constant."""
        return np.diag([0.0] + [ridge] * (self.features.size - 1))
