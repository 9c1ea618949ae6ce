"""Combining estimates, against combinations known by hand."""

import numpy as np
import pytest

from average_dice.estimators.blend._mixing_weights import Reference, mix


def test_independent_estimates_are_weighted_by_their_precision():
    found = mix(np.array([1.0, 2.0]), np.diag([1.0, 2.0]), [Reference(np.array([1.0, 0.0]), 2.0)])
    np.testing.assert_allclose(found.weights, [0.8, 0.2], atol=1e-6)
    np.testing.assert_array_equal(found.bias[0], [0.0, 0.0])  # one apart, which is less than two standard errors
    assert found.value == pytest.approx(1.2)
    assert found.standard_error == pytest.approx(np.hypot(0.8, 0.4))


def test_what_two_estimates_share_does_not_set_them_apart():
    """Their errors are the same but for a hundredth: a difference of 1 is no chance, however noisy both are."""
    errors = np.array([[5.0, 0.01, 0.0], [5.0, 0.0, 0.01]])
    found = mix(np.array([0.0, 1.0]), errors, [Reference(np.array([1.0, 0.0]), 2.0)])
    assert found.bias[0][1] == pytest.approx(1 - 2 * np.hypot(0.01, 0.01))


def test_a_precise_estimate_far_from_the_reference_is_not_believed():
    errors = np.diag([0.1, 0.0001])
    near = mix(np.array([0.0, 0.15]), errors, [Reference(np.array([1.0, 0.0]), 2.0)])
    far = mix(np.array([0.0, 9.0]), errors, [Reference(np.array([1.0, 0.0]), 2.0)])
    assert near.weights[1] > 0.99
    assert far.weights[1] < 0.01
    assert abs(far.value) < 0.01


def test_weights_are_never_negative_and_sum_to_one():
    generator = np.random.default_rng(0)
    errors = generator.standard_normal((30, 1)) @ generator.standard_normal((1, 50)) + 0.1 * generator.standard_normal(
        (30, 50)
    )
    found = mix(generator.standard_normal(30), errors, [Reference(np.full(30, 1 / 30), 2.0)])
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    covariance = errors @ errors.T + np.outer(found.bias[0], found.bias[0])
    least = found.weights @ covariance @ found.weights
    for vertex in np.eye(30):  # no step towards any of them is better
        other = 0.99 * found.weights + 0.01 * vertex
        assert other @ covariance @ other >= least * (1 - 1e-6)


def test_without_any_error_all_is_well():
    found = mix(np.array([1.0, 1.0]), np.zeros((2, 3)), [Reference(np.array([0.5, 0.5]), 2.0)])
    assert found.value == 1.0


def test_a_second_reference_shows_what_the_first_is_too_noisy_for():
    """Independent errors, so weights are proportional to 1 / (variance + bias²).

    The first reference explains any distance by chance. The second is precise, and far from the second estimate.
    """
    values, errors = np.array([0.0, 0.5, 1.0]), np.diag([9.0, 0.1, 0.2])
    noisy, precise = Reference(np.eye(3)[0], 2.0), Reference(np.eye(3)[2], 1.0)
    alone = 1 / np.array([81.0, 0.01, 0.04])
    np.testing.assert_allclose(mix(values, errors, [noisy]).weights, alone / alone.sum(), atol=1e-5)
    found, bias = mix(values, errors, [noisy, precise]), -(0.5 - np.hypot(0.1, 0.2))
    np.testing.assert_allclose(found.bias, [[0, 0, 0], [0, bias, 0]], atol=1e-12)
    both = 1 / np.array([81.0, 0.01 + bias**2, 0.04])
    np.testing.assert_allclose(found.weights, both / both.sum(), atol=1e-5)
