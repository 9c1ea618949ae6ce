"""Fourier features: the kernel they stand for, the ridge from whole episodes, the same sums as a direct solve."""

import jax
import numpy as np
import pytest

from average_dice.features.fourier import FourierMap
from average_dice.models import FourierFeatures, Regression
from average_dice.models.fourier import _folds

KEYS = [jax.random.key(0)]


def fit(model, problem):
    return model.fit(problem, key=KEYS[0], value_of=lambda f: 0.0)


def regression(num_episodes=60, length=20, noise=0.1, seed=0):
    generator = np.random.default_rng(seed)
    size = num_episodes * length
    inputs = generator.normal(size=(size, 2)) * [1.0, 50.0] + [0.0, 300.0]
    episode = np.repeat(np.arange(num_episodes), length)
    shared = noise * generator.normal(size=num_episodes)[episode]  # the noise of an episode is one number
    targets = np.sin(2 * inputs[:, 0]) + (inputs[:, 1] - 300) / 50 + shared
    return Regression(inputs, targets, np.ones(size), 1.0, episode)


def test_features_approximate_the_gaussian_kernel():
    points = np.random.default_rng(0).normal(size=(200, 2))
    features = FourierMap.draw(points, 20_000, np.random.default_rng(1))
    cosines = features(points)[:, 3:]
    kernel = 2 * cosines @ cosines.T / 20_000
    standardised = (points - points.mean(axis=0)) / points.std(axis=0)
    squares = ((standardised[:, None] - standardised[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernel, np.exp(-squares / (2 * features.width**2)), atol=0.05)
    assert features.width == pytest.approx(np.sqrt(np.median(squares[np.triu_indices(200, 1)])), rel=1e-9)


def test_the_function_is_found():
    problem = regression()
    fitted = fit(FourierFeatures(), problem)
    fresh = regression(seed=1, noise=0.0)
    assert np.sqrt(np.mean((fitted.predict(fresh.inputs) - fresh.targets) ** 2)) < 0.2
    np.testing.assert_allclose(fitted.predict(problem.inputs), fitted.rows, atol=1e-4)


def test_the_fit_from_sums_is_the_fit_from_rows():
    problem = regression()
    fitted = fit(FourierFeatures(40, ridges=(0.01,)), problem)
    # The same features: the generator of the key draws them first.
    from average_dice.randomness import generator_from

    phi = FourierMap.draw(problem.inputs, 40, generator_from(KEYS[0]))(problem.inputs)
    penalty = np.sqrt(0.01 * len(phi)) * np.eye(phi.shape[1])
    penalty[0] = 0  # the constant is free
    rows, right = np.vstack([phi, penalty]), np.append(problem.targets, np.zeros(phi.shape[1]))
    np.testing.assert_allclose(fitted.rows, phi @ np.linalg.lstsq(rows, right)[0], rtol=1e-7, atol=1e-7)


def test_more_noise_asks_for_more_ridge():
    quiet = fit(FourierFeatures(), regression(noise=0.01)).diagnostics["ridge"]
    loud = fit(FourierFeatures(), regression(noise=10.0)).diagnostics["ridge"]
    assert loud > 100 * quiet


def test_the_ridge_is_the_one_with_the_lowest_error_on_episodes_left_out():
    problem = regression(num_episodes=12, noise=2.0)
    ridges = (1e-4, 1e-2, 1.0, 100.0)
    chosen = fit(FourierFeatures(60, ridges=ridges), problem).diagnostics["ridge"]
    from average_dice.randomness import generator_from

    generator = generator_from(KEYS[0])
    phi = FourierMap.draw(problem.inputs, 60, generator)(problem.inputs)
    errors = dict.fromkeys(ridges, 0.0)
    for held in _folds(problem.episode, generator):
        kept = np.setdiff1d(np.arange(len(phi)), held)
        for ridge in ridges:
            penalty = ridge * len(kept) * np.diag(np.arange(phi.shape[1]) > 0)
            theta = np.linalg.solve(phi[kept].T @ phi[kept] + penalty, phi[kept].T @ problem.targets[kept])
            errors[ridge] += np.sum((phi[held] @ theta - problem.targets[held]) ** 2)
    assert chosen == min(errors, key=errors.get)


def test_folds_keep_episodes_whole():
    episode = np.repeat(np.arange(7), [1, 5, 2, 9, 3, 3, 4])
    folds = _folds(episode, np.random.default_rng(0))
    assert sorted(np.concatenate(folds)) == list(range(27))
    assert len(folds) == 6
    owners = [set(episode[rows]) for rows in folds]
    assert sum(len(owner) for owner in owners) == 7


def test_inputs_that_never_vary_and_a_single_episode():
    inputs = np.column_stack([np.full(30, 7.0), np.linspace(0, 1, 30)])
    problem = Regression(inputs, np.linspace(0, 1, 30), np.ones(30), 1.0, np.zeros(30, int))
    assert np.isfinite(fit(FourierFeatures(), problem).rows).all()
    constant = Regression(np.ones((4, 1)), np.arange(4.0), np.ones(4), 1.0, np.arange(4))
    np.testing.assert_allclose(fit(FourierFeatures(), constant).rows, 1.5, atol=1e-3)
