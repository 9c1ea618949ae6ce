"""Misleading rewards: rare ones that the log does not show, late ones, and ones that were recorded wrongly."""

from dataclasses import replace

import numpy as np

from average_dice.testing.misleading.edits import booked_at_the_end, late_reward, rewards_by
from average_dice.testing.misleading.finite_mdps import (
    HiddenStateMDP,
    hidden_step,
    in_every_state,
    normal_noise,
    one_state,
    ordinary,
    ordinary_with_rewards_near_one,
)
from average_dice.testing.misleading.log import LogWithTruth, MisleadingLog, from_process, sample_log


def catastrophe(seed: int) -> LogWithTruth:
    """Action 1 pays 0.3 and costs 200 with probability 1/500. By chance the log shows no such cost."""

    def noise(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return np.where(action == 1, 0.4 - 200.0 * (generator.random(len(state)) < 0.002), 0.0)

    mdp = one_state([0.0, -0.1], [0.5, 0.5], [0.95, 0.05], reward_noise=noise)
    return sample_log(mdp, 150, seed, accept=lambda columns: bool(columns["reward"].min() > -100))


def long_tail(seed: int) -> LogWithTruth:
    """Action 1 pays a log-normal amount. Most of its mean is in amounts that a log of this size seldom shows."""
    size = 2.5

    def noise(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return np.where(action == 1, np.exp(size * generator.normal(size=len(state))) - np.exp(size**2 / 2), 0.0)

    mdp = one_state([0.0, np.exp(size**2 / 2)], [0.4, 0.6], [0.9, 0.1], reward_noise=noise)
    return sample_log(mdp, 100, seed)


def never_paid(seed: int) -> LogWithTruth:
    """Five times action 1 in a row pays 100. By chance the log never shows it, and every reward is zero."""
    num = 5
    transition = np.zeros((num, 2, num))
    transition[:, 0, 0] = 1.0
    transition[np.arange(num - 1), 1, np.arange(1, num)] = 1.0
    transition[num - 1, 1, 0] = 1.0
    reward = np.zeros((num, 2))
    reward[-1, 1] = 100.0
    target, behaviour = in_every_state([0.7, 0.3], num), in_every_state([0.9, 0.1], num)
    mdp = HiddenStateMDP(transition, reward, np.eye(num)[0], target, behaviour, discount=0.9)
    return sample_log(mdp, 60, seed, accept=lambda columns: not columns["reward"].any())


def late_fortune(seed: int) -> LogWithTruth:
    """Step 45 pays 500, and the log is truncated at 40."""
    reward = in_every_state([0.0, 1.0], 47)
    reward[45] = 500.0
    return sample_log(hidden_step(reward, [0.3, 0.7], [0.5, 0.5]), 200, seed)


def clipped(reward: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """To ±1."""
    return np.clip(reward, -1, 1)


def cents_from_the_middle(reward: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """Rewards in another unit from episode 100 on."""
    return np.where(episode >= 100, 100 * reward, reward)


def zero_where_high(reward: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """Rewards above 1.3 are lost."""
    return np.where(reward > 1.3, 0.0, reward)


_wide_rewards = replace(ordinary(5), reward=2 * ordinary(5).reward, reward_noise=normal_noise(1.0))
_noisy_rewards = ordinary_with_rewards_near_one(reward_noise=normal_noise(0.5))

LOGS = (
    MisleadingLog(
        "catastrophe",
        "a rare catastrophe, likelier under π, is by chance not in the log",
        catastrophe,
        visible=False,
    ),
    MisleadingLog("long-tail", "log-normal rewards, with most of their mean in the tail", long_tail),
    MisleadingLog("never-paid", "a sparse reward that the log never shows: all rewards are zero", never_paid),
    MisleadingLog(
        "late-fortune",
        "a very large reward five steps after truncation: no row shows it",
        late_fortune,
        visible=False,
    ),
    MisleadingLog(
        "booked-at-the-end",
        "the last row holds all rewards of the episode",
        from_process(ordinary_with_rewards_near_one(), 200, booked_at_the_end),
    ),
    MisleadingLog(
        "late-rewards", "rewards are one row late", from_process(ordinary_with_rewards_near_one(), 200, late_reward)
    ),
    MisleadingLog(
        "clipped-rewards", "rewards are clipped to ±1", from_process(_wide_rewards, 200, rewards_by(clipped))
    ),
    MisleadingLog(
        "units-change",
        "from the middle of the log on rewards are in cents",
        from_process(ordinary_with_rewards_near_one(), 200, rewards_by(cents_from_the_middle)),
    ),
    MisleadingLog(
        "high-rewards-missing",
        "rewards above 1.3 are lost and filled with zero",
        from_process(_noisy_rewards, 200, rewards_by(zero_where_high)),
    ),
)
