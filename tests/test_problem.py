"""Problem: ratios and their products, exact, in log space, and clear about what is missing."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.testing.exact_mdps import early_termination, random_mdp, tiny
from conftest import columns_of


def log_of(log_ratios, *, terminated=(), lengths=None, **changes):
    """A log with one observation per row and given log ratios: μ is certain, so they are π's log-probabilities."""
    lengths = lengths or [len(log_ratios)]
    ends = np.cumsum(lengths) - 1
    size = len(log_ratios)
    flags = np.zeros(size, bool)
    flags[[ends[episode] for episode in terminated]] = True
    state = np.arange(size + 1.0)
    columns = {
        "observation": state[:-1, None],
        "next_observation": state[1:, None],
        "action": np.zeros((size, 1)),
        "reward": np.ones(size),
        "terminated": flags,
        "behaviour_log_prob": np.zeros(size),
        "target_log_prob": np.array(log_ratios, float),
    }
    return ad.LoggedDataset.from_arrays(**columns | changes, episode_ends=ends)


def test_products_are_prefixes_within_each_episode():
    problem = ad.Problem(log_of(np.log([2, 3, 5, 7, 11, 13]), lengths=[4, 2]), None, 0.9)
    np.testing.assert_allclose(np.exp(problem.log_product), [1, 2, 6, 30, 1, 11])
    np.testing.assert_allclose(np.exp(problem.final_log_product), [210, 143])


def test_products_beyond_float64_come_back_right():
    ups_and_downs = [250.0] * 8 + [-250.0] * 16 + [250.0] * 8 + [0.0]
    problem = ad.Problem(log_of(ups_and_downs), None, 0.9)
    expected = np.append(0, np.cumsum(ups_and_downs)[:-1])
    assert expected.max() == 2000
    assert expected.min() == -2000
    np.testing.assert_array_equal(problem.log_product, expected)


def test_an_action_that_pi_never_takes_ends_the_weight_and_not_the_arithmetic():
    problem = ad.Problem(log_of([0.5, -np.inf, 0.5, 0.5, 0.25], lengths=[4, 1]), None, 0.9)
    assert problem.log_product.tolist() == [0.0, 0.5, -np.inf, -np.inf, 0.0]
    assert problem.ratio[1] == 0.0
    assert problem.final_log_product.tolist() == [-np.inf, 0.25]


def test_the_policy_counts_where_the_log_brings_target_probabilities_too():
    mdp = random_mdp()
    log = mdp.sample(3, seed=0, target_log_prob=np.full(240, -9.0))
    expected = mdp.policy.log_prob(log.observation, log.action) - log.behaviour_log_prob
    np.testing.assert_array_equal(ad.Problem(log, mdp.policy, 0.9).log_ratio, expected)
    np.testing.assert_array_equal(ad.Problem(log, None, 0.9).log_ratio, -9.0 - log.behaviour_log_prob)


def test_target_probabilities_in_the_log_do_instead_of_a_policy(key):
    mdp = early_termination()
    log = mdp.sample(30, seed=0)
    columns = columns_of(log) | {"target_log_prob": mdp.policy.log_prob(log.observation, log.action)}
    with_column = ad.Problem(ad.LoggedDataset(**columns), None, 0.9)
    with_policy = ad.Problem(log, mdp.policy, 0.9)
    for method in (ad.AverageDICE(), ad.AverageDICE.tabular(), ad.AverageDICE.linear()):
        assert method.fit(with_column, key=key).value == method.fit(with_policy, key=key).value


@pytest.mark.parametrize(
    ("changes", "policy", "message"),
    [
        ({"target_log_prob": None}, None, "give a policy, or a target_log_prob column"),
        ({"behaviour_log_prob": None}, None, "the log has no behaviour_log_prob column"),
    ],
)
def test_what_is_missing_is_said(changes, policy, message):
    problem = ad.Problem(log_of([0.0, 0.0], **changes), policy, 0.9)
    with pytest.raises(ad.NotApplicable, match=message):
        ad.AverageDICE().fit(problem, key=jax.random.key(0))


def test_a_single_ratio_that_no_log_can_carry():
    with pytest.raises(ad.PolicyError, match=r"episode 0, step 1: π is e\^700 times as likely"):
        _ = ad.Problem(log_of([0.0, 700.0]), None, 0.9).log_ratio


class NoPolicy:
    def __init__(self, log_prob):
        self.values = log_prob

    def log_prob(self, observations, actions):
        return self.values

    def sample(self, observations, *, generator): ...

    def weighted_actions(self, observations, *, num_draws, generator): ...


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([0.0, np.nan]), "episode 0, step 1: the policy's log_prob is nan"),
        (np.array([np.inf, 0.0]), "episode 0, step 0: the policy's log_prob is inf"),
        (np.zeros((2, 1)), r"has shape \(2, 1\)"),
    ],
)
def test_policies_that_give_nonsense(values, message):
    problem = ad.Problem(log_of([0.0, 0.0]), NoPolicy(values), 0.9)
    with pytest.raises(ad.PolicyError, match=message):
        _ = problem.log_ratio


@pytest.mark.parametrize("discount", [-0.1, 1.5, float("nan")])
def test_discounts_out_of_range(discount):
    with pytest.raises(ad.SettingError, match="the discount must lie between 0 and 1"):
        ad.Problem(log_of([0.0]), None, discount)


def test_a_policy_that_gives_probabilities_instead_of_their_logarithms():
    mdp = early_termination()
    log = mdp.sample(5, seed=0)
    given = np.exp(mdp.policy.log_prob(log.observation, log.action))
    with pytest.raises(ad.PolicyError, match="above zero, for a discrete action"):
        _ = ad.Problem(log, NoPolicy(given), 0.9).log_ratio


def test_effective_episodes():
    problem = ad.Problem(log_of(np.log([1, 2, 3, 1, 1]), lengths=[2, 1, 2]), None, 0.9)
    assert problem.effective_episodes == pytest.approx(6**2 / (2**2 + 3**2 + 1**2))
    far = ad.Problem(log_of(np.log([1, 2, 3, 1, 1]) - 280, lengths=[2, 1, 2]), None, 0.9)
    assert far.effective_episodes == pytest.approx(1.0)  # a shorter episode has been divided less often
    gone = ad.Problem(log_of([-np.inf] * 5, lengths=[2, 1, 2]), None, 0.9)
    assert gone.effective_episodes == 0.0


def test_flow_marks_termination_and_not_truncation():
    problem = ad.Problem(log_of([0.0] * 4, lengths=[2, 2], terminated=[0]), None, 0.9)
    np.testing.assert_allclose(problem.flow, [0.1, 1.0, 0.1, 0.1])


def test_a_resample_of_one_step_episodes_keeps_the_discount():
    """A log whose episodes all have one step has a discount of 0; some episodes of a longer log do not."""
    log = ad.LoggedDataset.from_arrays(
        observation=[[0.0]] * 4,
        action=[0] * 4,
        reward=[1.0, 1.0, 1.0, 1.0],
        next_observation=[[0.0]] * 4,
        terminated=[True, False, True, True],
        episode=[0, 1, 1, 2],
        behaviour_log_prob=[0.0] * 4,
        target_log_prob=[0.0] * 4,
    )
    problem = ad.Problem(log, None, 0.9)
    assert problem.select_episodes(np.array([0, 2])).discount == 0.9
    assert ad.Problem(log.select_episodes(np.array([0, 2])), None, 0.9).discount == 0.0


def test_a_discount_of_1_needs_terminations():
    with pytest.raises(ad.SettingError, match=r"3 of 3 are truncated, the earliest after step 1\. Give a horizon"):
        ad.Problem(truncated_log(3), None, 1.0)


def truncated_log(num_episodes):
    return ad.LoggedDataset.from_arrays(
        observation=[[0.0]] * num_episodes,
        action=[0] * num_episodes,
        reward=[1.0] * num_episodes,
        next_observation=[[0.0]] * num_episodes,
        terminated=[False] * num_episodes,
        episode=list(range(num_episodes)),
    )


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_value_up_to_a_horizon(discount):
    """On a log of every trajectory, truncated after 3 steps: the exact value of the first two."""
    mdp = replace(tiny(), discount=discount)
    problem = ad.Problem.up_to(mdp.exhaustive(4), mdp.policy, discount, 2)
    visits = mdp.visits(mdp.target, 2)
    weights = mdp.normaliser * discount ** np.arange(2)
    exact = float(np.einsum("t,ts,sa,sa->", weights, visits, mdp.target, mdp.reward))
    for method in (
        ad.estimators.ImportanceSampling.per_decision(),
        ad.AverageDICE.tabular(),
        ad.estimators.FittedQ(20, 1e-9),
        replace(ad.estimators.DoublyRobust.weighted(), critic=ad.estimators.FittedQ(20, 1e-9)),
    ):
        assert method.fit(problem, key=jax.random.key(0)).value == pytest.approx(exact, rel=1e-3)
    assert not problem.is_truncated


def test_a_horizon_beyond_a_truncation_leaves_it():
    mdp = tiny()
    assert ad.Problem.up_to(mdp.exhaustive(4), mdp.policy, 0.9, 4).is_truncated
    with pytest.raises(ad.DatasetError, match="the horizon must be at least 1 step, not 0"):
        mdp.exhaustive(4).up_to(0)


def test_a_horizon_after_which_no_episode_goes_on_changes_nothing():
    log = early_termination().sample(20, seed=0)
    longest = int(log.lengths.max())
    assert ad.Problem.up_to(log, None, 1.0, longest).dataset is log
    assert ad.Problem.up_to(log, None, 1.0, longest - 1).dataset is not log


def test_the_step_of_a_horizon_is_categorical_and_the_policy_does_not_see_it():
    mdp = tiny()
    log = mdp.exhaustive(4)
    problem = ad.Problem.up_to(log, mdp.policy, 0.9, 2)
    assert problem.dataset.categorical == (2,)
    rows = log.step < 2
    np.testing.assert_array_equal(problem.dataset.observation[:, 2], log.step[rows])
    np.testing.assert_array_equal(problem.target_log_prob, mdp.policy.log_prob(log.observation, log.action)[rows])
