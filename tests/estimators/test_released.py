"""Average-DICE as the authors released it: its label, its loss, its scale and its collection of logs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import average_dice as ad
from average_dice.experiments.jobs import Setting
from average_dice.labels import reversed_products
from average_dice.models import ReleasedRegression
from average_dice.models.mlp import MLP
from average_dice.models.released_regression import released_update_step
from average_dice.tasks import TASKS, collect, fastest_envs, target_policy
from average_dice.testing.exact_mdps import early_termination

KEY = jax.random.key(0)


def test_the_label_is_the_reversed_product_shifted_by_one_step():
    problem = early_termination().problem(20, seed=0)
    data, found = problem.dataset, reversed_products(problem)
    for start, length in zip(data.starts, data.lengths, strict=True):
        log_ratios = problem.log_ratio[start : start + length]
        expected = [0.0, *(log_ratios[step - 1 :].sum() for step in range(1, length))]
        np.testing.assert_allclose(found[start : start + length], expected, atol=1e-12)


def test_the_gradient_is_that_of_the_released_loss():
    """E(f − y)² + λ₁ Σ|θ| + (λ₂/2) (E[a f] − 1)² has it, too: η is the derivative of its half square."""
    keys = jax.random.split(KEY, 3)
    network = ReleasedRegression(hidden=(5,)).network(2, keys[0])
    x, y = jax.random.normal(keys[1], (40, 2)), jnp.abs(jax.random.normal(keys[2], (40,)))
    batch = {"x": x, "y": y, "a": jnp.full(40, 4.0)}
    memory = {"dual": jnp.zeros(()), "goal": jnp.ones(()), "offset": jnp.zeros(())}
    settings = {"ridge": jnp.array(0.01), "mass_weight": jnp.array(2.0), "dual_rate": jnp.array(0.1)}
    found, after = released_update_step(network, memory, (batch,), settings, KEY)

    def loss(network: MLP) -> jax.Array:
        f = jnp.maximum(jax.vmap(replaced_output(network))(x), 0)
        size = sum(jnp.abs(leaf).sum() for leaf in jax.tree.leaves(network))
        return jnp.mean((f - y) ** 2) + 0.01 * size + jnp.square(jnp.mean(4 * f) - 1)

    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(jax.grad(loss)(network)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert after is memory


def replaced_output(network: MLP):
    """The network without its ReLU output."""
    weights, biases = network.weights, network.biases
    return lambda x: (jax.nn.relu(x @ weights[0] + biases[0]) @ weights[1] + biases[1])[0]


def test_the_ratio_is_never_negative_and_its_scale_is_the_longest_episode():
    problem = early_termination().problem(60, seed=0)
    method = replace(ad.AverageDICE.released(), model=ReleasedRegression(hidden=(8,), num_steps=30, num_checkpoints=1))
    fit = method.fit(problem, key=KEY)
    data = problem.dataset
    assert problem.is_truncated or len(set(data.lengths)) > 1
    ratio = fit.ratio(data.observation)
    assert (ratio >= 0).all()
    assert fit.value == pytest.approx(np.mean(ratio * problem.ratio * data.reward), rel=1e-5)
    regression = method.regression_of(problem)
    np.testing.assert_allclose(regression.row_scale, data.lengths.max() * (1 - problem.discount))


def test_the_released_collection_throws_short_episodes_away():
    setting = Setting.as_released(TASKS["Hopper-v5"])
    assert (setting.noise, setting.only_full) == (4.0, True)  # the variance, with the standard deviation doubled
    assert Setting.as_released(TASKS["CartPole-v1"]).noise == 0.3
    task = TASKS["CartPole-v1"]
    policy, envs = target_policy(task.name), fastest_envs()
    sizes = {"num_transitions": 600, "max_steps": 60, "noise": 0.9, "seed": 0, "make_envs": envs}
    full = collect(task, policy, **sizes, only_full=True)
    every = collect(task, policy, **sizes)
    assert set(full.lengths.tolist()) == {60}
    assert full.num_transitions == 600
    assert every.lengths.min() < 60, "otherwise this test shows nothing"
    survivors = every.select_episodes(np.flatnonzero(every.lengths == 60))
    number = survivors.num_episodes
    assert 0 < number < full.num_episodes
    np.testing.assert_array_equal(full.reward[: 60 * number], survivors.reward[: 60 * number])
    assert full.metadata["only_full"] is True
    assert "only_full" not in every.metadata
