"""The MLP of all trained methods: by default two hidden layers of 256 with ReLU."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Float


class MLP(eqx.Module):
    """x ↦ a number, or `num_outputs` numbers. Unbatched: use `vmap`. All its leaves are arrays, so Adam can train it.

    `output` is applied to the outputs, if there is one.

    Weights are [in, out]: in XLA's CPU code for a gradient step this layout is a third faster than [out, in].
    Weights and biases start uniform in ±1/√in, as in PyTorch.
    """

    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)
    output: Callable[[Array], Array] | None = eqx.field(static=True)
    scalar: bool = eqx.field(static=True)

    def __init__(
        self,
        num_inputs: int,
        hidden: tuple[int, ...] = (256, 256),
        activation: Callable[[Array], Array] = jax.nn.relu,
        num_outputs: int | None = None,
        output: Callable[[Array], Array] | None = None,
        *,
        key: jax.Array,
    ) -> None:
        shapes = list(zip((num_inputs, *hidden), (*hidden, num_outputs or 1), strict=True))
        weight_keys, bias_keys = jax.random.split(key, (2, len(shapes)))
        self.weights = tuple(
            jax.random.uniform(k, (size, out), minval=-(size**-0.5), maxval=size**-0.5)
            for k, (size, out) in zip(weight_keys, shapes, strict=True)
        )
        self.biases = tuple(
            jax.random.uniform(k, (out,), minval=-(size**-0.5), maxval=size**-0.5)
            for k, (size, out) in zip(bias_keys, shapes, strict=True)
        )
        self.activation = activation
        self.output = output
        self.scalar = num_outputs is None

    def __call__(self, x: Float[Array, " input"]) -> Float[Array, "*output"]:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = self.activation(x @ weight + bias)
        outputs = x @ self.weights[-1] + self.biases[-1]
        if self.output is not None:
            outputs = self.output(outputs)
        return outputs[0] if self.scalar else outputs
