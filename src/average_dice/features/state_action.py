"""Features of a state and an action, for discrete and for continuous actions."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.features.fourier import FourierMap


def join_action(
    observations: Float[np.ndarray, "row observation"], actions: np.ndarray, num_actions: int | None
) -> Float[np.ndarray, "row input"]:
    """x(s, a): the observation with the action beside it, a discrete one as a one-hot vector."""
    beside = actions if num_actions is None else np.eye(num_actions)[actions]
    return np.concatenate([observations, beside], axis=1)


# The prior correlation of the values of two actions, from 0 (nothing in common) to 1: the best of four on the tasks
# that the recommended estimator was developed on (docs/recommended.md).
LIKENESS = 0.9


def action_codes(num_actions: int, likeness: float = LIKENESS) -> Float[np.ndarray, "action code"]:
    """C with C Cᵀ = κ, κ(a, a) = 1 and κ(a, b) = likeness: the first column is the same for all actions.

    Features φ(s) ⊗ C[a] have the kernel k(s, s′) κ(a, a′): a part that actions share, and the deviation of each action.
    """
    contrasts = np.zeros((num_actions, num_actions - 1))
    for column in range(num_actions - 1):
        contrasts[: column + 1, column] = 1.0
        contrasts[column + 1, column] = -(column + 1.0)
    contrasts /= np.linalg.norm(contrasts, axis=0)
    shared = np.full((num_actions, 1), np.sqrt((1 - likeness) / num_actions + likeness))
    return np.hstack([shared, np.sqrt(1 - likeness) * contrasts])


@dataclass(frozen=True, eq=False)
class StateActionFeatures:
    """φ(s, a). Discrete: the Fourier features of s times the code of a. Continuous: the Fourier features of (s, a).

    If states are one-hot vectors, the discrete features span every table over states and actions. With a penalty on all
    but the shared constant, an action that is not in the log gets the value of its state.
    """

    states: FourierMap
    codes: Float[np.ndarray, "action code"] | None  # None: continuous

    @staticmethod
    def draw(
        observations: Float[np.ndarray, "row observation"],
        actions: np.ndarray,
        num_actions: int | None,
        num_features: int,
        generator: np.random.Generator,
    ) -> "StateActionFeatures":
        """`num_features` random cosines, on the scale and with the bandwidth of these rows."""
        inputs = join_action(observations, actions, None) if num_actions is None else observations
        codes = None if num_actions is None else action_codes(num_actions)
        return StateActionFeatures(FourierMap.draw(inputs, num_features, generator), codes)

    @property
    def free(self) -> np.ndarray:
        """Which features are not penalised: the constant that all actions share."""
        return np.arange(self.size) == 0

    @property
    def size(self) -> int:
        """The number of features."""
        return self.states.size * (1 if self.codes is None else self.codes.shape[1])

    def __call__(self, observations: Float[np.ndarray, "row observation"], actions: np.ndarray) -> np.ndarray:
        return self.expected(observations, actions[:, None], np.ones((len(actions), 1)))

    def expected(
        self, observations: Float[np.ndarray, "row observation"], actions: np.ndarray, weights: np.ndarray
    ) -> Float[np.ndarray, "row feature"]:
        """Σ weight · φ(s, action) over the actions of each row, in float64."""
        rows, number = weights.shape
        if self.codes is None:
            every = join_action(np.repeat(observations, number, axis=0), actions.reshape(rows * number, -1), None)
            phi = self.states(every).reshape(rows, number, -1)
            return np.matmul(weights[:, None].astype(np.float32), phi)[:, 0].astype(np.float64)
        code = np.einsum("rd,rdc->rc", weights, self.codes[actions])
        phi = self.states(observations).astype(np.float64)
        return (code[:, :, None] * phi[:, None, :]).reshape(rows, -1)
