"""as_policy: functions against what they return; the wrong things against one sentence."""

import warnings

import numpy as np
import pytest
from scipy import special, stats

import average_dice as ad
from average_dice.policies import DeterministicPolicy, UnboundPolicy, as_policy
from named_log import continuous_log, named_log, probabilities

LOG = named_log()
CONTINUOUS = continuous_log()


def chance(observations):
    treat = 1 / (1 + np.exp((60 - observations[:, 0]) / 10))
    return np.column_stack([1 - treat, treat])


def logged(policy, log=LOG):
    return policy.log_prob(log.observation, log.action)


def test_a_policy_stays_as_it_is():
    policy = ad.CategoricalPolicy(chance)
    assert as_policy(policy) is policy
    assert as_policy(policy, LOG) is policy
    with pytest.raises(ad.SettingError, match="no option 'frame'"):
        as_policy(policy, LOG, frame=True)


def test_a_function_to_probabilities():
    expected = np.log(chance(LOG.observation)[np.arange(LOG.num_transitions), LOG.action])
    np.testing.assert_allclose(logged(as_policy(chance, LOG)), expected, atol=1e-12)
    np.testing.assert_allclose(logged(as_policy(chance, output="probabilities")), expected, atol=1e-12)


def test_a_function_to_logits_must_say_so():
    def logits(observations):
        return np.column_stack([observations[:, 0] / 100, np.ones(len(observations))])

    expected = special.log_softmax(logits(LOG.observation), axis=1)[np.arange(LOG.num_transitions), LOG.action]
    np.testing.assert_allclose(logged(as_policy(logits, LOG, output="logits")), expected, atol=1e-12)
    with pytest.raises(
        ad.PolicyError, match=r"episode 0, step 0: the probabilities of logits sum to .*output='logits'"
    ):
        as_policy(logits, LOG)


def test_probabilities_are_checked_beyond_the_first_rows():
    """The first 256 rows show what a function returns; the others are checked when they are used."""
    log = ad.LoggedDataset.from_arrays(
        observation=np.arange(300.0)[:, None],
        action=np.zeros(300, int),
        reward=np.zeros(300),
        next_observation=np.arange(300.0)[:, None],
        terminated=np.ones(300, bool),
        episode=np.arange(300),
    )
    policy = as_policy(lambda observations: np.where(observations < 290, [[0.5, 0.5]], [[0.5, 0.6]]), log)
    with pytest.raises(ad.PolicyError, match=r"episode 290, step 0: .* sum to 1\.1"):
        policy.log_prob(log.observation, log.action)


@pytest.mark.parametrize("names", [False, True])
def test_a_function_to_actions(names):
    def action(observations):
        treat = observations[:, 0] > 60
        return np.where(treat, "treat", "wait") if names else treat.astype(int)

    policy = as_policy(action, LOG)
    assert isinstance(policy, DeterministicPolicy)
    np.testing.assert_array_equal(logged(policy) == 0, (LOG.observation[:, 0] > 60) == LOG.action)


def test_a_function_of_a_data_frame():
    def policy(frame):
        assert list(frame.columns) == ["age", "ward"]
        treat = np.where(frame["ward"] == "icu", 0.9, np.where(frame["age"] > 60, 0.5, 0.2))
        return np.column_stack([1 - treat, treat])

    age, ward = LOG.observation.T
    expected = np.where(ward == 1, 0.9, np.where(age > 60, 0.5, 0.2))
    found = probabilities(as_policy(policy, LOG, frame=True), LOG.observation)
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-12)


def test_a_pair_of_mean_and_standard_deviation():
    def moments(observations):
        return observations[:, :2], 0.5 + observations[:, 1:] ** 2

    mean, std = moments(CONTINUOUS.observation)
    expected = stats.norm.logpdf(CONTINUOUS.action, mean, std).sum(axis=1)
    policy = as_policy(moments, CONTINUOUS)
    np.testing.assert_allclose(logged(policy, CONTINUOUS), expected, rtol=1e-12)
    actions, weights = policy.weighted_actions(CONTINUOUS.observation, num_draws=6, generator=np.random.default_rng(0))
    np.testing.assert_allclose(np.einsum("rd,rda->ra", weights, actions), mean, atol=1e-12)  # pairs of opposite noise
    samples = policy.sample(np.tile(CONTINUOUS.observation[:1], (40_000, 1)), generator=np.random.default_rng(0))
    np.testing.assert_allclose(samples.mean(axis=0), mean[0], atol=0.1)
    np.testing.assert_allclose(samples.std(axis=0), std[0], rtol=0.03)


def test_standard_deviations_must_be_positive():
    policy = as_policy(lambda rows: (rows[:, :2], np.full((len(rows), 2), -1.0)), CONTINUOUS)
    with pytest.raises(ad.PolicyError, match="take their exponential"):
        logged(policy, CONTINUOUS)


def test_one_standard_deviation_for_all_rows():
    policy = as_policy(lambda rows: (rows[:, :2], np.array([0.5, 2.0])), CONTINUOUS)
    expected = stats.norm.logpdf(CONTINUOUS.action, CONTINUOUS.observation[:, :2], [0.5, 2.0]).sum(axis=1)
    np.testing.assert_allclose(logged(policy, CONTINUOUS), expected, rtol=1e-12)


def test_continuous_actions_of_a_function():
    policy = as_policy(lambda rows: rows[:, :2], CONTINUOUS)
    assert isinstance(policy, DeterministicPolicy)
    np.testing.assert_array_equal(policy.actions(CONTINUOUS.observation), CONTINUOUS.observation[:, :2])
    with pytest.raises(ad.PolicyError, match="the log's actions are rows of 2 numbers"):
        as_policy(lambda rows: rows, CONTINUOUS).actions(CONTINUOUS.observation)


def test_a_squashed_gaussian_integrates_to_one():
    log = continuous_log(width=1)
    policy = ad.policies.ConditionalGaussianPolicy(lambda rows: (rows[:, :1], 0.3 + rows[:, 1:2] ** 2), [-2.0], [3.0])
    edges = -2 + 5 * (np.arange(20_000) + 0.5) / 20_000
    rows = np.tile(log.observation[:1], (len(edges), 1))
    density = np.exp(policy.log_prob(rows, edges[:, None]))
    assert density.sum() * 5 / 20_000 == pytest.approx(1, abs=1e-3)
    samples = policy.sample(rows, generator=np.random.default_rng(0))
    assert samples.mean() == pytest.approx((density @ edges) * 5 / 20_000, abs=0.03)
    np.testing.assert_array_equal(policy.log_prob(rows[:2], np.array([[-2.1], [3.1]])), -np.inf)


def test_the_mask_renormalises():
    mask = np.ones((LOG.num_transitions, 2), bool)
    forbidden = (LOG.observation[:, 0] > 70) & (LOG.action == 0)
    same = {tuple(row) for row in LOG.observation[LOG.action == 1]}
    forbidden &= [tuple(row) not in same for row in LOG.observation]
    assert forbidden.any()
    mask[forbidden, 1] = False
    log = named_log(action_mask=mask)
    found = probabilities(as_policy(chance, log, mask=True), log.observation)
    np.testing.assert_allclose(found[forbidden], [[1.0, 0.0]] * int(forbidden.sum()), atol=1e-12)
    np.testing.assert_allclose(found[~forbidden], chance(log.observation)[~forbidden], atol=1e-12)
    with pytest.raises(ad.PolicyError, match="action_mask forbids it"):
        _ = ad.Problem(log, chance, 0.9).target_log_prob
    bound = ad.Problem(log, as_policy(chance, mask=True), 0.9)
    np.testing.assert_array_equal(bound.target_log_prob[forbidden], 0)
    with pytest.raises(ad.PolicyError, match="takes only actions that action_mask forbids"):
        as_policy(lambda rows: np.ones(len(rows), int), log, mask=True)


def test_evaluate_compare_and_problem_accept_functions():
    policy = ad.CategoricalPolicy(lambda rows: np.log(chance(rows)))
    direct, found = (ad.evaluate(LOG, one, 0.9, bootstrap=0, estimators="fqe") for one in (policy, chance))
    assert found.estimates["fqe"].value == pytest.approx(direct.estimates["fqe"].value, rel=1e-12)
    compared = ad.compare(LOG, {"policy": policy, "function": chance}, 0.9, bootstrap=2)
    assert compared.differences["policy", "function"].value == pytest.approx(0, abs=1e-9)
    first_two = ad.evaluate(LOG, chance, 0.9, horizon=2, bootstrap=0, estimators="fqe")
    assert first_two.estimates["fqe"].value is not None


def test_what_a_function_returns_may_depend_on_the_log():
    policy = as_policy(chance)
    assert isinstance(policy, UnboundPolicy)
    assert repr(policy) == "UnboundPolicy(function chance)"
    with pytest.raises(ad.PolicyError, match=r"as_policy\(policy, data\)"):
        logged(policy)
    np.testing.assert_array_equal(logged(as_policy(policy, LOG)), logged(as_policy(chance, LOG)))


@pytest.mark.parametrize("wrong", [3, object(), ad.CategoricalPolicy, {1, 2}])
def test_the_wrong_thing_is_refused_with_what_is_accepted(wrong):
    with pytest.raises(ad.PolicyError, match="a model with predict_proba or predict, a function of observations"):
        as_policy(wrong, LOG)
    with pytest.raises(ad.PolicyError, match=r"a \.safetensors, \.csv or \.json file"):
        ad.Problem(LOG, wrong, 0.9)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda rows: np.ones(3), r"an array of shape \(3,\) for 120 observations"),
        (lambda rows: (rows, rows, rows), "a tuple of 3"),
        (lambda rows: np.full(len(rows), 0.5), "returns 0.5, which is not an action"),
        (lambda rows: np.full(len(rows), "treet"), "Did you mean treat?"),
    ],
)
def test_what_a_function_may_not_return(function, message):
    with pytest.raises(ad.PolicyError, match=message):
        as_policy(function, LOG)


def test_options_belong_to_kinds():
    with pytest.raises(ad.SettingError, match=r"function: unknown option 'normalise'. Its options are output, frame"):
        as_policy(chance, LOG, normalise=False)
    with pytest.raises(ad.SettingError, match="output is probabilities, logits, actions or gaussian, not 'odds'"):
        as_policy(chance, LOG, output="odds")


def test_policies_have_short_names():
    network = ad.policies.Network((np.zeros((3, 17)),), (np.zeros(3),))
    deterministic = DeterministicPolicy(network)
    log = continuous_log(width=3)
    assert repr(network) == "Network(17 inputs, 3 outputs, tanh)"
    assert repr(ad.CategoricalPolicy(network)) == "CategoricalPolicy(17 inputs, 3 actions)"
    assert repr(ad.GaussianPolicy(network, np.zeros(3))) == "GaussianPolicy(17 inputs, 3 dimensions of the action)"
    assert repr(deterministic) == "DeterministicPolicy(17 inputs, 3 dimensions of the action, continuous)"
    smooth = ad.policies.smoothed(DeterministicPolicy(lambda rows: rows), log, 0.4)
    assert repr(smooth) == "SmoothedPolicy(function <lambda>, bandwidth 0.4)"
    assert repr(as_policy(chance, LOG)) == "CategoricalPolicy(chance)"


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probabilities(as_policy(lambda rows: np.tile([0.0, 1.0], (len(rows), 1)), LOG), LOG.observation)
