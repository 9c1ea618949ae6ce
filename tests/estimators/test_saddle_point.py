"""The objective of the DICE family: its saddle point, found exactly on tables, is the known answer for all six."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import SaddlePoint
from average_dice.estimators.ratio.saddle_point import flow_goal, objective, unit_goal
from average_dice.testing.exact_mdps import tiny

NAMES = ("dual_dice", "gen_dice", "gradient_dice", "best_dice", "mwl", "mql")
GAMES = {name: getattr(SaddlePoint, name)().game for name in NAMES}


class Row(eqx.Module):
    """A table: one number for each pair."""

    numbers: jax.Array

    def __call__(self, x):
        return x @ self.numbers


def settings_of(game, discount):
    numbers = {
        "alpha_q": game.alpha_q,
        "alpha_zeta": game.alpha_zeta,
        "alpha_r": game.alpha_r,
        "positive": 0.0,
        "normalises": float(game.normalises),
        "start": 1 - discount,
    }
    return jax.tree.map(jnp.asarray, numbers)


def saddle(game, rows, starts, discount):
    """Q (times 1 − γ), ζ and λ where the gradient vanishes: the objective is quadratic, so one solve finds it."""
    size = rows["x"].shape[1]
    players = {"q": Row(jnp.zeros(size)), "zeta": Row(jnp.zeros(size)), "lam": jnp.zeros(())}
    start, unflatten = jax.flatten_util.ravel_pytree(players)

    def value(flat):
        return objective(unflatten(flat), rows, starts, settings_of(game, discount))

    curvature, slope = np.asarray(jax.hessian(value)(start)), np.asarray(jax.grad(value)(start))
    found = np.linalg.lstsq(curvature, -slope)[0]
    np.testing.assert_allclose(curvature @ found + slope, 0.0, atol=1e-8)
    return unflatten(jnp.asarray(found))


def boyan_chain(discount):
    """GradientDICE's chain: 13 states, every pair once, starts uniform, π(a = 0) = 0.1."""
    pairs = [(state, action) for state in range(13) for action in (0, 1)]
    one_hot = np.eye(26)

    def both(state):
        return one_hot[[2 * state, 2 * state + 1]]

    after = [max(state - action - 1, 0) for state, action in pairs]
    policy = np.array([0.1, 0.9])
    rows = {
        "x": one_hot,
        "after": np.stack([both(state) for state in after]),
        "after_weight": np.tile(policy, (26, 1)),
        "r": np.zeros(26),
        "m": np.full(26, discount),
        "g": np.ones(26),
    }
    starts = {"x": np.stack([both(state) for state in range(13)]), "weight": np.tile(policy, (13, 1))}
    return jax.tree.map(jnp.asarray, (rows, starts))


@pytest.mark.parametrize("name", ["dual_dice", "gen_dice", "gradient_dice", "best_dice", "mwl"])
@pytest.mark.parametrize(
    ("discount", "expected"),
    [
        (0.1, (0.2422, 2.1800, 0.18, 1.62)),
        (0.5, (0.5750, 5.1748, 0.10, 0.90)),
        (0.9, (1.8596, 16.7363, 0.02, 0.18)),
    ],
)
def test_the_published_ratios_of_the_boyan_chain(name, discount, expected):
    with jax.enable_x64(True):
        ratio = np.asarray(saddle(GAMES[name], *boyan_chain(discount), discount)["zeta"].numbers)
    np.testing.assert_allclose(ratio[[0, 1, 24, 25]], expected, atol=6e-5)


def log_of_tiny(goal):
    """Every trajectory of an MDP with termination, as the objective wants it: expectations are exact."""
    mdp = tiny()
    problem = ad.Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)
    data = problem.dataset
    one_hot = np.eye(4)
    pair = 2 * data.observation.argmax(axis=1) + data.action
    after, start = data.next_observation.argmax(axis=1), problem.start_observation.argmax(axis=1)
    both = np.stack([one_hot[:2], one_hot[2:]])
    rows = {
        "x": one_hot[pair],
        "after": both[after],
        "after_weight": mdp.target[after],
        "r": data.reward,
        "m": mdp.discount * ~data.terminated,
        "g": goal(problem),
    }
    return mdp, *jax.tree.map(jnp.asarray, (rows, {"x": both[start], "weight": mdp.target[start]}))


@pytest.mark.parametrize("name", GAMES)
def test_the_exact_ratio_and_values_with_termination_and_a_cut(name):
    with jax.enable_x64(True):
        mdp, rows, starts = log_of_tiny(flow_goal)
        found = saddle(GAMES[name], rows, starts, mdp.discount)
    if name == "mql":
        expected = mdp.reward.copy()
        for _ in range(2_000):
            expected = mdp.reward + mdp.discount * mdp.transition @ (mdp.target * expected).sum(axis=1)
        np.testing.assert_allclose(found["q"].numbers, (1 - mdp.discount) * expected.ravel(), rtol=1e-8)
    else:
        expected = mdp.ratio[:, None] * mdp.target / mdp.behaviour
        np.testing.assert_allclose(found["zeta"].numbers, expected.ravel(), rtol=1e-8)


@pytest.mark.parametrize("name", ["gen_dice", "gradient_dice", "best_dice"])
def test_a_ratio_pulled_to_sum_to_one_is_wrong_where_episodes_terminate(name):
    """The literature's g = 1. With λ in the game there is then no ratio at all that balances: it gives way."""
    with jax.enable_x64(True):
        mdp, rows, starts = log_of_tiny(unit_goal)
        size = rows["x"].shape[1]
        players = {"q": Row(jnp.zeros(size)), "zeta": Row(jnp.zeros(size)), "lam": jnp.zeros(())}
        exact = (mdp.ratio[:, None] * mdp.target / mdp.behaviour).ravel()
        players["zeta"] = Row(jnp.asarray(exact))
        gradient = jax.grad(objective)(players, rows, starts, settings_of(GAMES[name], mdp.discount))
        objection = abs(float(gradient["lam"]))
    assert objection > 0.1  # λ objects to the exact ratio
    assert float(np.mean(np.asarray(rows["x"]) @ exact)) < 0.9


@pytest.mark.parametrize("name", ["gen_dice", "best_dice"])
def test_a_squared_network_has_the_same_saddle(name):
    with jax.enable_x64(True):
        mdp, rows, starts = log_of_tiny(flow_goal)
        found = saddle(GAMES[name], rows, starts, mdp.discount)
        squared = {**found, "zeta": Row(jnp.sqrt(found["zeta"].numbers))}
        settings = settings_of(GAMES[name], mdp.discount) | {"positive": jnp.ones(())}
        gradient = jax.grad(objective)(squared, rows, starts, settings)
    for leaf in jax.tree.leaves(gradient):
        np.testing.assert_allclose(leaf, 0.0, atol=1e-8)


def test_many_seeds_at_once_are_what_each_is_alone():
    problem = tiny().problem(50, seed=0)
    method = replace(SaddlePoint.best_dice(), hidden=(16,), num_steps=50, num_checkpoints=2)
    keys = [jax.random.key(seed) for seed in (0, 1)]
    together = [fit.value for fit in method.fit_seeds(problem, keys=keys)]
    alone = [method.fit(problem, key=key).value for key in keys]
    np.testing.assert_allclose(together, alone, rtol=1e-4)
    assert together[0] != together[1]
