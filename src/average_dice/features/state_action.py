"""Features of a state and an action, for discrete and for continuous actions."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from average_dice.features.action_codes import codes_of_features, contrasts
from average_dice.features.fourier import FourierMap


def join_action(
    inputs: Float[np.ndarray, "row input"], actions: np.ndarray, num_actions: int | None
) -> Float[np.ndarray, "row joined"]:
    """x(s, a): the inputs of the state with the action beside them, a discrete one as a one-hot vector."""
    beside = actions if num_actions is None else np.eye(num_actions)[actions]
    return np.concatenate([inputs, beside], axis=1)


# The prior correlation of the values of two actions, unless it is chosen from the log.
LIKENESS = 0.9

# Deviations of all actions together have at most this many times the features of the state. With 2, they have all
# features for up to three actions, and no cost grows with more of them but that of E_π.
DEVIATIONS = 2


@dataclass(frozen=True, eq=False)
class StateActionFeatures:
    """φ(s, a). Continuous actions: Fourier features of (s, a). Discrete ones: a part that all share, and deviations.

        φ(s, a) = (φ(s), ψ(s) ⊗ C[a])

    φ(s) are the Fourier features of the state, C[a] the codes of the actions, and ψ(s) the constant and the first
    principal components of φ(s) over the log: all of them for up to three actions, fewer for more, so that the number
    of features does not grow with the number of actions.
    Both parts are scaled so that the kernel is k(s, s′) κ(a, a′) with κ = 1 for the same action and `likeness` for
    others, from 0 (nothing in common) to 1. With a penalty on all but the constant, an action that is not in the log
    gets the value of its state. If the actions have features, κ depends on their distance instead, with the same mean
    over κ(a, a), and an action that is not in the log gets the value of similar ones.
    """

    states: FourierMap
    codes: Float[np.ndarray, "action contrast"] | None  # None: continuous
    components: Float[np.ndarray, "feature component"] | None = None  # None: all features themselves
    likeness: float = LIKENESS

    @staticmethod
    def draw(
        inputs: Float[np.ndarray, "row input"],
        actions: np.ndarray,
        num_actions: int | None,
        num_features: int,
        generator: np.random.Generator,
        action_features: Float[np.ndarray, "choice feature"] | None = None,
    ) -> "StateActionFeatures":
        """`num_features` random cosines, on the scale and with the bandwidth of these rows."""
        if num_actions is None:
            joined = join_action(inputs, actions, None)
            return StateActionFeatures(FourierMap.draw(joined, num_features, generator), None)
        states = FourierMap.draw(inputs, num_features, generator)
        most = DEVIATIONS * states.size
        codes = contrasts(num_actions) if action_features is None else codes_of_features(action_features, most)
        if codes.shape[1] > most:  # random directions of the differences
            codes = codes @ generator.standard_normal((codes.shape[1], most)) / np.sqrt(most)
        number = max(1, most // max(codes.shape[1], 1))
        components = None if number >= states.size else principal_components(states, inputs, number)
        return StateActionFeatures(states, codes, components)

    @staticmethod
    def size_of(num_inputs: int, num_actions: int | None, num_features: int) -> int:
        """The number of features that `draw` gives. Inputs: the observation, with a continuous action beside it."""
        of_state = 1 + num_inputs + num_features
        if num_actions is None:
            return of_state
        num_codes = min(num_actions - 1, DEVIATIONS * of_state)
        return of_state + num_codes * max(1, min(of_state, DEVIATIONS * of_state // max(num_codes, 1)))

    @property
    def free(self) -> np.ndarray:
        """Which features are not penalised: the constant that all actions share."""
        return np.arange(self.size) == 0

    @property
    def size(self) -> int:
        """The number of features."""
        if self.codes is None:
            return self.states.size
        number = self.states.size if self.components is None else self.components.shape[1]
        return self.states.size + number * self.codes.shape[1]

    def __call__(self, inputs: Float[np.ndarray, "row input"], actions: np.ndarray) -> np.ndarray:
        if self.codes is None:
            return self.states(join_action(inputs, actions, None)).astype(np.float64)
        return self._with_codes(inputs, self.codes[actions])

    def expected(
        self, inputs: Float[np.ndarray, "row input"], actions: np.ndarray, weights: np.ndarray
    ) -> Float[np.ndarray, "row feature"]:
        """Σ weight · φ(s, action) over the actions of each row, in float64."""
        rows, number = weights.shape
        if self.codes is None:
            every = join_action(np.repeat(inputs, number, axis=0), actions.reshape(rows * number, -1), None)
            phi = self.states(every).reshape(rows, number, -1)
            return np.matmul(weights[:, None].astype(np.float32), phi)[:, 0].astype(np.float64)
        return self._with_codes(inputs, by_action(actions, weights, len(self.codes)) @ self.codes)

    def _with_codes(self, inputs: np.ndarray, code: Float[np.ndarray, "row contrast"]) -> np.ndarray:
        phi = self.states(inputs).astype(np.float64)
        psi = phi if self.components is None else phi @ self.components
        shared, own = scales(len(self.codes), self.likeness) if self.codes is not None else (1.0, 1.0)
        num_shared, num_codes, num_own = phi.shape[1], code.shape[1], psi.shape[1]
        found = np.empty((len(phi), num_shared + num_codes * num_own))
        np.multiply(shared, phi, out=found[:, :num_shared])
        deviations = found[:, num_shared:].reshape(len(phi), num_codes, num_own)  # a view: nothing is copied
        np.multiply((own * code)[:, :, None], psi[:, None, :], out=deviations)
        return found


def by_action(
    actions: Int[np.ndarray, "row draw"], weights: Float[np.ndarray, "row draw"], num_actions: int
) -> Float[np.ndarray, "row action"]:
    """The weight of each action in each row; `weights` themselves if every row has all actions in order."""
    rows = len(weights)
    if weights.shape[1] == num_actions and (actions == np.arange(num_actions)).all():
        return np.asarray(weights, np.float64)
    place = (np.arange(rows)[:, None] * num_actions + actions).ravel()
    return np.bincount(place, weights.ravel(), rows * num_actions).reshape(rows, num_actions)


def scales(num_actions: int, likeness: float) -> tuple[float, float]:
    """The factors of the shared features and of the deviations: κ(a, a) = 1 and κ(a, b) = likeness."""
    return float(np.sqrt((1 - likeness) / num_actions + likeness)), float(np.sqrt(1 - likeness))


def principal_components(
    states: FourierMap, inputs: Float[np.ndarray, "row input"], number: int
) -> Float[np.ndarray, "feature component"]:
    """The constant, and the directions of the other features that vary most over these rows.

    The constant has the prior variance that constants have in the kernel: its mean ‖φ̄‖² over pairs of rows.
    """
    phi = states(inputs).astype(np.float64)
    mean = phi.mean(axis=0)
    phi = (phi - mean)[:, 1:]
    _, directions = np.linalg.eigh(phi.T @ phi)
    found = np.zeros((states.size, number))
    found[0, 0] = np.linalg.norm(mean)
    found[1:, 1:] = directions[:, ::-1][:, : number - 1]
    return found
