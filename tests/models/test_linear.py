"""The linear model: the closed form is the minimiser and the paper's −G⁻¹g; the updates converge to it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import label_on_state, unit_mass
from average_dice.labels import as_logged, plain
from average_dice.models import IncrementalLinear, Linear, MLPRegression, Regression
from average_dice.testing.exact_mdps import early_termination

KEYS = [jax.random.key(0)]


def regression(num_rows=400, seed=0, mass_goal=1.0):
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(num_rows, 3))
    targets = np.exp(0.5 * inputs[:, 0]) + 0.3 * generator.normal(size=num_rows)
    mass = generator.uniform(0.5, 1.5, size=num_rows)
    return Regression(inputs, targets, mass, mass_goal, np.arange(num_rows) // 10)


def fit(model, problem):
    return model.fit(problem, key=KEYS[0], value_of=lambda f: 0.0)


def coefficients(fitted):
    """θ of a fit on (1, x), read off its predictions."""
    at_zero = fitted.predict(np.zeros((1, 3)))[0]
    return np.append(at_zero, fitted.predict(np.eye(3)) - at_zero)


@pytest.mark.parametrize(("ridge", "mass_weight"), [(0.001, 0.5), (0.0, 0.0), (0.3, 20.0), (0.0, 2.0)])
@pytest.mark.parametrize("mass_goal", [1.0, 0.25])
def test_closed_form_is_the_direct_minimiser(ridge, mass_weight, mass_goal):
    problem = regression(mass_goal=mass_goal)
    phi = np.column_stack([np.ones(400), problem.inputs])
    # The three terms of the loss as the rows of one least-squares problem.
    rows = np.vstack([phi / 20, np.sqrt(ridge) * np.eye(4), np.sqrt(mass_weight) * (problem.mass @ phi / 400)])
    right = np.concatenate([problem.targets / 20, np.zeros(4), [np.sqrt(mass_weight) * mass_goal]])
    expected = np.linalg.lstsq(rows, right)[0]
    found = fit(Linear(ridge=ridge, mass_weight=mass_weight), problem)
    np.testing.assert_allclose(coefficients(found), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.rows, phi @ expected, rtol=1e-8, atol=1e-10)


def test_closed_form_is_the_fixed_point_of_the_paper():
    """−G⁻¹g with the paper's labels, its scale H(1 − γ) and its mass of 1."""
    mdp, ridge, mass_weight = early_termination(), 0.01, 2.0
    problem = mdp.problem(300, seed=0)
    phi, label = problem.dataset.observation, mdp.discount**problem.dataset.step * np.exp(problem.log_product)
    c, n = problem.scale, len(label)
    mean = phi.mean(axis=0)
    g_matrix = np.block(
        [
            [-phi.T @ phi / n - ridge * np.eye(5), -mass_weight * c * mean[:, None]],
            [mass_weight * c * mean[None, :], -mass_weight * np.ones((1, 1))],
        ]
    )
    g_vector = np.append(phi.T @ label / n, -mass_weight)
    theta = -np.linalg.solve(g_matrix, g_vector)[:5]
    model = Linear(features=lambda inputs: inputs, ridge=ridge, mass_weight=mass_weight)
    method = ad.AverageDICE(model, plain, as_logged, label_on_state, unit_mass)
    np.testing.assert_allclose(method.fit(problem, key=KEYS[0]).ratio(np.eye(5)), c * theta, rtol=1e-9)


def test_features_that_depend_on_each_other():
    problem = regression()
    doubled = fit(Linear(lambda x: np.column_stack([x, x]), ridge=0.0, mass_weight=0.0), problem)
    single = fit(Linear(lambda x: x, ridge=0.0, mass_weight=0.0), problem)
    np.testing.assert_allclose(doubled.rows, single.rows, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("ridge", "mass_weight"), [(0.001, 0.5), (0.1, 2.0)])
def test_incremental_updates_converge_to_the_closed_form(ridge, mass_weight):
    problem = regression()
    expected = coefficients(fit(Linear(ridge=ridge, mass_weight=mass_weight), problem))

    def error(num_passes):
        model = IncrementalLinear(ridge=ridge, mass_weight=mass_weight, num_passes=num_passes)
        return np.abs(coefficients(fit(model, problem)) - expected).max()

    few, many = error(10), error(5000)
    assert many < 0.002
    assert many < 0.1 * few


def test_incremental_updates_are_those_of_the_paper():
    """Three rows, three updates, by hand."""
    problem = replace(regression(num_rows=3), mass_goal=0.7)
    model = IncrementalLinear(ridge=0.2, mass_weight=0.5, step_size=0.3, delay=2.0, power=0.8, num_passes=1)
    theta, eta = np.zeros(4), 0.0
    first = 0.3 / np.mean(1 + np.sum(problem.inputs**2, axis=1))  # over the mean of ‖φ‖²
    for t in range(3):
        alpha = first / (1 + t / 2) ** 0.8
        phi, y, a = np.append(1, problem.inputs[t]), problem.targets[t], problem.mass[t]
        f = phi @ theta
        theta, eta = (
            theta - alpha * (phi * (f - y) + 0.5 * eta * a * phi + 0.2 * theta),
            eta + alpha * 0.5 * (a * f - 0.7 - eta),
        )
    np.testing.assert_allclose(coefficients(fit(model, problem)), theta, rtol=1e-12)


def test_a_network_without_hidden_layers_is_the_linear_model():
    """The same loss, dual variable included, by another way: a wrong sign or factor would show."""
    problem = regression(num_rows=2000)
    expected = fit(Linear(ridge=0.1, mass_weight=2.0), problem)
    model = MLPRegression(hidden=(), ridge=0.1, mass_weight=2.0, learning_rate=2e-3, num_steps=4000)
    found = fit(model, problem)
    np.testing.assert_allclose(coefficients(found), coefficients(expected), atol=0.03)
    np.testing.assert_allclose(found.rows, expected.rows, atol=0.1)
    assert found.history.loss[-1] == pytest.approx(expected_loss(problem, expected, 0.1, 2.0), rel=0.01)


def expected_loss(problem, fitted, ridge, mass_weight):
    missing = np.mean(problem.mass * fitted.rows) - problem.mass_goal
    penalty = 0.5 * ridge * np.sum(coefficients(fitted) ** 2)
    return 0.5 * np.mean((fitted.rows - problem.targets) ** 2) + penalty + 0.5 * mass_weight * missing**2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"power": 0.5}, "power above 1/2"),
        ({"power": 1.2}, "power above 1/2"),
        ({"step_size": 0.0}, "step size"),
        ({"delay": 0.0}, "delay above zero"),
    ],
)
def test_step_sizes_that_do_not_converge(settings, message):
    with pytest.raises(ad.SettingError, match=message):
        IncrementalLinear(**settings)


def test_updates_that_diverge_are_reported():
    problem = regression()
    with pytest.raises(ad.NotApplicable, match="diverged"):
        fit(IncrementalLinear(step_size=1.0, mass_weight=1e4), problem)


def test_incremental_updates_do_not_depend_on_the_unit_of_the_observations():
    """A first step size that suits inputs of size 1 would diverge on inputs of size 100."""
    problem = regression()
    large = replace(problem, inputs=problem.inputs * 100)
    assert np.isfinite(fit(IncrementalLinear(), large).rows).all()
