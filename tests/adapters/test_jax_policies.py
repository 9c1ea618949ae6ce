"""Modules of flax and equinox, and distributions with JAX's names: as the module itself says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from average_dice.policies import ConditionalGaussianPolicy, DensityPolicy, DeterministicPolicy, as_policy
from named_log import continuous_log, named_log, probabilities

eqx = pytest.importorskip("equinox")

DISCRETE = named_log()
CONTINUOUS = continuous_log(width=2)


def test_an_equinox_module_is_mapped_over_rows():
    module = eqx.nn.MLP(2, 2, 8, 1, key=jax.random.key(0))
    logits = np.array([module(jnp.asarray(row, jnp.float32)) for row in DISCRETE.observation], np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(as_policy(module, DISCRETE), DISCRETE.observation), expected, atol=1e-6)


def test_a_pair_of_an_equinox_module():
    class Gaussian(eqx.Module):
        layer: eqx.nn.Linear

        def __call__(self, observation):
            mean, raw = jnp.split(self.layer(observation), 2)
            return mean, jax.nn.softplus(raw)

    module = Gaussian(eqx.nn.Linear(3, 4, key=jax.random.key(0)))
    mean, std = (np.asarray(one, np.float64) for one in jax.vmap(module)(jnp.asarray(CONTINUOUS.observation)))
    policy = as_policy(module, CONTINUOUS)
    assert isinstance(policy, ConditionalGaussianPolicy)
    found = policy.log_prob(CONTINUOUS.observation, CONTINUOUS.action)
    np.testing.assert_allclose(found, stats.norm.logpdf(CONTINUOUS.action, mean, std).sum(axis=1), atol=1e-4)


def test_flax_modules():
    nnx = pytest.importorskip("flax.nnx")
    linen = pytest.importorskip("flax.linen")
    rows = jnp.asarray(DISCRETE.observation, jnp.float32) / 50
    log = named_log(observation=np.asarray(rows, float), next_observation=np.asarray(rows, float)[np.r_[1:120, 0]])
    module = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    expected = np.asarray(jax.nn.softmax(module(rows)))
    np.testing.assert_allclose(probabilities(as_policy(module, log), log.observation), expected, atol=1e-6)
    dropping = nnx.Sequential(module, nnx.Dropout(0.5, rngs=nnx.Rngs(1)))
    np.testing.assert_allclose(probabilities(as_policy(dropping, log), log.observation), expected, atol=1e-6)
    assert not dropping.layers[1].deterministic  # the user's own module trains as before
    dense = linen.Dense(3)
    bound = dense.bind(dense.init(jax.random.key(0), rows))
    expected = np.asarray(jax.nn.softmax(bound(rows)))
    np.testing.assert_allclose(probabilities(as_policy(bound, log), log.observation), expected, atol=1e-6)
    actions = as_policy(nnx.Linear(3, 2, rngs=nnx.Rngs(0)), CONTINUOUS)
    assert isinstance(actions, DeterministicPolicy)


class Laplace:
    """A distribution with the names that distrax uses."""

    def __init__(self, centre):
        self.centre = centre

    def log_prob(self, value):
        return -jnp.abs(value - self.centre).sum(axis=-1) - self.centre.shape[-1] * jnp.log(2.0)

    def sample(self, *, seed, sample_shape):
        return self.centre + jax.random.laplace(seed, (*sample_shape, *self.centre.shape))


def test_a_distribution_with_the_names_of_jax():
    policy = as_policy(lambda rows: Laplace(jnp.asarray(rows[:, :2], jnp.float32)), CONTINUOUS)
    assert isinstance(policy, DensityPolicy)
    expected = stats.laplace.logpdf(CONTINUOUS.action, CONTINUOUS.observation[:, :2]).sum(axis=1)
    np.testing.assert_allclose(policy.log_prob(CONTINUOUS.observation, CONTINUOUS.action), expected, atol=1e-5)
    actions, weights = policy.weighted_actions(
        CONTINUOUS.observation, num_draws=3_000, generator=np.random.default_rng(0)
    )
    np.testing.assert_allclose(
        np.einsum("rd,rda->ra", weights, actions), CONTINUOUS.observation[:, :2], atol=5 * np.sqrt(2 / 3_000)
    )
