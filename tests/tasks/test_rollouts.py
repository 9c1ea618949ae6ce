"""Rollouts, logs and true values, on an environment whose answers are known exactly."""

from types import SimpleNamespace

import numpy as np
import pytest

import average_dice as ad
from average_dice.policies import Network
from average_dice.tasks import TASKS, Task, collect, episode_returns, true_values
from average_dice.tasks.rollouts import gymnasium_envs, roll_out

COIN = Task("a coin", True, 1000, 0.0, 0.5, (0.5,), (20,))
# Action 1 with probability 0.8, whatever the state.
HEADS = ad.CategoricalPolicy(Network((np.zeros((2, 1)),), (np.log([0.2, 0.8]),)))


class Coins:
    """The reward is the action. A step terminates with probability 5 % and truncates after `max_steps`.

    It resets on the step after the end, as EnvPool's and Gymnasium's environments do, and its observation is the time.
    """

    def __init__(self, name, num_envs, max_steps, seed):
        self.generator = np.random.default_rng(seed)
        self.num_envs, self.max_steps = num_envs, max_steps
        self.closed = False
        self.action_space = SimpleNamespace(n=2)

    def reset(self):
        self.time = np.zeros(self.num_envs)
        self.ended = np.zeros(self.num_envs, bool)
        return self.time[:, None].copy(), {}

    def step(self, action):
        resetting = self.ended
        self.time = np.where(resetting, 0, self.time + 1)
        terminated = ~resetting & (self.generator.random(self.num_envs) < 0.05)
        truncated = ~resetting & ~terminated & (self.time >= self.max_steps)
        self.ended = terminated | truncated
        reward = np.where(resetting, 0.0, action)
        return self.time[:, None].copy(), reward, terminated, truncated, {}

    def close(self):
        self.closed = True


def coins(name, num_envs, max_steps, seed):
    return Coins(name, num_envs, max_steps, seed)


coins.__name__ = "gymnasium_envs"  # the versions in the metadata are those of this simulator


def log(num_transitions=500, max_steps=20, seed=0):
    return collect(
        COIN, HEADS, num_transitions=num_transitions, max_steps=max_steps, noise=0.5, seed=seed, make_envs=coins
    )


def test_a_log_has_just_enough_whole_episodes():
    found = log()
    assert found.num_transitions >= 500
    assert found.num_transitions - found.lengths[-1] < 500
    assert found.episode.max() == found.num_episodes - 1
    assert found.lengths.max() == 20
    # The observation is the time: no row is of another episode, and none was made while resetting.
    np.testing.assert_array_equal(found.observation[:, 0], found.step)
    np.testing.assert_array_equal(found.reward, found.action)


def test_short_episodes_are_not_preferred():
    """Keeping the episodes that end first would make them too short on average."""
    lengths = np.concatenate([log(num_transitions=2000, max_steps=100, seed=seed).lengths for seed in range(25)])
    expected = (1 - 0.95**100) / 0.05
    # The last episode of a log is the one that reaches the number and tends to be long: a bias of order 1/K.
    assert lengths.mean() == pytest.approx(expected, rel=0.08)


def test_log_probabilities_and_ratios_are_those_of_the_behaviour_policy():
    found = log(num_transitions=20_000)
    np.testing.assert_allclose(np.exp(found.behaviour_log_prob), np.where(found.action == 1, 0.65, 0.35))
    ratio = ad.Problem(found, HEADS, 0.9).ratio
    assert ratio.mean() == pytest.approx(1.0, abs=4 * ratio.std() / np.sqrt(len(ratio)))


def test_the_same_seed_gives_the_same_log_and_another_seed_another():
    assert log(seed=1).sha256 == log(seed=1).sha256
    assert log(seed=1).sha256 != log(seed=2).sha256


def test_true_values_include_rewards_after_the_time_limit():
    """J = (1 − γ) · 0.8 / (1 − 0.95 γ), whatever the time limit."""
    for truth in true_values(COIN, HEADS, discounts=(0.9, 0.99), num_episodes=4000, seed=0, make_envs=coins):
        expected = (1 - truth.discount) * 0.8 / (1 - 0.95 * truth.discount)
        assert truth.value == pytest.approx(expected, abs=4 * truth.standard_error)
        assert truth.standard_error < 0.02 * expected


def test_returns_up_to_a_limit():
    returns = episode_returns(COIN, HEADS, discounts=(1.0,), num_episodes=4000, max_steps=10, seed=0, make_envs=coins)
    expected = 0.8 * (1 - 0.95**10) / 0.05
    assert returns.mean() == pytest.approx(expected, abs=4 * returns.std() / np.sqrt(4000))


def test_environments_are_closed_with_the_iterator():
    made = []

    def keeping(*arguments):
        made.append(coins(*arguments))
        return made[0]

    steps = roll_out(COIN, HEADS, num_envs=2, max_steps=5, seed=0, make_envs=keeping)
    next(steps)
    steps.close()
    assert made[0].closed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_transitions": 0}, "at least one transition"),
        ({"max_steps": 0}, "at least one transition and one step"),
    ],
)
def test_nothing_to_collect(settings, message):
    with pytest.raises(ad.SettingError, match=message):
        log(**settings)


def test_policies_of_another_task_are_refused():
    three = ad.CategoricalPolicy(Network((np.zeros((3, 1)),), (np.zeros(3),)))
    gaussian = ad.GaussianPolicy(Network((np.zeros((1, 1)),), (np.zeros(1),)), [0.0])
    with pytest.raises(ad.PolicyError, match="chooses among 3 actions, a coin has 2"):
        next(roll_out(COIN, three, num_envs=2, max_steps=5, seed=0, make_envs=coins))
    with pytest.raises(ad.PolicyError, match="a coin has discrete actions"):
        next(roll_out(COIN, gaussian, num_envs=2, max_steps=5, seed=0, make_envs=coins))
    with pytest.raises(ad.PolicyError, match="Hopper-v5 has continuous actions, the policy has discrete ones"):
        TASKS["Hopper-v5"].behaviour(three)


@pytest.mark.parametrize("discounts", [(), (1.0,), (0.9, 0.0)])
def test_discounts_out_of_range(discounts):
    with pytest.raises(ad.SettingError, match="discounts must lie between"):
        true_values(COIN, HEADS, discounts=discounts, num_episodes=10, seed=0, make_envs=coins)


def test_a_real_environment_through_gymnasium():
    policy = ad.CategoricalPolicy(Network((np.array([[0.0] * 4, [0.1, 0.3, 4.0, 1.0]]),), (np.zeros(2),)))
    task = TASKS["CartPole-v1"]
    made = [
        collect(task, policy, num_transitions=300, max_steps=50, noise=0.3, seed=4, make_envs=gymnasium_envs)
        for _ in range(2)
    ]
    assert made[0].sha256 == made[1].sha256
    assert made[0].terminated.any()
    assert made[0].truncated.any()
    assert made[0].metadata["task"] == "CartPole-v1"
    # What is in the file is what the policy saw: float32 numbers, and their exact log-probabilities.
    observation = made[0].observation
    np.testing.assert_array_equal(observation, observation.astype(np.float32))
    expected = task.behaviour(policy).log_prob(observation, made[0].action)
    np.testing.assert_allclose(made[0].behaviour_log_prob, expected, rtol=0, atol=1e-12)
