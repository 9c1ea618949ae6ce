"""Codes of actions: the Gaussian kernel of their features, and values for actions that were never logged."""

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.features.action_codes import codes_of_features, contrasts
from average_dice.features.state_action import DEVIATIONS, StateActionFeatures


def test_codes_are_the_centred_gaussian_kernel():
    features = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 100.0]  # the unit does not matter
    codes = codes_of_features(features, most=100)
    points = (features - features.mean(axis=0)) / features.std(axis=0)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    width = np.median(distances[np.triu_indices(30, 1)])
    centre = np.eye(30) - 1 / 30
    kernel = centre @ np.exp(-0.5 * (distances / width) ** 2) @ centre
    kernel *= (1 - 1 / 30) / np.diag(kernel).mean()
    found = codes @ codes.T
    np.testing.assert_allclose(found, kernel, atol=5e-3)  # without the smallest eigenvalues
    np.testing.assert_allclose(np.diag(found).mean(), np.diag(contrasts(30) @ contrasts(30).T).mean(), rtol=1e-12)
    np.testing.assert_allclose(codes.sum(axis=0), 0, atol=1e-9)


def test_actions_that_are_all_equally_far_apart_have_the_contrasts():
    """Features that are indicators describe nothing: the kernel is that of the contrasts."""
    codes = codes_of_features(np.eye(6), most=100)
    np.testing.assert_allclose(codes @ codes.T, np.eye(6) - 1 / 6, atol=1e-9)


def test_equal_features_and_few_columns():
    assert codes_of_features(np.ones((5, 2)), most=100).shape == (5, 0)
    codes = codes_of_features(np.array([[0.0], [1.0], [1.0], [5.0]]), most=100)
    np.testing.assert_allclose(codes[1], codes[2], atol=1e-9)
    assert codes_of_features(np.random.default_rng(0).normal(size=(40, 6)), most=7).shape == (40, 7)


@pytest.mark.parametrize("num_actions", [2, 80, 400])
def test_the_budget_of_deviations_is_kept(num_actions):
    generator = np.random.default_rng(0)
    states, actions = generator.normal(size=(100, 2)), np.zeros(100, int)
    described = generator.normal(size=(num_actions, 5))
    features = StateActionFeatures.draw(states, actions, num_actions, 10, generator, described)
    assert features.size <= (1 + DEVIATIONS) * features.states.size


ACTIONS = 80
PLACE = np.random.default_rng(5).permutation(np.linspace(-1, 1, ACTIONS))  # the numbers of actions mean nothing
LOGGED = np.arange(0, ACTIONS, 2)
UNLOGGED = np.arange(1, ACTIONS, 2)


def reward_of(state: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.sin(2.5 * PLACE[action]) + 0.5 * state * PLACE[action]


def line_log(action_features: np.ndarray | None) -> ad.LoggedDataset:
    """One-step episodes with half of the actions."""
    generator = np.random.default_rng(0)
    state, action = generator.normal(size=4_000), generator.choice(LOGGED, 4_000)
    return ad.LoggedDataset.from_arrays(
        observation=state,
        action=action,
        reward=reward_of(state, action) + 0.1 * generator.normal(size=4_000),
        next_observation=state,
        terminated=np.ones(4_000, bool),
        episode=np.arange(4_000),
        behaviour_log_prob=np.full(4_000, -np.log(len(LOGGED))),
        action_features=action_features,
    )


@pytest.mark.parametrize("name", ["fqe", "average-dice-blend"])
def test_an_action_never_logged_has_the_value_of_similar_ones(name):
    """The critic's q of 40 actions that are not in the log, and the value of a policy that takes all 80."""
    policy = ad.CategoricalPolicy(lambda observations: np.tile(2 * PLACE, (len(observations), 1)))
    probability = np.exp(2 * PLACE) / np.exp(2 * PLACE).sum()
    truth = float(probability @ reward_of(np.zeros(ACTIONS), np.arange(ACTIONS)))  # the mean state is 0
    state, action = (one.ravel() for one in np.meshgrid(np.linspace(-1, 1, 5), UNLOGGED))
    errors, values = {}, {}
    for described in (True, False):
        problem = ad.Problem(line_log(PLACE if described else None), policy, 0.9)
        fit = ad.estimators.REGISTRY[name].make().fit(problem, key=jax.random.key(0))
        apart = fit.critic.q(state[:, None], action) - reward_of(state, action)
        errors[described], values[described] = float(np.sqrt(np.mean(apart**2))), fit.value
    assert errors[True] < 0.05
    assert errors[False] > 0.5  # the value of the state: as far off as the rewards of actions vary
    assert abs(values[True] - truth) < 0.02
    assert abs(values[False] - truth) > 0.1
