"""Diagnostics: against what is known of the log, by hand or by construction."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.inference.assumptions import worst_step
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.flow_residual import flow_residual
from average_dice.inference.log_quality import repeated_episodes
from average_dice.testing.exact_mdps import as_policy, early_termination, random_mdp, sticky_chain, truncated
from conftest import columns_of

KEY = jax.random.key(0)


def changed(log, **columns):
    return ad.LoggedDataset(**columns_of(log) | columns)


def test_a_log_of_the_policy_itself():
    mdp = truncated()
    log = mdp.sample(100, seed=0)
    same = changed(log, target_log_prob=log.behaviour_log_prob)
    found = diagnose(ad.Problem(same, None, 0.9), key=KEY)
    assert found.mean_ratio == found.overlap == 1
    assert found.mean_ratio_distance == 0
    np.testing.assert_allclose(found.by_step, np.bincount(log.step))
    survivors = log.lengths[~log.terminated[log.starts + log.lengths - 1]]
    assert found.beyond_truncation == pytest.approx(np.sum(0.9**survivors) / 100)
    assert found.mass_found == pytest.approx(1, abs=1e-6)
    assert sum(found.weights) == pytest.approx(1)
    assert found.unseen_actions is None  # there is no policy to ask


def test_episodes_by_hand():
    """Two episodes of two steps; ρ = 2, ½ and 1, 1 at γ = ½. W: 4/3, 2/3 then 1, 1; g = ½ (4/3 + ½, 2/3 + ½)."""
    log = ad.LoggedDataset.from_arrays(
        observation=[[0.0], [1.0], [0.0], [2.0]],
        action=[0, 1, 1, 0],
        reward=[0.0, 1.0, 0.0, 0.0],
        next_observation=[[1.0], [0.0], [2.0], [0.0]],
        terminated=[False, False, False, True],
        episode=[7, 7, 9, 9],
        behaviour_log_prob=np.log([0.25, 0.5, 0.5, 0.5]),
        target_log_prob=np.log([0.5, 0.25, 0.5, 0.5]),
    )
    found = diagnose(ad.Problem(log, None, 0.5), key=KEY)
    weights = np.array([4 / 3 + 0.5, 2 / 3 + 0.5])
    assert found.effective_episodes == pytest.approx(weights.sum() ** 2 / (weights @ weights))
    assert found.by_step == pytest.approx((2**2 / (16 / 9 + 4 / 9), 2.0))
    assert [one.episode for one in found.heaviest] == [7, 9]
    assert [one.shown for one in found.heaviest] == ["7", "9"]
    named = replace(log, extra={"episode_name": np.array(["a", "a", "b", "b"], object)})
    assert [one.shown for one in diagnose(ad.Problem(named, None, 0.5), key=KEY).heaviest] == ["a", "b"]
    assert found.heaviest[0].share == pytest.approx(weights[0] / weights.sum())
    assert found.mean_ratio == pytest.approx(4.5 / 4)
    assert found.mean_ratio_distance == pytest.approx(0.25 / (np.std([0.5, 0.0], ddof=1) / np.sqrt(2)))
    assert found.overlap == pytest.approx(3.5 / 4)
    assert found.beyond_truncation == pytest.approx(0.25 / 2)
    assert found.largest_reward_share == pytest.approx(0.75**2 / (0.75**2 + 3 * 0.25**2))


def test_overlap_is_one_minus_the_distance_of_the_policies():
    mdp = random_mdp()
    problem = mdp.problem(500, seed=0)
    states = problem.dataset.observation.argmax(axis=1)
    expected = np.minimum(mdp.target, mdp.behaviour).sum(axis=1)[states].mean()
    assert diagnose(problem, key=KEY).overlap == pytest.approx(expected, abs=0.01)


def test_actions_that_were_never_logged():
    mdp = random_mdp()
    log = mdp.sample(50, seed=0)
    only_first = changed(log, action=np.zeros_like(log.action))
    found = diagnose(ad.Problem(only_first, mdp.policy, 0.8), key=KEY)
    states = log.observation.argmax(axis=1)
    assert found.unseen_actions == pytest.approx(mdp.target[states, 1].mean())


def test_wrong_probabilities_are_far_from_one():
    log = random_mdp().sample(100, seed=0)
    wrong = changed(log, behaviour_log_prob=log.behaviour_log_prob - np.log(2))
    right, found = (diagnose(ad.Problem(one, random_mdp().policy, 0.8), key=KEY) for one in (log, wrong))
    assert right.mean_ratio_distance < 3
    assert found.mean_ratio == pytest.approx(2, abs=0.05)
    assert found.mean_ratio_distance > 8


def test_the_flow_is_missed_where_the_log_is_cut_too_early():
    """π drifts from state 0 to state 1: seen for 5 steps only, the flow beyond the cut does not return."""
    chain = replace(sticky_chain(), target=np.array([[0.4, 0.6], [0.6, 0.4]]))
    problem = chain.problem(400, seed=0)
    assert flow_residual(problem, KEY) < 0.2
    rows = problem.dataset.step < 5
    columns = {name: column[rows] for name, column in columns_of(problem.dataset).items()}
    columns["truncated"] = columns["step"] == 4
    early = ad.Problem(ad.LoggedDataset(**columns), chain.policy, chain.discount)
    assert flow_residual(early, KEY) > 1


def test_copies_of_episodes():
    log = early_termination().sample(40, seed=0)
    assert repeated_episodes(log) == 0
    twice = log.select_episodes(np.concatenate([np.arange(40), np.arange(10)]))
    long = log.lengths[:10] > 15
    assert long.sum() / 50 <= repeated_episodes(twice) <= 10 / 50


def test_many_copies_of_episodes_with_many_states():
    log = early_termination().sample(12, seed=0)
    noise = np.random.default_rng(0).standard_normal(len(log.step) + 1)[:, None]
    after = np.where(log.terminated[:, None] | log.truncated[:, None], log.next_observation, noise[1:])
    states = changed(
        log, observation=np.repeat(noise[:-1], 5, 1), next_observation=np.broadcast_to(after, (len(after), 5))
    )
    twelve_times = states.select_episodes(np.tile(np.arange(12), 12))
    assert repeated_episodes(states) == 0
    assert repeated_episodes(twelve_times) == pytest.approx(11 / 12)


def test_a_hole_at_one_step():
    """At the start μ takes action 0 alone, of which π takes 0.4; everywhere else they agree."""
    mdp = random_mdp()
    log = mdp.sample(40, seed=0)
    start = log.step == 0
    target = np.where(start, np.log(0.4), np.log(0.5))
    behaviour = np.where(start, 0.0, np.log(0.5))
    holed = changed(log, action=np.where(start, 0, log.action), behaviour_log_prob=behaviour, target_log_prob=target)
    found = diagnose(ad.Problem(holed, None, 0.95), key=KEY)
    assert found.mean_ratio > 0.99
    assert (found.worst_step, found.worst_step_ratio) == (0, pytest.approx(0.4))
    spread = ad.Problem(holed, None, 0.95).ratio.std()  # of all rows: at the start there is none
    assert found.worst_step_distance == pytest.approx(0.6 * np.sqrt(40) / spread)
    assert found.worst_step_distance > 5
    fine = diagnose(mdp.problem(40, seed=0), key=KEY)
    assert fine.worst_step_distance < 5


def of_steps(actions, observation, lengths=None, terminated=True, seed=0, target=None, behaviour=0.5):
    """A log of episodes whose actions are drawn without looking; `actions` has a row for each of them."""
    lengths = np.full(len(actions), actions.shape[1]) if lengths is None else lengths
    kept = np.arange(actions.shape[1]) < lengths[:, None]
    step = np.tile(np.arange(actions.shape[1]), (len(actions), 1))
    last = (step == lengths[:, None] - 1)[kept]
    observation = np.broadcast_to(observation, actions.shape)[kept][:, None].astype(float)
    return ad.LoggedDataset(
        episode=np.repeat(np.arange(len(actions)), lengths),
        step=step[kept],
        observation=observation,
        action=actions[kept],
        reward=(actions[kept] == 1).astype(float),
        next_observation=np.where(last[:, None], observation, np.roll(observation, -1, axis=0)),
        terminated=last & terminated,
        truncated=last & (not terminated),
        behaviour_log_prob=np.log(np.where(actions[kept] == 1, behaviour, 1 - behaviour)),
        target_log_prob=None if target is None else np.log(np.where(actions[kept] == 1, target, 1 - target)),
    )


def test_a_rare_action_that_is_missing_at_some_step_is_no_hole():
    """μ takes it in 5 % of the steps and π in 25 %: among 40 episodes it is often missing at one of the steps."""
    for seed in range(20):
        generator = np.random.default_rng(seed)
        actions = (generator.random((40, 30)) < 0.05).astype(int)
        log = of_steps(actions, generator.random((40, 30)), behaviour=0.05, target=0.25)
        assert worst_step(ad.Problem(log, None, 0.95))[2] < 5


def test_the_worst_step_is_the_one_furthest_from_one():
    actions = np.tile([[0], [1]], (10, 10))
    actions[:14, 3] = 1
    step, mean, distance = worst_step(ad.Problem(of_steps(actions, 0.0, target=0.6), None, 0.95))
    assert (step, mean) == (3, pytest.approx(0.85 * 1.2 + 0.15 * 0.8))
    assert 0 < distance < 5


def test_episodes_of_one_step_are_no_copies():
    generator = np.random.default_rng(0)
    actions = generator.integers(0, 2, (500, 1))
    assert repeated_episodes(of_steps(actions, generator.integers(0, 4, (500, 1)))) == 0
    many = generator.integers(0, 1_000, (500, 1))  # contexts, of which some come again by chance
    assert repeated_episodes(of_steps(actions, many)) == 0
    tree = generator.integers(0, 2, (300, 2))
    assert repeated_episodes(of_steps(tree, np.column_stack([np.zeros(300), 1 + tree[:, 0]]))) == 0


def test_beyond_an_early_cut_others_go_on():
    """Where few of them do, what lies beyond is hardly seen, and they carry the weight of all."""
    actions = np.random.default_rng(0).integers(0, 2, (40, 100))
    end = 0.95**100
    for num_long, beyond, effective in ((40, end, 40), (20, end, 24), (1, end + 39 / 40 * 0.95**5, 1.8)):
        lengths = np.where(np.arange(40) < num_long, 100, 5)
        log = of_steps(actions, 0.0, lengths, terminated=False, target=0.5)
        found = diagnose(ad.Problem(log, None, 0.95), key=KEY)
        assert found.beyond_truncation == pytest.approx(beyond)
        assert found.effective_episodes == pytest.approx(effective, rel=0.2)


def test_short_episodes_come_twice_by_themselves():
    mdp = early_termination()
    certain = as_policy(mdp.target)
    log = mdp.sample(3_000, seed=0)
    assert repeated_episodes(log) < 0.002
    assert diagnose(ad.Problem(log, certain, 0.9), key=KEY).repeated_episodes < 0.002


def test_without_probabilities_of_the_log_the_rest_is_said():
    columns = columns_of(random_mdp().sample(30, seed=0))
    del columns["behaviour_log_prob"]
    found = diagnose(ad.Problem(ad.LoggedDataset(**columns), random_mdp().policy, 0.8), key=KEY)
    assert found.overlap is None
    assert found.unseen_actions == 0
    assert found.largest_reward_share > 0
