"""Deterministic policies: exact zeros and ones for discrete actions, no density for continuous ones."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import average_dice as ad
from average_dice.policies import DeterministicPolicy, mean_over_actions
from average_dice.policies.deterministic import NO_DENSITY
from sample_policies import OBSERVATIONS, network

GENERATOR = np.random.default_rng(0)
GREEDY = DeterministicPolicy(lambda observations: network(4)(observations).argmax(axis=1), num_actions=4)
CONTINUOUS = DeterministicPolicy(network(2))


def test_discrete_probabilities_are_those_of_the_one_hot_policy():
    def one_hot(observations):
        with np.errstate(divide="ignore"):
            return np.log(np.eye(4)[network(4)(observations).argmax(axis=1)])

    expected = ad.CategoricalPolicy(one_hot)
    for action in range(4):
        actions = np.full(50, action)
        np.testing.assert_array_equal(GREEDY.log_prob(OBSERVATIONS, actions), expected.log_prob(OBSERVATIONS, actions))
    for found, wanted in zip(
        GREEDY.weighted_actions(OBSERVATIONS, num_draws=8, generator=GENERATOR),
        expected.weighted_actions(OBSERVATIONS, num_draws=8, generator=GENERATOR),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)


def test_a_continuous_mean_is_the_function_at_the_one_action():
    function = lambda observations, actions: np.sin(actions[:, 0]) * actions[:, 1]  # noqa: E731
    found = mean_over_actions(CONTINUOUS, function, OBSERVATIONS, generator=GENERATOR)
    np.testing.assert_array_equal(found, function(OBSERVATIONS, network(2)(OBSERVATIONS)))
    np.testing.assert_array_equal(CONTINUOUS.sample(OBSERVATIONS, generator=GENERATOR), network(2)(OBSERVATIONS))


def test_continuous_actions_have_no_density():
    with pytest.raises(ad.NotApplicable, match=NO_DENSITY):
        CONTINUOUS.log_prob(OBSERVATIONS, np.zeros((50, 2)))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: GREEDY.log_prob(OBSERVATIONS, np.zeros((50, 1))), "the log has continuous ones"),
        (lambda: GREEDY.log_prob(OBSERVATIONS, np.full(50, 4)), "action 4.*actions 0 to 3"),
        (lambda: CONTINUOUS.log_prob(OBSERVATIONS, np.zeros(50, int)), "num_actions"),
        (lambda: DeterministicPolicy(lambda x: np.zeros(50, int)).actions(OBSERVATIONS), "give num_actions"),
        (lambda: DeterministicPolicy(lambda x: x[:, 0]).actions(OBSERVATIONS), r"shape \(50,\)"),
        (lambda: DeterministicPolicy(lambda x: np.full((50, 1), np.nan)).actions(OBSERVATIONS), "NaN"),
        (lambda: DeterministicPolicy(lambda x: x[:, 0], 4).actions(OBSERVATIONS), "one integer"),
        (lambda: DeterministicPolicy(lambda x: np.full(50, 7), 4).actions(OBSERVATIONS), "takes action 7.*0 to 3"),
    ],
)
def test_policies_that_do_not_fit(attempt, message):
    with pytest.raises(ad.PolicyError, match=message):
        attempt()


def test_a_saved_policy_is_loaded_unchanged(tmp_path):
    ad.save_policy(CONTINUOUS, tmp_path / "policy.safetensors")
    again = ad.load_policy(tmp_path / "policy.safetensors")
    assert isinstance(again, DeterministicPolicy)
    np.testing.assert_array_equal(again.actions(OBSERVATIONS), CONTINUOUS.actions(OBSERVATIONS))
    with pytest.raises(ad.PolicyError, match="made of another function"):
        ad.save_policy(GREEDY, tmp_path / "greedy.safetensors")


@pytest.mark.parametrize(
    ("log_std", "kind"),
    [
        ([-np.inf, -np.inf], DeterministicPolicy),
        ([-21.0, -np.inf], DeterministicPolicy),
        ([-19.0, 0], ad.GaussianPolicy),
    ],
)
def test_a_gaussian_file_without_spread_is_deterministic(tmp_path, log_std, kind):
    assert isinstance(ad.load_policy(gaussian_file(tmp_path, log_std)), kind)


@pytest.mark.parametrize(
    ("log_std", "message"),
    [([-np.inf, 0.0], "-inf in dimension 0.*in some dimensions only"), ([np.nan, 0.0], "finite")],
)
def test_a_gaussian_file_with_some_spread(tmp_path, log_std, message):
    with pytest.raises(ad.PolicyError, match=message):
        ad.load_policy(gaussian_file(tmp_path, log_std))


def gaussian_file(tmp_path, log_std):
    """A policy file with this log_std."""
    path = tmp_path / "policy.safetensors"
    ad.save_policy(ad.GaussianPolicy(network(2), np.zeros(2)), path)
    metadata = {"format": "average-dice-policy", "version": "1", "distribution": "gaussian", "activation": "tanh"}
    save_file(load_file(path) | {"log_std": np.array(log_std)}, path, metadata)
    return path


def test_the_message_needs_no_full_stop():
    assert not NO_DENSITY.endswith(".")  # notes and errors add theirs
