"""Ready-made policies against their formulas."""

import numpy as np
import pytest

import average_dice as ad
from average_dice import policies
from named_log import continuous_log, named_log, probabilities

LOG = named_log()
MASK = np.ones((LOG.num_transitions, 3), bool)
MASK[:, 2] = LOG.observation[:, 1] == 1  # the third action in the icu alone
MASKED = named_log(action_mask=MASK)
TABLE = np.array([0.2, 0.5, 0.3])
FIXED = ad.CategoricalPolicy(lambda rows: np.tile(np.log(TABLE), (len(rows), 1)))


def test_uniform():
    np.testing.assert_allclose(probabilities(policies.uniform(4), LOG.observation), 0.25)
    np.testing.assert_allclose(probabilities(policies.uniform(LOG), LOG.observation), 0.5)
    found = probabilities(policies.uniform(MASKED), MASKED.observation)
    np.testing.assert_allclose(found, MASK / MASK.sum(axis=1, keepdims=True), atol=1e-12)
    found = ad.Problem(MASKED, policies.uniform(MASKED), 0.9).target_log_prob
    np.testing.assert_allclose(np.exp(found), 1 / MASK.sum(axis=1), atol=1e-12)
    with pytest.raises(ad.SettingError, match="continuous"):
        policies.uniform(continuous_log())


def test_constant():
    for action in ("treat", 1):
        np.testing.assert_array_equal(probabilities(policies.constant(action, LOG), LOG.observation), [[0, 1]] * 120)
    assert repr(policies.constant(1, LOG)) == "DeterministicPolicy(always treat, 2 actions)"
    found = policies.constant([0.5, -1], continuous_log()).actions(np.zeros((2, 3)))
    np.testing.assert_array_equal(found, [[0.5, -1]] * 2)
    with pytest.raises(ad.PolicyError, match="mean treat"):
        policies.constant("treet", LOG)
    with pytest.raises(ad.PolicyError, match="takes action 7, and the log has actions 0 to 1"):
        policies.constant(7, LOG)
    with pytest.raises(ad.PolicyError, match="those of the log have 2"):
        policies.constant(0.5, continuous_log())


def test_epsilon_greedy():
    found = probabilities(policies.epsilon_greedy(FIXED, 0.3), LOG.observation)
    np.testing.assert_allclose(found, [[0.1, 0.8, 0.1]] * LOG.num_transitions, atol=1e-12)
    masked = probabilities(policies.epsilon_greedy(FIXED, 0.3, MASKED), MASKED.observation)
    expected = np.where(MASK[:, 2:], [0.1, 0.8, 0.1], [0.15, 0.85, 0.0])
    np.testing.assert_allclose(masked, expected, atol=1e-12)
    greedy = policies.epsilon_greedy(lambda rows: np.where(rows[:, 0] > 60, "treat", "wait"), 0.0, LOG)
    np.testing.assert_array_equal(probabilities(greedy, LOG.observation)[:, 1], LOG.observation[:, 0] > 60)
    with pytest.raises(ad.SettingError, match="between 0 and 1"):
        policies.epsilon_greedy(FIXED, 1.5)
    continuous = ad.GaussianPolicy(lambda rows: rows, np.zeros(3))
    with pytest.raises(ad.PolicyError, match="needs discrete actions"):
        probabilities(policies.epsilon_greedy(continuous, 0.1), np.zeros((2, 3)))


def test_a_mixture_of_discrete_policies():
    mixed = policies.mixture([(0.3, FIXED), (0.7, policies.uniform(2))])
    expected = 0.3 * TABLE + 0.7 * np.array([0.5, 0.5, 0])
    np.testing.assert_allclose(probabilities(mixed, LOG.observation), [expected] * 120, atol=1e-12)
    same = policies.mixture([(0.3, FIXED), (0.7, policies.uniform(3))])
    expected = 0.3 * TABLE + 0.7 / 3
    np.testing.assert_allclose(np.exp(same.log_prob(LOG.observation, LOG.action)), expected[LOG.action], atol=1e-12)
    actions = same.sample(np.zeros((40_000, 2)), generator=np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(actions) / 40_000, expected, atol=0.01)


def test_a_mixture_of_gaussian_policies():
    log = continuous_log(3)
    one, other = (ad.GaussianPolicy(lambda rows, sign=sign: sign * rows, np.zeros(3)) for sign in (1, -1))
    mixed = policies.mixture([(0.25, one), (0.75, other)], log)
    densities = [np.exp(policy.log_prob(log.observation, log.action)) for policy in (one, other)]
    expected = 0.25 * densities[0] + 0.75 * densities[1]
    np.testing.assert_allclose(np.exp(mixed.log_prob(log.observation, log.action)), expected, rtol=1e-12)
    actions, weights = mixed.weighted_actions(log.observation, num_draws=4, generator=np.random.default_rng(0))
    np.testing.assert_allclose(np.einsum("rd,rda->ra", weights, actions), -0.5 * log.observation, atol=1e-12)


def test_weights_of_a_mixture_sum_to_one():
    with pytest.raises(ad.SettingError, match="sum to 1"):
        policies.mixture([(0.3, FIXED), (0.3, FIXED)])
    with pytest.raises(ad.PolicyError, match="Give it as `data`"):
        policies.mixture([(1.0, {"rules": [], "otherwise": "wait"})])


def test_the_logged_behaviour_has_ratios_of_one():
    behaviour = policies.logged_behaviour(MASKED)
    np.testing.assert_array_equal(ad.Problem(MASKED, behaviour, 0.9).ratio, 1)
    part = ad.Problem(MASKED, behaviour, 0.9).select_episodes(np.array([3, 3, 1]))
    np.testing.assert_array_equal(part.ratio, 1)
    found = ad.evaluate(MASKED, behaviour, 0.9, estimators="pdis,fqe,behaviour-return", bootstrap=0)
    values = {name: one.value for name, one in found.estimates.items()}
    assert values["pdis"] == pytest.approx(values["behaviour-return"], rel=1e-12)
    assert values["fqe"] is None


def test_the_logged_behaviour_is_known_at_logged_rows_alone():
    with pytest.raises(ad.NotApplicable, match="logged actions alone"):
        policies.logged_behaviour(LOG).log_prob(np.zeros((1, 2)), np.zeros(1, int))
    several = named_log(
        observation=np.zeros((120, 2)),
        next_observation=np.zeros((120, 2)),
        behaviour_log_prob=np.log(np.linspace(0.4, 0.6, 120)),
    )
    behaviour = policies.logged_behaviour(several)
    np.testing.assert_array_equal(ad.Problem(several, behaviour, 0.9).ratio, 1)
    with pytest.raises(ad.NotApplicable, match="several probabilities"):
        behaviour.log_prob(several.observation[:3], several.action[:3])
    with pytest.raises(ad.PolicyError, match="its behaviour policy is unknown"):
        policies.logged_behaviour(named_log(behaviour_log_prob=None))
