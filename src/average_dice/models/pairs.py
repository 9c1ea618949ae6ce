"""Functions of a state and an action: one way to take the pair, whether actions are discrete or continuous."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .fourier import FeatureMap


def joined(
    observations: Float[np.ndarray, "row observation"], actions: np.ndarray, num_actions: int | None
) -> Float[np.ndarray, "row input"]:
    """x(s, a): the observation with the action beside it, a discrete one as a one-hot vector."""
    beside = actions if num_actions is None else np.eye(num_actions)[actions]
    return np.concatenate([observations, beside], axis=1)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """φ(s, a). Discrete: the Fourier features of s, a block of them for each action. Continuous: those of (s, a).

    On states that are one-hot vectors the blocks span every table over states and actions.
    """

    features: FeatureMap
    num_actions: int | None  # None: continuous

    @staticmethod
    def draw(
        observations: Float[np.ndarray, "row observation"],
        actions: np.ndarray,
        num_actions: int | None,
        num_features: int,
        generator: np.random.Generator,
    ) -> "PairFeatures":
        inputs = joined(observations, actions, None) if num_actions is None else observations
        return PairFeatures(FeatureMap.draw(inputs, num_features, generator), num_actions)

    @property
    def free(self) -> np.ndarray:
        """Which features are constants: no penalty is put on them."""
        return np.arange(self.size) % self.features.size == 0

    @property
    def size(self) -> int:
        return self.features.size * (self.num_actions or 1)

    def __call__(self, observations: Float[np.ndarray, "row observation"], actions: np.ndarray) -> np.ndarray:
        return self.expected(observations, actions[:, None], np.ones((len(actions), 1)))

    def expected(
        self, observations: Float[np.ndarray, "row observation"], actions: np.ndarray, weights: np.ndarray
    ) -> Float[np.ndarray, "row feature"]:
        """Σ_draws weight · φ(s, action) for each row, in float64."""
        rows, draws = weights.shape
        if self.num_actions is None:
            every = joined(np.repeat(observations, draws, axis=0), actions.reshape(rows * draws, -1), None)
            phi = self.features(every).reshape(rows, draws, -1)
            return np.matmul(weights[:, None].astype(np.float32), phi)[:, 0].astype(np.float64)
        phi = self.features(observations).astype(np.float64)
        blocks = np.zeros((rows, self.num_actions, phi.shape[1]))
        for draw in range(draws):
            blocks[np.arange(rows), actions[:, draw]] += weights[:, draw, None] * phi
        return blocks.reshape(rows, -1)
