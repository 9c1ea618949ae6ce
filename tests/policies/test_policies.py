"""Policies: probabilities against scipy, samples against probabilities, mixtures against their formulas."""

import numpy as np
import pytest
from scipy import special, stats

import average_dice as ad
from average_dice.policies import GaussianPolicy, mean_over_actions, mixed_with_uniform, with_scaled_variance
from sample_policies import OBSERVATIONS, network

GENERATOR = np.random.default_rng(5)


def forward(network, x):
    """A second implementation of the network, one row at a time."""
    activate = {"tanh": np.tanh, "relu": lambda z: z * (z > 0)}[network.activation]
    h = (x - network.mean) / network.std
    for index, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        h = np.array([np.dot(row, h) for row in weight]) + bias
        if index < len(network.weights) - 1:
            h = activate(h)
    return h


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_network(activation):
    made = network(4, activation)
    expected = np.array([forward(made, x) for x in OBSERVATIONS])
    np.testing.assert_allclose(made(OBSERVATIONS), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("scale", [1.0, 40.0])  # 40: probabilities down to e^-1000, whose logarithms must be right
def test_categorical_log_probabilities_are_those_of_scipy(scale):
    policy = ad.CategoricalPolicy(network(4, scale=scale))
    expected = special.log_softmax(network(4, scale=scale)(OBSERVATIONS), axis=1)
    actions = GENERATOR.integers(4, size=50)
    np.testing.assert_allclose(policy.log_probabilities(OBSERVATIONS), expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(
        policy.log_prob(OBSERVATIONS, actions), policy.log_probabilities(OBSERVATIONS)[np.arange(50), actions]
    )


def test_gaussian_log_probabilities_are_those_of_scipy():
    log_std = np.array([-1.0, 0.5])
    policy = GaussianPolicy(network(2), log_std)
    actions = GENERATOR.normal(size=(50, 2)) * 5
    expected = stats.norm.logpdf(actions, network(2)(OBSERVATIONS), np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS, actions), expected, rtol=1e-13)


def test_categorical_samples_follow_the_probabilities():
    policy = ad.CategoricalPolicy(lambda observations: np.tile(np.log([0.2, 0.0, 0.5, 0.3]), (len(observations), 1)))
    with np.errstate(divide="ignore"):
        actions = policy.sample(np.zeros((100_000, 1)), generator=np.random.default_rng(2))
    shares = np.bincount(actions, minlength=4) / 100_000
    np.testing.assert_allclose(shares, [0.2, 0.0, 0.5, 0.3], atol=4 * np.sqrt(0.25 / 100_000))
    assert shares[1] == 0


def test_gaussian_samples_follow_the_density():
    policy = GaussianPolicy(lambda observations: np.tile([1.0, -2.0], (len(observations), 1)), np.log([0.5, 2.0]))
    actions = policy.sample(np.zeros((20_000, 1)), generator=np.random.default_rng(3))
    for column, (mean, std) in enumerate([(1.0, 0.5), (-2.0, 2.0)]):
        assert stats.kstest(actions[:, column], stats.norm(mean, std).cdf).pvalue > 1e-3


def test_mean_over_discrete_actions_is_exact():
    policy = ad.CategoricalPolicy(network(4))
    function = lambda observations, actions: np.sin(actions) * observations[:, 0]  # noqa: E731
    expected = (np.exp(policy.log_probabilities(OBSERVATIONS)) * np.sin(np.arange(4))).sum(axis=1) * OBSERVATIONS[:, 0]
    found = mean_over_actions(policy, function, OBSERVATIONS, generator=np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_mean_over_continuous_actions_is_exact_for_linear_functions():
    policy = GaussianPolicy(lambda observations: observations[:, :2], np.log([0.5, 2.0]))
    linear = lambda observations, actions: actions[:, 0] + actions[:, 1]  # noqa: E731
    found = mean_over_actions(policy, linear, OBSERVATIONS, num_draws=4000, generator=np.random.default_rng(0))
    error = found - OBSERVATIONS[:, :2].sum(axis=1)
    assert np.abs(error).max() < 4 * np.sqrt(4.25 / 4000)
    np.testing.assert_allclose(error, error[0], atol=1e-12)  # opposite noise cancels


def test_mixture_with_uniform():
    policy = ad.CategoricalPolicy(network(4))
    mixed = mixed_with_uniform(policy, 0.3)
    expected = 0.7 * np.exp(policy.log_probabilities(OBSERVATIONS)) + 0.3 / 4
    np.testing.assert_allclose(np.exp(mixed.log_probabilities(OBSERVATIONS)), expected, rtol=1e-13)


def test_mixture_without_uniform_actions_keeps_probabilities_of_zero():
    policy = ad.CategoricalPolicy(lambda observations: np.tile([0.0, -np.inf], (len(observations), 1)))
    assert np.exp(mixed_with_uniform(policy, 0.0).log_probabilities(OBSERVATIONS))[0].tolist() == [1.0, 0.0]


def test_the_variance_is_scaled_and_not_the_deviation():
    policy = GaussianPolicy(network(2), np.log([0.5, 2.0]), low=-np.ones(2), high=np.ones(2))
    wide = with_scaled_variance(policy, 2.0)
    np.testing.assert_allclose(np.exp(wide.log_std) ** 2, 2 * np.array([0.25, 4.0]))
    assert wide.clip(np.array([[3.0, -3.0]])).tolist() == [[1.0, -1.0]]


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
def test_shares_out_of_range(share):
    with pytest.raises(ad.SettingError, match="between 0 and 1"):
        mixed_with_uniform(ad.CategoricalPolicy(network(4)), share)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_scales_out_of_range(scale):
    with pytest.raises(ad.SettingError, match="above zero"):
        with_scaled_variance(GaussianPolicy(network(2), np.zeros(2)), scale)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: ad.CategoricalPolicy(network(4)).log_prob(OBSERVATIONS[:, :2], np.zeros(50, int)), "of 3 numbers"),
        (lambda: ad.CategoricalPolicy(network(4)).log_prob(OBSERVATIONS, np.full(50, 4)), "action 4.*actions 0 to 3"),
        (lambda: ad.CategoricalPolicy(network(4)).log_prob(OBSERVATIONS, np.zeros((50, 1))), "discrete actions"),
        (lambda: GaussianPolicy(network(2), np.zeros(2)).log_prob(OBSERVATIONS, np.zeros(50, int)), "discrete ones"),
        (lambda: GaussianPolicy(network(2), np.zeros(2)).log_prob(OBSERVATIONS, np.zeros((50, 3))), "of 3 numbers"),
        (lambda: ad.CategoricalPolicy(lambda x: np.full((50, 2), np.nan)).log_probabilities(OBSERVATIONS), "NaN"),
        (lambda: GaussianPolicy(network(2), np.array([0.0, np.nan])), "finite"),
        (lambda: GaussianPolicy(lambda x: x[:, 0], [0.0]).log_prob(OBSERVATIONS, np.zeros((50, 1))), r"shape \(50,\)"),
        (
            lambda: GaussianPolicy(lambda x: x[:3], [0.0] * 3).sample(OBSERVATIONS, generator=GENERATOR),
            r"shape \(3, 3\)",
        ),
        (lambda: ad.CategoricalPolicy(lambda x: x[:, 0]).log_probabilities(OBSERVATIONS), r"shape \(50,\)"),
        (lambda: ad.CategoricalPolicy(lambda x: x[:, :0]).log_probabilities(OBSERVATIONS), r"shape \(50, 0\)"),
        (lambda: GaussianPolicy(network(2), np.zeros(2), low=np.zeros(3)), "action low"),
    ],
)
def test_policies_that_do_not_match_the_log(attempt, message):
    with pytest.raises(ad.PolicyError, match=message):
        attempt()
