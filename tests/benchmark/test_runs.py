"""One unit: its rows are those that the library itself gives on the same log."""

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.benchmark.collection import collect
from average_dice.benchmark.experiments import Main, Tuning
from average_dice.benchmark.rollouts import fastest_envs
from average_dice.benchmark.runs import make, run, true_value
from average_dice.benchmark.targets import target_policy
from average_dice.benchmark.tasks import find_task
from average_dice.benchmark.units import Method
from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY, DeepTD
from average_dice.models import NetworkRegression, Regression
from average_dice.models.held_out import HeldOut


def test_rows_are_what_the_library_says_of_the_same_log():
    plan = Main(("CartPole-v1",), ("wpdis", "mwl", "td"), 1, 1, 2, 2, {"td": 6})
    closed, trained = plan.units("main")
    log = collect(
        find_task("CartPole-v1"),
        target_policy("CartPole-v1"),
        num_transitions=4000,
        max_steps=100,
        noise=0.3,
        seed=0,
        make_envs=fastest_envs(),
    )
    problem = ad.Problem(log, target_policy("CartPole-v1"), 0.95)
    (row,) = run(closed)  # mwl trains and has no steps: left out
    assert row["value"] == REGISTRY["wpdis"].make().fit(problem, key=jax.random.key(0)).value
    assert (row["truth"], row["truth_standard_error"]) == true_value("CartPole-v1", 0.95)
    rows = run(trained)
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["value"] != rows[1]["value"]
    keys = [jax.random.fold_in(jax.random.key(seed), 0) for seed in (0, 1)]
    fits = DeepTD(num_steps=6, num_records=2).fit_many(problem, keys=keys)
    assert [row["value"] for row in rows] == [fit.value for fit in fits]
    assert rows[0]["curve_step"] == [0, 3, 6]
    assert rows[0]["curve_value"] == fits[0].history.value.tolist()


def test_a_method_that_does_not_apply_is_a_row_with_the_reason():
    plan = Tuning(("CartPole-v1",), 1, 1, 2, (0.0,), (0.5,), (1e30,))
    (row,) = run(next(iter(plan.units("tuning"))))
    assert row.get("value") is None
    assert "not applicable, because" in row["notes"]


def test_the_training_length_and_options_reach_the_method():
    assert make(Method("sr-dice", 100, 3)).encoder_steps == 30
    assert make(Method("best-dice", 100, 3)).num_steps == 100
    assert make(Method("average-dice-neural", 100, 3)).model.num_steps == 100
    options = {"ridge": 0.1, "mass_weight": 2.0, "learning_rate": 1e-3, "held_out": 0.25}
    found = make(Method("average-dice-paper", 100, 3, options)).model
    assert found.share == 0.25
    assert (found.model.ridge, found.model.mass_weight, found.model.learning_rate) == (0.1, 2.0, 1e-3)
    with pytest.raises(SettingError, match="no options"):
        make(Method("td", 100, 3, {"ridge": 0.1}))


def test_no_truth_at_that_discount_is_an_error():
    with pytest.raises(SettingError, match="no true value"):
        true_value("CartPole-v1", 0.5)


def test_a_held_out_loss_is_that_of_episodes_never_trained_on():
    """Targets of episodes held out are noise of a known size around what the others teach."""
    generator = np.random.default_rng(0)
    episode = np.repeat(np.arange(100), 10)
    inputs = generator.normal(size=(1000, 1))
    held_out = episode % 5 == 0
    targets = np.where(held_out, 1.0 + generator.choice([-2.0, 2.0], 1000), 1.0)
    regression = Regression(inputs, targets, np.ones(1000), 1.0, episode)
    model = NetworkRegression(
        hidden=(16,), ridge=0.0, mass_weight=0.0, learning_rate=1e-2, num_steps=500, num_records=1
    )
    (fitted,) = HeldOut(model).fit(regression, keys=[jax.random.key(0)], value_of=np.mean)
    assert fitted.diagnostics["held_out_loss"] == pytest.approx(2.0, rel=0.1)
    assert fitted.rows.shape == (1000,)
    np.testing.assert_allclose(fitted.rows, 1.0, atol=0.1)
