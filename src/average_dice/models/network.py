"""The network: f is a perceptron, trained on the paper's loss with its dual variable.

    ½ E[(f(x) − y)²] + (λ₁/2) ‖θ‖² + λ₂ ( max_η E[η (a f(x) − b)] − η²/2 )

The square of a mean cannot be estimated from a minibatch without bias, its Fenchel dual can: θ descends by Adam, and η
ascends, by plain steps that take it a fixed part of the way to its maximum E[a f] − b. (By Adam, η would move at a pace
of its own, whatever its gradient; the two then chase each other, and at λ₂ = 5 the mass swings without settling.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .curves import Curves
from .early_stopping import Best, left_out
from .perceptron import Perceptron
from .regression import Fitted, Inputs, Regression, Rows
from .scaling import mean_and_std
from .training import Schedule, begin, train

# Larger targets are divided by a common unit first: their squares must fit into float32.
LARGEST_TARGET = 1e12


@dataclass(frozen=True)
class NetworkRegression:
    """The paper's setting by default; λ₁ is `ridge`, λ₂ is `mass_weight`.

    `standardise` puts the inputs on one scale first; the paper takes them raw. With `held_out`, that share of the
    episodes is left out, what is kept is the network with the least squared error on them, and training stops after
    `patience` records without progress. The network then learns what differs from the mean target: where inputs say
    nothing, what is kept is the mean, and not the 0 that a network begins with.
    """

    hidden: tuple[int, ...] = (256, 256)
    ridge: float = 0.001
    mass_weight: float = 0.5
    learning_rate: float = 5e-4
    dual_rate: float = 0.1
    batch_size: int = 512
    num_steps: int = 10_000
    standardise: bool = False
    num_records: int = 50
    held_out: float = 0.0
    patience: int = 10

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]:
        num_inputs = regression.inputs.shape[1]
        mean, std = mean_and_std(regression.inputs) if self.standardise else (np.zeros(1), np.ones(1))
        inputs = _single((regression.inputs - mean) / std)
        unit = max(1.0, float(np.abs(regression.targets).max()) / LARGEST_TARGET)
        out = left_out(regression.episode, self.held_out)
        columns = {"x": inputs, "y": _single(regression.targets / unit), "a": _single(regression.mass)}
        rows = {name: column[~out] for name, column in columns.items()}
        settings = {
            "ridge": self.ridge,
            "mass_weight": self.mass_weight,
            "mass_goal": regression.mass_goal / unit,
            "dual_rate": self.dual_rate,
            "offset": float(rows["y"].mean()) if out.any() else 0.0,
        }
        networks, batch_keys = begin(lambda key: Perceptron(num_inputs, self.hidden, key=key), keys)
        curves = Curves()
        best = Best(self.patience)

        def record(step: int, networks: Perceptron, dual: Array) -> bool:
            outputs = unit * (settings["offset"] + np.asarray(_outputs(networks, inputs), np.float64))
            penalties = 0.5 * self.ridge * np.asarray(jax.vmap(_square_norm)(networks), np.float64)
            losses = [self._loss(regression, f) for f in outputs] + penalties
            curves.add(step, np.array([value_of(f) for f in outputs]), losses)
            if not out.any():
                return False
            return best.offer(networks, np.mean((outputs[:, out] - regression.targets[out]) ** 2, axis=1))

        networks, dual = train(
            downhill,
            networks,
            jnp.zeros(len(keys)),
            (rows,),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, self.num_records),
            keys=batch_keys,
            record=record,
        )
        if out.any():
            networks = best.parameters
            record(curves.forget_last(), networks, dual)  # the curves end at what is kept

        def fitted(seed: int) -> Fitted:
            network: Perceptron = jax.tree.map(lambda leaf: leaf[seed : seed + 1], networks)

            def predict(inputs: Inputs) -> Rows:
                outputs = _outputs(network, _single((inputs - mean) / std))[0]
                return unit * (settings["offset"] + np.asarray(outputs, np.float64))

            return Fitted(outputs[seed], predict, curves.of(seed))

        outputs = unit * (settings["offset"] + np.asarray(_outputs(networks, inputs), np.float64))
        return [fitted(seed) for seed in range(len(keys))]

    def _loss(self, regression: Regression, f: Rows) -> float:
        """The loss on the whole log with the dual variable at its maximum, but for the penalty on θ."""
        missing = np.mean(regression.mass * f) - regression.mass_goal
        return float(0.5 * np.mean((f - regression.targets) ** 2) + 0.5 * self.mass_weight * missing**2)


def downhill(
    network: Perceptron,
    dual: Float[Array, ""],
    minibatches: tuple[dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[Perceptron, Float[Array, ""]]:
    """The gradient of the loss for the network, and the dual variable after its step uphill."""
    (minibatch,) = minibatches

    def loss(network: Perceptron) -> tuple[Float[Array, ""], Float[Array, ""]]:
        f = settings["offset"] + jax.vmap(network)(minibatch["x"])
        error = 0.5 * jnp.mean((f - minibatch["y"]) ** 2)
        penalty = 0.5 * settings["ridge"] * _square_norm(network)
        missing = jnp.mean(minibatch["a"] * f) - settings["mass_goal"]
        return error + penalty + settings["mass_weight"] * dual * missing, missing

    gradient, missing = jax.grad(loss, has_aux=True)(network)
    return gradient, dual + settings["dual_rate"] * (missing - dual)


@jax.jit
def _outputs(networks: Perceptron, inputs: Float[Array, "row input"]) -> Float[Array, "seed row"]:
    return jax.vmap(lambda network: jax.vmap(network)(inputs))(networks)


def _square_norm(network: Perceptron) -> Float[Array, ""]:
    return jnp.sum(jnp.stack([jnp.sum(leaf**2) for leaf in jax.tree.leaves(network)]))


def _single(values: np.ndarray) -> Array:
    return jnp.asarray(values, jnp.float32)
