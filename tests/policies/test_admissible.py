"""A policy respects the log's mask: it is refused if it does not, and rounding is removed exactly."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import ImportanceSampling
from average_dice.features.logged_state_actions import number_of_actions, target_actions
from average_dice.resampling import Resample
from average_dice.testing._estimating import fit
from average_dice.testing.cases import CLOSED_FORMS
from average_dice.testing.exact_mdps import as_policy, masked
from conftest import columns_of

MDP = masked()
ROUNDING = 6e-7
USES = {
    "target_log_prob": lambda problem: problem.target_log_prob,
    "target_actions": lambda problem: target_actions(problem, problem.dataset.next_observation),
}


def problem_of(policy, log=None):
    return ad.Problem(log if log is not None else MDP.sample(30, seed=0), policy, MDP.discount)


def with_weight(weight):
    """π with this weight on every forbidden action, before it is normalised."""
    table = np.where(MDP.allowed, MDP.target, weight)
    return as_policy(table / table.sum(axis=1, keepdims=True))


class Counting:
    """π, with the numbers of rows that its probabilities were asked for."""

    def __init__(self, policy):
        self.policy, self.log_prob, self.sample, self.rows = policy, policy.log_prob, policy.sample, []

    def weighted_actions(self, observations, *, num_draws, generator):
        self.rows.append(len(observations))
        return self.policy.weighted_actions(observations, num_draws=num_draws, generator=generator)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_weight_on_a_forbidden_action_is_named_with_its_row(use):
    table = MDP.target.copy()
    table[1] = [0.25, 0.25, 0.25, 0.25]  # state 1 forbids action 0
    problem = problem_of(as_policy(table))
    data = problem.dataset
    rows = np.flatnonzero(data.observation[:, 1])
    assert 1 < len(rows) < data.num_transitions
    with pytest.raises(ad.PolicyError) as caught:
        use(problem)
    assert str(caught.value).startswith(
        f"episode {data.episode[rows[0]]}, step {data.step[rows[0]]}: the policy takes action 0 with probability 0.25, "
        f"but action_mask forbids it. In all, it takes forbidden actions in {len(rows)} of {data.num_transitions} rows."
    )
    assert "logits of −inf, or correct the mask" in str(caught.value)


def test_the_tolerance_is_that_of_rounding():
    USES["target_log_prob"](problem_of(with_weight(0.99e-6)))
    with pytest.raises(ad.PolicyError, match=r"action \d with probability 1\.01e-06"):
        USES["target_log_prob"](problem_of(with_weight(1.01e-6)))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("number", [3, 5])
def test_another_number_of_actions_is_refused(use, number):
    policy = ad.CategoricalPolicy(lambda observations: np.zeros((len(observations), number)))
    with pytest.raises(ad.PolicyError, match=rf"actions 0 to {number - 1}, action_mask has actions 0 to 3\. Give"):
        use(problem_of(policy))


def test_continuous_actions_are_refused_as_ever():
    policy = ad.GaussianPolicy(lambda observations: np.zeros((len(observations), 1)), [0.0])
    with pytest.raises(ad.PolicyError, match="Give the policy that belongs to this log"):
        USES["target_log_prob"](problem_of(policy))


def test_a_policy_without_weighted_actions_is_not_checked():
    problem = problem_of(MDP.policy)
    probabilities = SimpleNamespace(log_prob=with_weight(0.3).log_prob)  # the type checks of tests do not admit it
    object.__setattr__(problem, "policy", probabilities)
    assert np.isfinite(problem.target_log_prob).all()
    with pytest.raises(ad.NotApplicable, match="give a policy"):
        USES["target_actions"](problem)


@pytest.mark.parametrize("after", ["exact", "in float32"])
def test_rounding_is_removed_at_every_logged_state(after):
    """Also at next states that differ from the next row's observation by rounding. Without a mask it stays."""
    columns = columns_of(MDP.sample(30, seed=0))
    columns["observation"] /= 3
    columns["next_observation"] /= 3
    if after == "in float32":
        columns["next_observation"] = columns["next_observation"].astype(np.float32)
    problem = problem_of(with_weight(ROUNDING), ad.LoggedDataset.from_columns(columns))
    data = problem.dataset
    joined = ~(data.terminated | data.truncated)
    assert (data.next_observation[joined] == data.observation[np.flatnonzero(joined) + 1]).all() == (after == "exact")
    for observations in (data.observation, data.next_observation[joined], problem.start_observation):
        _, weights = target_actions(problem, observations)
        np.testing.assert_allclose(weights, MDP.target[observations.argmax(axis=1)], rtol=1e-12, atol=0)
    columns["action_mask"] = None
    _, weights = target_actions(problem_of(problem.policy, ad.LoggedDataset.from_columns(columns)), data.observation)
    assert np.unique(weights).min() == pytest.approx(ROUNDING, rel=1e-5)


def test_states_without_a_mask_keep_all_actions():
    """The state after the last row of an episode, where no other row has that observation."""
    log = ad.LoggedDataset.from_arrays(
        observation=[[0.0], [1.0]],
        action=[1, 1],
        reward=[0.0, 1.0],
        next_observation=[[1.0], [2.0]],
        terminated=[False, False],
        episode=[0, 0],
        action_mask=[[True, True, False], [False, True, True]],
    )
    tables = np.log([[0.5, 0.5, 5e-7], [5e-7, 0.5, 0.5], [0.2, 0.3, 0.5]])
    policy = ad.CategoricalPolicy(lambda observations: tables[observations[:, 0].astype(int)])
    _, weights = target_actions(ad.Problem(log, policy, 0.9), np.array([[0.0], [1.0], [2.0], [-0.0]]))
    np.testing.assert_allclose(weights, [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5], [0.5, 0.5, 0]], rtol=1e-12)


def test_rows_with_the_same_observation_and_different_masks():
    """π cannot tell them from each other: it must take none of the actions that either forbids."""
    log = ad.LoggedDataset.from_arrays(
        observation=[[0.0], [0.0]],
        action=[1, 1],
        reward=[0.0, 1.0],
        next_observation=[[0.0], [0.0]],
        terminated=[True, True],
        episode=[0, 1],
        action_mask=[[True, True, False], [False, True, True]],
    )
    rounded = ad.CategoricalPolicy(lambda observations: np.log([[5e-7, 1.0, 5e-7]] * len(observations)))
    _, weights = target_actions(ad.Problem(log, rounded, 0.0), log.observation)
    np.testing.assert_allclose(weights, [[0, 1, 0]] * 2, rtol=1e-12)
    mixed = ad.CategoricalPolicy(lambda observations: np.log([[0.5, 0.5, 0.0001]] * len(observations)))
    with pytest.raises(ad.PolicyError, match=r"episode 0, step 0: .* action 2 .* in 2 of 2 rows"):
        target_actions(ad.Problem(log, mixed, 0.0), log.observation)


def test_an_estimate_by_expectations_does_not_see_rounding():
    log, method = masked(truncation=None).sample(200, seed=0), CLOSED_FORMS["lstd-q"].method
    exact, rounded = (fit(method, problem_of(policy, log)).value for policy in (MDP.policy, with_weight(ROUNDING)))
    assert rounded == pytest.approx(exact, abs=1e-12)
    unmasked = problem_of(with_weight(ROUNDING), replace(log, action_mask=None))
    assert fit(method, unmasked).value != pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("weight", [0.0, ROUNDING])
def test_the_policy_is_checked_once(weight):
    policy = Counting(with_weight(weight))
    problem = problem_of(policy)
    size = problem.dataset.num_transitions
    _ = problem.target_log_prob
    assert policy.rows == [size]
    for _ in range(2):
        target_actions(problem, problem.start_observation)
    assert policy.rows == [size, 30, 30]
    resampled = Resample.of(problem, np.array([1, 1, 4])).problem
    _, weights = target_actions(resampled, resampled.dataset.observation)
    assert policy.rows == [size, 30, 30, resampled.dataset.num_transitions]
    state = resampled.dataset.observation.argmax(axis=1)
    np.testing.assert_allclose(weights, MDP.target[state], rtol=1e-12, atol=0)
    np.testing.assert_array_equal(resampled.dataset.action_mask, MDP.allowed[state])


def test_a_log_without_a_mask_asks_nothing_more_of_the_policy():
    policy = Counting(MDP.policy)
    problem = problem_of(policy, replace(MDP.sample(30, seed=0), action_mask=None))
    _ = problem.target_log_prob
    assert policy.rows == []


def test_the_number_of_actions_is_that_of_the_mask():
    problem = problem_of(None)
    assert problem.dataset.action.max() < 4
    assert number_of_actions(problem) == 4


def test_a_single_action_has_no_mask():
    single = problem_of(MDP.policy).with_single_action()
    assert single.dataset.action_mask is None
    assert number_of_actions(single) == 1
    assert not single.log_ratio.any()


def test_an_evaluation_with_intervals_and_the_behaviour_policy():
    mdp, methods = masked(truncation=None), {name: CLOSED_FORMS[name].method for name in ("etd", "wpdis")}
    found = ad.evaluate(mdp.sample(1_000, seed=0), mdp.policy, mdp.discount, estimators=methods, bootstrap=20)
    behaviour = replace(mdp, target=mdp.behaviour).value
    assert mdp.value - behaviour > 0.1
    for name in methods:
        assert found.estimates[name].value == pytest.approx(mdp.value, abs=0.04)
        assert found.estimates[name].lower < mdp.value < found.estimates[name].upper
    assert found.against_behaviour.baseline == pytest.approx(behaviour, abs=0.03)
    assert found.against_behaviour.judgement == "better"


def test_only_probabilities_of_the_logged_actions():
    """Without a policy object the mask has no further meaning: the estimate is the same."""
    log = MDP.sample(50, seed=0)
    target = MDP.policy.log_prob(log.observation, log.action)
    method = ImportanceSampling.weighted_per_decision()
    alone = problem_of(None, replace(log, target_log_prob=target))
    assert fit(method, alone).value == fit(method, problem_of(MDP.policy, log)).value
