"""The network that every trained method uses: two hidden layers of 256 with ReLU unless told otherwise."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
from jaxtyping import Array, Float


class Perceptron(eqx.Module):
    """x ↦ a number. Unbatched: `vmap` it. All its leaves are arrays, so it trains as it is."""

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __init__(
        self,
        num_inputs: int,
        hidden: tuple[int, ...] = (256, 256),
        activation: Callable[[Array], Array] = jax.nn.relu,
        *,
        key: jax.Array,
    ) -> None:
        outputs: tuple[int | Literal["scalar"], ...] = (*hidden, "scalar")
        keys = jax.random.split(key, len(outputs))
        self.layers = tuple(
            eqx.nn.Linear(size, output, key=layer_key)
            for size, output, layer_key in zip((num_inputs, *hidden), outputs, keys, strict=True)
        )
        self.activation = activation

    def __call__(self, x: Float[Array, " input"]) -> Float[Array, ""]:
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)
