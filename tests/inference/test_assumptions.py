"""Tests of assumptions: quiet on sound logs, loud where one of them is broken."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.inference import assumptions
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.rules.base import SIGNIFICANT
from average_dice.testing.exact_mdps import (
    ALL,
    ExactMDP,
    early_termination,
    random_mdp,
    support_hole,
    truncated,
    unseen_action,
)

KEY = jax.random.key(0)


def distances(problem):
    return {
        "balance": assumptions.balance(problem, key=KEY).distance,
        "memory": assumptions.memory(problem),
        "truncation": assumptions.truncation(problem.dataset),
        "trend": assumptions.trend(problem),
        "neighbours": assumptions.neighbours(problem),
    }


@pytest.mark.parametrize("mdp", [*ALL, replace(truncated(), early_truncations=(3, 7))], ids=lambda mdp: mdp.name)
def test_sound_logs_are_quiet(mdp: ExactMDP):
    """Twenty logs of each MDP; the largest of a hundred normal numbers is 2.5 on average."""
    found = [distances(mdp.problem(60, seed)) for seed in range(20)]
    assert max(max(one.values()) for one in found) < SIGNIFICANT


def lottery(num_actions: int) -> ExactMDP:
    """One step, `num_actions` actions; π takes one of them, which differs between states."""
    generator = np.random.default_rng(3)
    return ExactMDP(
        name=f"one of {num_actions}",
        transition=np.zeros((4, num_actions, 4)),
        reward=generator.normal(size=(4, num_actions)),
        start=np.full(4, 0.25),
        target=np.eye(num_actions)[generator.integers(num_actions, size=4)],
        behaviour=np.full((4, num_actions), 1 / num_actions),
        discount=0.9,
        truncation=1,
    )


def with_greedy_target(mdp: ExactMDP, explored: float) -> ExactMDP:
    """π takes the action with the larger reward; μ does, too, except for a share of uniform actions."""
    num_actions = mdp.reward.shape[1]
    target = np.eye(num_actions)[mdp.reward.argmax(axis=1)]
    return replace(mdp, target=target, behaviour=(1 - explored) * target + explored / num_actions)


@pytest.mark.parametrize("explored", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("mdp", [*ALL, lottery(10), lottery(50)], ids=lambda mdp: mdp.name)
def test_sound_logs_of_deterministic_policies_are_quiet(mdp: ExactMDP, explored: float):
    """Also if hardly any row has π's action, or hardly any has another one."""
    mdp = with_greedy_target(mdp, explored)
    for num_episodes in (12, 40):
        for seed in range(10):
            problem = mdp.problem(num_episodes, seed)
            found = [assumptions.mean_ratio(problem)[1], assumptions.worst_step(problem)[2]]
            found += [assumptions.balance(problem, key=KEY).distance, assumptions.memory(problem)]
            assert max(found) < SIGNIFICANT


def test_the_implied_spread_is_that_of_the_ratio():
    """ρ is 4 with probability 1/4, else 0: its standard deviation is √3, in every log that has π's action at all."""
    mdp = with_greedy_target(lottery(4), 1.0)
    problem = mdp.problem(1_000, seed=0)
    assert assumptions.spread_implied(problem) == pytest.approx(np.sqrt(3))
    assert problem.ratio.std() == pytest.approx(np.sqrt(3), rel=0.05)
    taken = np.flatnonzero(problem.ratio > 0)
    few = problem.dataset.select_episodes(np.append(np.flatnonzero(problem.ratio == 0), taken[:1]))
    assert assumptions.spread_implied(replace(problem, dataset=few)) == pytest.approx(np.sqrt(3))
    none = problem.dataset.select_episodes(np.flatnonzero(problem.ratio == 0))
    assert assumptions.spread_implied(replace(problem, dataset=none)) == np.inf
    assert assumptions.spread_implied(random_mdp().problem(50, seed=0)) == 0.0  # no zeros: the log's own spread


def test_wrong_probabilities_of_a_deterministic_policy_are_found():
    mdp = with_greedy_target(random_mdp(), 0.3)
    problem = mdp.problem(100, seed=0)
    wrong = replace(problem.dataset, behaviour_log_prob=problem.dataset.behaviour_log_prob - np.log(1.2))
    assert assumptions.mean_ratio(replace(problem, dataset=wrong))[1] > SIGNIFICANT


def test_the_balance_is_the_share_of_the_policy_that_the_log_never_shows():
    """π takes the unseen action with 4 % at every step: so often, discounted, it leaves what the log shows."""
    problem = unseen_action().problem(200, seed=0)
    found = assumptions.balance(problem, key=KEY)
    exact = sum(0.04 * 0.95**step for step in range(60))  # W is over its mean: nobody is gone
    assert found.distance > SIGNIFICANT
    assert found.missing == pytest.approx(exact, rel=1e-6)
    assert found.excess == pytest.approx(0.0, abs=1e-9)


def test_a_hole_in_one_state_is_found():
    """0.4 of π is missing in a state that takes 5 % of the rows: the mean ratio is 0.98."""
    problem = support_hole().problem(200, seed=0)
    found = assumptions.balance(problem, key=KEY)
    assert 0.97 < problem.mean_ratio < 0.99
    assert found.distance > 4 * SIGNIFICANT
    assert found.missing > 0.2


def test_probabilities_that_are_wrong_in_opposite_ways_are_found():
    """Recorded as uniform: the mean over states stays near 1."""
    mdp = random_mdp()
    data = mdp.sample(200, seed=0)
    problem = ad.Problem(
        replace(data, behaviour_log_prob=np.full(data.num_transitions, np.log(0.5))), mdp.policy, mdp.discount
    )
    assert assumptions.balance(problem, key=KEY).distance > SIGNIFICANT


def test_the_error_of_a_mean_by_hand():
    values = np.array([1.0, 3.0] * 10)
    assert assumptions.distance_from_zero(values) == pytest.approx(2 / (values.std(ddof=1) / np.sqrt(20)))
    assert assumptions.distance_from_zero(-values) == assumptions.distance_from_zero(values)
    assert assumptions.distance_from_zero(-values, one_sided=True) == 0
    assert assumptions.distance_from_zero(values[:9]) == 0  # too few
    assert assumptions.distance_from_zero(np.ones(20)) == assumptions.FURTHEST


def test_actions_with_a_memory_are_found():
    """Each episode repeats one action, which is recorded as drawn with a half."""
    mdp = replace(random_mdp(), target=np.tile([0.3, 0.7], (5, 1)))
    data = mdp.sample(60, seed=0)
    action = np.repeat(np.random.default_rng(0).integers(0, 2, 60), data.lengths)
    stuck = replace(data, action=action, behaviour_log_prob=np.full(data.num_transitions, np.log(0.5)))
    assert assumptions.memory(ad.Problem(stuck, mdp.policy, 0.9)) > SIGNIFICANT


def test_truncation_that_looks_at_the_state_is_found():
    """Whoever comes to state 0 is truncated every other time."""
    mdp = early_termination()
    data = mdp.sample(300, seed=0)
    leaves = (data.observation[:, 0] == 1) & (np.random.default_rng(0).random(data.num_transitions) < 0.5)
    before = np.cumsum(leaves) - leaves
    first = before[data.starts]
    kept = before == np.repeat(first, data.lengths)
    names = ("episode", "step", "observation", "action", "reward", "next_observation", "terminated")
    columns = {name: getattr(data, name)[kept] for name in (*names, "behaviour_log_prob")}
    left = ad.LoggedDataset.from_arrays(**columns)
    assert assumptions.truncation(left) > SIGNIFICANT
    assert assumptions.truncation(data) == 0  # nobody is truncated


def test_a_trend_and_neighbours_that_are_alike_are_found():
    problem = random_mdp().problem(100, seed=0)
    data = problem.dataset
    episode = problem.episode_index
    drifting = replace(data, reward=data.reward + 0.02 * episode)
    person = np.random.default_rng(0).normal(size=20)[episode // 5]
    assert assumptions.trend(ad.Problem(drifting, problem.policy, 0.8)) > SIGNIFICANT
    alike = replace(data, reward=data.reward + person)
    assert assumptions.neighbours(ad.Problem(alike, problem.policy, 0.8)) > SIGNIFICANT


def test_what_cannot_be_tested_is_none():
    mdp = truncated()
    data = replace(mdp.sample(30, seed=0), behaviour_log_prob=None)
    found = diagnose(ad.Problem(data, mdp.policy, mdp.discount), key=KEY)
    assert found.balance is None
    assert found.memory is None
    assert found.trend is not None
