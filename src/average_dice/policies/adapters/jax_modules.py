"""Modules of equinox and flax: JAX arrays in; logits, a pair (mean, std), actions or a distribution out."""

from copy import deepcopy
from typing import Any

from average_dice.data import LoggedDataset
from average_dice.policies.adapters.callables import from_call
from average_dice.policies.base import Observations, Policy


def from_equinox(module: Any, data: LoggedDataset | None, *, output: str | None = None) -> Policy:
    """A module of equinox, which takes one observation; it is mapped over the rows."""
    import equinox
    import jax
    import jax.numpy as jnp

    fixed = equinox.nn.inference_mode(module)

    @jax.jit
    def rows(observations: Any) -> Any:
        return jax.vmap(lambda observation: fixed(observation))(observations)

    def call(observations: Observations) -> Any:
        return rows(jnp.asarray(observations, jnp.float32))

    return from_call(call, data, type(module).__name__, output=output, logits=True)


def from_flax(module: Any, data: LoggedDataset | None, *, output: str | None = None) -> Policy:
    """A module of flax, which takes all rows: one of flax.nnx, or one of flax.linen bound to its parameters.

    Of a module of flax.nnx a copy is used, in evaluation mode.
    """
    import jax.numpy as jnp

    fixed = module
    if hasattr(module, "eval"):
        fixed = deepcopy(module)
        fixed.eval()

    def call(observations: Observations) -> Any:
        return fixed(jnp.asarray(observations, jnp.float32))

    return from_call(call, data, type(module).__name__, output=output, logits=True)
