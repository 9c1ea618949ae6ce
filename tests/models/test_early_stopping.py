"""Early stopping keeps what was best on episodes left out, seed by seed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from average_dice.models import MLPRegression, Regression
from average_dice.models.early_stopping import Best, left_out


def test_whole_episodes_are_left_out_evenly():
    episode = np.repeat(np.arange(10), 3)
    out = left_out(episode, 0.2)
    assert sorted(set(episode[out])) == [4, 9]
    assert out.sum() == 6
    assert not left_out(episode, 0.0).any()


def test_each_seed_keeps_its_own_best_and_stops_when_none_gets_better():
    best = Best(patience=2)
    looks = [
        ([[1.0], [10.0]], [5.0, 5.0], False),
        ([[2.0], [20.0]], [3.0, 6.0], False),
        ([[3.0], [30.0]], [4.0, 4.0], False),
        ([[4.0], [40.0]], [float("nan"), 4.0], False),  # diverged: not better
        ([[5.0], [50.0]], [3.5, 9.0], True),
    ]
    for parameters, losses, stops in looks:
        assert best.offer({"weight": jnp.array(parameters)}, np.array(losses)) is stops
    np.testing.assert_array_equal(best.parameters["weight"], [[2.0], [30.0]])
    np.testing.assert_array_equal(best.losses, [3.0, 4.0])


def test_a_network_that_would_learn_the_noise_stops_before():
    """Targets are noise around 1: the longer it trains, the further it is from 1."""
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((300, 10))
    targets = 1 + generator.standard_normal(300)
    regression = Regression(inputs, targets, np.ones(300), 1.0, np.repeat(np.arange(30), 10))
    keys = [jax.random.key(seed) for seed in range(2)]
    common = {
        "hidden": (64,),
        "ridge": 0.0,
        "mass_weight": 0.0,
        "num_steps": 1_500,
        "num_checkpoints": 30,
        "learning_rate": 2e-3,
    }
    stopped, longer = (
        MLPRegression(**common, held_out=share).fit_seeds(regression, keys=keys, value_of=np.mean)
        for share in (0.2, 0.0)
    )
    for early, late in zip(stopped, longer, strict=True):
        assert early.history.step[-1] < 1_500
        assert np.mean((early.rows - 1) ** 2) < 0.5 * np.mean((late.rows - 1) ** 2)
        np.testing.assert_allclose(early.predict(inputs), early.rows, rtol=1e-5, atol=1e-6)
        assert early.history.value[-1] == pytest.approx(np.mean(early.rows))  # of what was kept
        assert early.history.value[-1] != pytest.approx(early.history.value[-2], rel=1e-3)  # and not of the last
