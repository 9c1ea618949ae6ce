"""Fourier features of the states of a log: φ(s), φ(s′) and φ(s₀)."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from average_dice import memory
from average_dice.data import Encoding
from average_dice.features.fourier import FourierMap
from average_dice.problem import Problem
from average_dice.randomness import generator_from, key_name


@dataclass(frozen=True, eq=False)
class LoggedStates:
    """The features on the rows of the log, in float64."""

    encoding: Encoding
    features: FourierMap
    logged: Float[np.ndarray, "transition feature"]
    after: Float[np.ndarray, "transition feature"]  # zero where the episode terminated
    start: Float[np.ndarray, "episode feature"]

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array) -> "LoggedStates":
        """`num_features` random cosines of the states, or fewer if memory is limited; made once for each number."""
        num_inputs = problem.dataset.encoding.encode(problem.start_observation[:1]).shape[1]
        number = memory.features_within(
            num_features, problem.dataset.num_transitions, lambda one: 1 + num_inputs + one, "random features of states"
        )

        def make() -> LoggedStates:
            data, encoding = problem.dataset, problem.dataset.encoding
            inputs, inputs_after = encoding.encode(data.observation), encoding.encode(data.next_observation)
            features = FourierMap.draw(inputs, number, generator_from(key))
            logged = features(inputs).astype(np.float64)
            after = np.where(data.terminated[:, None], 0.0, features(inputs_after).astype(np.float64))
            return LoggedStates(encoding, features, logged, after, logged[data.starts])

        return problem.once((LoggedStates, number, key_name(key)), make, of_reward=False)

    def __call__(self, observations: Float[np.ndarray, "row observation"]) -> Float[np.ndarray, "row feature"]:
        return self.features(self.encoding.encode(observations)).astype(np.float64)

    def penalty(self, ridge: float) -> Float[np.ndarray, "feature feature"]:
        """λ I, without the constant."""
        return np.diag([0.0] + [ridge] * (self.features.size - 1))
