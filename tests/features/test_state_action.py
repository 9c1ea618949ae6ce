"""Features of states and actions: what actions share, and what an action that was never logged is given."""

import numpy as np
import pytest

from average_dice.features.state_action import StateActionFeatures, by_action, contrasts, scales


@pytest.mark.parametrize("num_actions", [1, 2, 3, 7])
@pytest.mark.parametrize("likeness", [0.0, 0.5, 0.9])
def test_codes_have_the_likeness_as_their_kernel(num_actions, likeness):
    shared, own = scales(num_actions, likeness)
    codes = own * contrasts(num_actions)
    kernel = shared**2 + codes @ codes.T
    np.testing.assert_allclose(kernel, likeness + (1 - likeness) * np.eye(num_actions), atol=1e-12)
    np.testing.assert_allclose(codes.sum(axis=0), 0, atol=1e-12)


def test_the_number_of_features_does_not_grow_with_the_number_of_actions():
    generator = np.random.default_rng(0)
    states, actions = generator.normal(size=(300, 2)), generator.integers(0, 400, 300)
    sizes = [
        StateActionFeatures.draw(states, actions % number, number, 10, generator).size for number in (3, 7, 80, 400)
    ]
    assert sizes[0] == 3 * 13
    assert max(sizes) == sizes[0]


def test_many_actions_have_their_own_values():
    """Rewards depend on the action alone: 80 constants are recovered, and none of their differences is lost."""
    generator = np.random.default_rng(0)
    states, actions = generator.normal(size=(4_000, 2)), generator.integers(0, 80, 4_000)
    constants = generator.normal(size=80)
    features = StateActionFeatures.draw(states, actions, 80, 50, generator)
    phi = features(states, actions)
    penalty = np.diag(np.where(features.free, 0.0, 1e-6 * len(phi)))
    theta = np.linalg.solve(phi.T @ phi + penalty, phi.T @ constants[actions])
    middle = np.zeros((80, 2))
    np.testing.assert_allclose(features(middle, np.arange(80)) @ theta, constants, atol=0.1)


def test_features_are_the_kernel_of_states_times_that_of_actions():
    generator = np.random.default_rng(0)
    states, actions = generator.normal(size=(30, 2)), generator.integers(0, 3, 30)
    features = StateActionFeatures.draw(states, actions, 3, 10, generator)
    phi = features.states(states).astype(float)
    kernel = (phi @ phi.T) * np.where(actions[:, None] == actions, 1.0, 0.9)
    found = features(states, actions)
    np.testing.assert_allclose(found @ found.T, kernel, atol=1e-5)
    assert found.shape[1] == features.size


def test_expected_features_are_means_over_actions():
    generator = np.random.default_rng(0)
    states = generator.normal(size=(8, 2))
    features = StateActionFeatures.draw(states, np.zeros(8, int), 3, 10, generator)
    actions, weights = np.tile(np.arange(3), (8, 1)), generator.dirichlet(np.ones(3), size=8)
    one_by_one = sum(weights[:, [a]] * features(states, np.full(8, a)) for a in range(3))
    np.testing.assert_allclose(features.expected(states, actions, weights), one_by_one, atol=1e-12)


def test_an_action_never_seen_is_given_the_value_of_its_state():
    """Ridge regression on two actions of three: the third is their mean, to a twentieth."""
    generator = np.random.default_rng(0)
    states, actions = generator.normal(size=(3_000, 1)), generator.integers(0, 2, 3_000)
    features = StateActionFeatures.draw(states, actions, 3, 30, generator)
    target = 5 + np.sin(2 * states[:, 0]) + 0.5 * (2 * actions - 1) * states[:, 0]
    phi = features(states, actions)
    penalty = np.diag(np.where(features.free, 0.0, 1e-5 * len(phi)))
    theta = np.linalg.solve(phi.T @ phi + penalty, phi.T @ target)
    unseen = features(states, np.full(3_000, 2)) @ theta
    inside = np.abs(states[:, 0]) < 2
    assert np.sqrt(np.mean((unseen - 5 - np.sin(2 * states[:, 0]))[inside] ** 2)) < 0.1


def test_weights_by_action_add_up_repeated_actions():
    every = np.tile(np.arange(3), (2, 1))
    weights = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(by_action(every, weights, 3), weights)
    some = np.array([[2, 0, 2], [1, 1, 0]])
    np.testing.assert_allclose(by_action(some, weights, 3), [[0.3, 0, 0.7], [0, 1, 0]])
