"""Randomness: every random number follows from a JAX key."""

import jax
import numpy as np


def generator_from(key: jax.Array) -> np.random.Generator:
    """A NumPy generator that is a function of the key, for work that does not run inside JAX."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def key_or_seed_0(key: jax.Array | None) -> jax.Array:
    """The key, or that of seed 0."""
    return jax.random.key(0) if key is None else key


def key_name(key: jax.Array) -> bytes:
    """The key in a form that can be compared and hashed."""
    return np.asarray(jax.random.key_data(key)).tobytes()
