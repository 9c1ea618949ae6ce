"""Regression by an MLP as in the authors' released code, which differs from the paper's loss.

    E[(f(x) − y)²] + λ₁ Σ|θ| + λ₂ E[η (a f(x) − b)]        η = the minibatch's mean of a f(x) − b, without gradient

f has a ReLU output, so it is never negative. Once all outputs are 0, only the penalty has a gradient.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.models.mlp import MLP
from average_dice.models.mlp_regression import Memory, MLPRegression
from average_dice.models.regression import Regression, RowValues
from average_dice.models.training import UpdateStep


@dataclass(frozen=True)
class ReleasedRegression(MLPRegression):
    """The settings are the paper's; λ₁ is `ridge`, λ₂ is `mass_weight`, and `dual_rate` is not used."""

    @property
    def update_step(self) -> UpdateStep:
        return released_update_step

    def network(self, num_inputs: int, key: jax.Array) -> MLP:
        return MLP(num_inputs, self.hidden, output=jax.nn.relu, key=key)

    def penalties(self, networks: MLP) -> Float[Array, " copy"]:
        """Σ|θ| of each network."""
        return jax.vmap(_absolute_sum)(networks)

    def loss(self, regression: Regression, f: RowValues) -> float:
        missing = np.mean(regression.mass * f) - regression.mass_goal
        return float(np.mean((f - regression.targets) ** 2) + self.mass_weight * missing**2)


def released_update_step(
    network: MLP,
    memory: Memory,
    minibatches: tuple[dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[MLP, Memory]:
    """The gradient of the loss. The dual variable is computed anew from each minibatch."""
    (minibatch,) = minibatches

    def loss(network: MLP) -> Float[Array, ""]:
        f = memory["offset"] + jax.vmap(network)(minibatch["x"])
        missing = jnp.mean(minibatch["a"] * f) - memory["goal"]
        dual = jax.lax.stop_gradient(missing)
        error = jnp.mean((f - minibatch["y"]) ** 2)
        return error + settings["ridge"] * _absolute_sum(network) + settings["mass_weight"] * dual * missing

    return jax.grad(loss)(network), memory


def _absolute_sum(network: MLP) -> Float[Array, ""]:
    return jnp.sum(jnp.stack([jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(network)]))
