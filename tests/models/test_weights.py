"""Weights of rows in the regression: a row of weight two is a row that stands twice, for every model."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from average_dice.features.fourier import FourierMap
from average_dice.models import FourierFeatures, IncrementalLinear, Linear, MLPRegression, Regression, Table

KEYS = [jax.random.key(0)]
CLOSED = {
    "fourier": FourierFeatures(10, ridges=(1e-3,)),
    "linear": Linear(mass_weight=0.0),
    "table": Table(),
}


def regression():
    generator = np.random.default_rng(0)
    inputs = generator.integers(0, 3, (60, 2)).astype(float)
    targets = inputs[:, 0] ** 2 + generator.normal(size=60)
    return Regression(inputs, targets, np.ones(60), 1.0, np.arange(60) // 6)


OFTEN = np.where(np.arange(60) % 6 < 2, 2, 1)


def copied(problem):
    rows = np.repeat(np.arange(60), OFTEN)
    return Regression(problem.inputs[rows], problem.targets[rows], np.ones(len(rows)), 1.0, problem.episode[rows])


def predictions(model, problem, at):
    return model.fit(problem, key=KEYS[0], value_of=lambda f: 0.0).predict(at)


@pytest.mark.parametrize("name", CLOSED)
def test_weights_are_copies(name, monkeypatch):
    draw, problem = FourierMap.draw, regression()
    monkeypatch.setattr(
        FourierMap,
        "draw",
        staticmethod(lambda given, num, generator: draw(problem.inputs, num, np.random.default_rng(1))),
    )
    weighted = replace(problem, weights=7.0 * OFTEN)  # up to a common factor
    model = CLOSED[name]
    found = predictions(model, weighted, problem.inputs)
    np.testing.assert_allclose(found, predictions(model, copied(problem), problem.inputs), rtol=1e-6)
    assert np.abs(found - predictions(model, problem, problem.inputs)).max() > 0.01


def test_updates_converge_to_the_weighted_closed_form():
    weighted = replace(regression(), weights=OFTEN.astype(float))
    solved = predictions(Linear(ridge=0.01), weighted, np.eye(2))
    learnt = predictions(IncrementalLinear(ridge=0.01, num_passes=3_000), weighted, np.eye(2))
    np.testing.assert_allclose(learnt, solved, atol=0.02)


def test_a_network_counts_rows_by_their_weight():
    """Two targets at one input, one of them with three times the weight: the mean is three quarters of the way."""
    targets = np.tile([0.0, 1.0], 50)
    problem = Regression(np.zeros((100, 1)), targets, np.ones(100), 1.0, np.arange(100), weights=1 + 2 * targets)
    network = MLPRegression((8,), ridge=0.0, mass_weight=0.0, learning_rate=5e-3, batch_size=100, num_steps=1_500)
    fitted = network.fit(problem, key=KEYS[0], value_of=lambda f: 0.0)
    assert fitted.rows[0] == pytest.approx(0.75, abs=0.03)
    assert fitted.history.loss[-1] == pytest.approx(
        0.5 * np.mean((1 + 2 * targets) / 2 * (targets - 0.75) ** 2), abs=0.01
    )
