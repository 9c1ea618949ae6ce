"""The table with shrinkage against its own definition, and its error against a finite difference."""

from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators._shared.table_td import TableTD
from average_dice.features.repeated_states import RepeatedStates
from average_dice.problem import Problem
from average_dice.resampling import Resample
from average_dice.testing.exact_mdps import early_termination, truncated

STRENGTHS = (3.0, 7.0)


def fitted_by_iteration(problem, counts, strengths):
    """Repeated shrunken means, row by row, until they no longer change: v by state, and the mean of all targets."""
    data, (first, second) = problem.dataset, strengths
    names = {tuple(row): number for number, row in enumerate(np.unique(data.observation, axis=0))}
    state = np.array([names[tuple(row)] for row in data.observation])
    after = np.array([names.get(tuple(row), -1) for row in data.next_observation])
    policy = np.zeros((len(names), 2))
    for action in (0, 1):
        policy[:, action] = np.exp(problem.policy.log_prob(np.array(list(names)), np.full(len(names), action)))
    v, whole = np.zeros(len(names)), 0.0
    for _ in range(3_000):
        following = np.where(after < 0, whole, v[after])
        target = problem.normaliser * data.reward + problem.discount * np.where(data.terminated, 0.0, following)
        whole = counts @ target / counts.sum()
        q = np.empty(policy.shape)
        for one in range(len(names)):
            here = state == one
            towards = (counts[here] @ target[here] + second * whole) / (counts[here].sum() + second)
            for action in (0, 1):
                pair = here & (data.action == action)
                q[one, action] = (counts[pair] @ target[pair] + first * towards) / (counts[pair].sum() + first)
        v = (policy * q).sum(axis=1)
    return v, whole


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_the_solution_is_the_limit_of_fitted_q_iteration(discount):
    problem = Problem(early_termination().sample(25, seed=0), early_termination().policy, discount)
    chosen = np.array([0, 0, 3, *range(5, 25)])
    resample = Resample.of(problem, chosen)
    found = TableTD.of(problem).solve(STRENGTHS, resample)
    v, whole = fitted_by_iteration(problem, resample.counts[problem.episode_index], STRENGTHS)
    order = [
        int(np.flatnonzero((found.equations.states.observations == row).all(axis=1))[0])
        for row in np.unique(problem.dataset.observation, axis=0)
    ]
    np.testing.assert_allclose(found.values[order], v, rtol=1e-9)
    assert found.values[-1] == pytest.approx(whole, rel=1e-9)


def test_the_share_of_actions_that_are_not_logged():
    """State 0 has three rows, all with action 0; state 1 has both. π's 0.3 of action 1 counts in three rows of five."""
    log = ad.LoggedDataset.from_arrays(
        observation=np.eye(2)[[0, 0, 0, 1, 1]],
        action=[0, 0, 0, 0, 1],
        reward=np.zeros(5),
        next_observation=np.zeros((5, 2)),
        terminated=np.ones(5, bool),
        episode=np.arange(5),
    )
    policy = ad.CategoricalPolicy(lambda observations: np.log(np.tile([0.7, 0.3], (len(observations), 1))))
    assert TableTD.of(Problem(log, policy, 0.0)).unlogged == pytest.approx(0.3 * 3 / 5)


def test_an_unknown_state_has_the_mean_of_all_targets():
    problem = truncated().problem(20, seed=0)
    solution = TableTD.of(problem).solve(STRENGTHS, Resample.everything(problem))
    nowhere = np.full((1, 5), 7.0)
    assert solution.critic().v(nowhere)[0] == solution.critic().q(nowhere, np.array([1]))[0] == solution.values[-1]


def test_values_on_rows_are_those_of_the_critic():
    problem = truncated().problem(30, seed=1)
    data = problem.dataset
    critic = TableTD.of(problem).solve(STRENGTHS, Resample.everything(problem)).critic()
    np.testing.assert_array_equal(critic.logged.q, critic.q(data.observation, data.action))
    np.testing.assert_array_equal(critic.logged.start, critic.v(problem.start_observation))
    policy = np.exp([problem.policy.log_prob(data.observation, np.full(len(data.action), a)) for a in (0, 1)])
    mean = sum(policy[a] * critic.q(data.observation, np.full(len(data.action), a)) for a in (0, 1))
    np.testing.assert_allclose(critic.v(data.observation), mean, atol=1e-12)


def test_the_error_is_the_effect_of_an_episode():
    """A finite difference in how often an episode counts; without leaving the row itself out of its mean."""
    problem = early_termination().problem(400, seed=0)
    equations, whole = TableTD.of(problem), Resample.everything(problem)
    error = equations.solve((50.0, 50.0), whole).error()

    def value(counts):
        solution = equations.solve((50.0, 50.0), replace(whole, counts=counts))
        return counts @ solution.values[equations.states.start] / counts.sum()

    step, effects = 1e-5, []
    starts = equations.solve((50.0, 50.0), whole).values[equations.states.start]
    for episode in range(40):
        more = np.ones(400)
        more[episode] += step
        of_start = (starts[episode] - starts.mean()) / 400
        effects.append((value(more) - value(np.ones(400))) / step - of_start)
    np.testing.assert_allclose(error[:40] / 400, effects, rtol=0.1, atol=2e-5)


def test_strengths_follow_the_data():
    """Rewards that depend on the pair alone need no shrinkage; rewards that are noise want all of it."""
    mdp = early_termination()
    exact = mdp.problem(400, seed=0)
    noise = np.random.default_rng(0).normal(size=exact.dataset.num_transitions)
    noisy = Problem(replace(exact.dataset, reward=noise), exact.policy, 0.0)
    assert TableTD.of(Problem(exact.dataset, exact.policy, 0.0)).choose_strengths()[0] == 0.5
    assert TableTD.of(noisy).choose_strengths()[0] >= 50


def test_states_repeat_where_other_episodes_have_them():
    problem = truncated().problem(50, seed=0)
    states = RepeatedStates.of(problem)
    assert states.repeat
    assert states.number == 5
    np.testing.assert_array_equal(states.observations[states.logged], problem.dataset.observation)
    measured = problem.dataset.observation + np.random.default_rng(0).normal(size=problem.dataset.observation.shape)
    following = measured[np.minimum(np.arange(len(measured)) + 1, len(measured) - 1)]
    unique = Problem(replace(problem.dataset, observation=measured, next_observation=following), problem.policy, 0.9)
    assert not RepeatedStates.of(unique).repeat
