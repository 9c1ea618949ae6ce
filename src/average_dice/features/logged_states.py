"""Fourier features of the states of a log: φ(s), φ(s′) and φ(s₀)."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from average_dice import memory
from average_dice.features.fourier import FourierMap
from average_dice.problem import Problem
from average_dice.randomness import generator_from, key_name


@dataclass(frozen=True, eq=False)
class LoggedStates:
    """The features on the rows of the log, in float64."""

    features: FourierMap
    logged: Float[np.ndarray, "transition feature"]
    after: Float[np.ndarray, "transition feature"]  # zero where the episode terminated
    start: Float[np.ndarray, "episode feature"]

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array) -> "LoggedStates":
        """`num_features` random cosines of the states, or fewer if memory is limited; made once for each number."""
        num_inputs = problem.dataset.observation.shape[1]
        number = memory.features_within(
            num_features, problem.dataset.num_transitions, lambda one: 1 + num_inputs + one, "random features of states"
        )

        def make() -> LoggedStates:
            data = problem.dataset
            features = FourierMap.draw(data.observation, number, generator_from(key))
            logged = features(data.observation).astype(np.float64)
            after = np.where(data.terminated[:, None], 0.0, features(data.next_observation).astype(np.float64))
            return LoggedStates(features, logged, after, logged[data.starts])

        return problem.once((LoggedStates, number, key_name(key)), make)

    def __call__(self, observations: Float[np.ndarray, "row observation"]) -> Float[np.ndarray, "row feature"]:
        return self.features(observations).astype(np.float64)

    def penalty(self, ridge: float) -> Float[np.ndarray, "feature feature"]:
        """λ I, without the constant."""
        return np.diag([0.0] + [ridge] * (self.features.size - 1))
