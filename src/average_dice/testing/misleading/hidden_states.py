"""Hidden states: the log does not show something on which rewards or transitions depend.

A hidden step, a hidden context of the whole episode, or a memory of past actions. Methods that value observed states
are then biased; importance ratios of whole histories are not, where the recorded probabilities are right.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from average_dice.testing.misleading.finite_mdps import (
    HiddenStateMDP,
    hidden_context,
    hidden_step,
    in_every_state,
    normal_noise,
    one_state,
    ordinary,
)
from average_dice.testing.misleading.log import LogWithTruth, MisleadingLog, from_process, sample_log


def hidden_clock(seed: int, *, truncations: tuple[int, ...], num: int, discount: float = 0.9) -> LogWithTruth:
    """Action 1 costs 1 before step 5 and pays 3 from then on; all states look the same."""
    reward = np.array([[0.0, -1.0]] * 5 + [[0.0, 3.0]])
    return sample_log(
        hidden_step(reward, [0.3, 0.7], [0.5, 0.5], truncations=truncations, discount=discount), num, seed
    )


def hidden_wave(seed: int) -> LogWithTruth:
    """Rewards are a cosine of the step."""
    wave = np.cos(2 * np.pi * np.arange(31) / 10)
    return sample_log(hidden_step(np.stack([-wave, 2 * wave], axis=1), [0.3, 0.7], [0.6, 0.4]), 40, seed)


def key_and_lock(**settings: Any) -> HiddenStateMDP:
    """Hall and lock, each with or without a key that is not observed. Action 1 takes the key, and opens the lock."""
    transition = np.zeros((4, 2, 4))  # hall, lock, hall with key, lock with key
    transition[0, 0], transition[0, 1] = [0.8, 0.2, 0, 0], [0.5, 0.1, 0.4, 0]
    transition[1] = transition[3, 1] = [1, 0, 0, 0]
    transition[2], transition[3, 0] = [0, 0, 0.8, 0.2], [0, 0, 1, 0]
    settings = {"target": [0.3, 0.7], "behaviour": [0.6, 0.4], "discount": 0.9, **settings}
    target, behaviour = (in_every_state(settings.pop(name), 4) for name in ("target", "behaviour"))
    reward = np.array([[0.0, -0.1], [0.0, -1.0], [0.0, -0.1], [0.0, 5.0]])
    observed_as = np.array([0, 1, 0, 1])
    return HiddenStateMDP(transition, reward, np.eye(4)[0], target, behaviour, observed_as=observed_as, **settings)


def repeating_pays(**settings: Any) -> HiddenStateMDP:
    """Two observed states that alternate at random. Repeating the action before pays 1, changing it costs 1."""
    transition = np.zeros((4, 2, 4))  # [observed state, action before]
    for action in (0, 1):
        transition[:, action, action::2] = 0.5
    reward = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    settings = {"discount": 0.9, "observed_as": np.array([0, 0, 1, 1]), **settings}
    return HiddenStateMDP(transition, reward, np.full(4, 0.25), **settings)


def confounder_of_episode(seed: int) -> LogWithTruth:
    """In good contexts action 1 is likelier. The log records its probability over all contexts."""
    good = one_state([0, 1], [0.3, 0.7], [0.2, 0.8])
    bad = one_state([0, -1], [0.3, 0.7], [0.8, 0.2])
    return sample_log(hidden_context([bad, good], recorded=in_every_state([0.5, 0.5], 2)), 200, seed)


def confounder_of_step(seed: int) -> LogWithTruth:
    """A hidden cause, independent at every step, changes both the probability of action 1 and its reward."""
    mdp = HiddenStateMDP(
        np.full((2, 2, 2), 0.5),
        np.array([[0.0, -1.0], [0.0, 1.0]]),
        np.full(2, 0.5),
        in_every_state([0.3, 0.7], 2),
        np.array([[0.8, 0.2], [0.2, 0.8]]),
        discount=0.9,
        observed_as=np.zeros(2, int),
        recorded=in_every_state([0.5, 0.5], 2),
    )
    return sample_log(mdp, 200, seed)


def drift(seed: int) -> LogWithTruth:
    """Five periods, each with lower rewards than the one before."""
    periods = [replace(ordinary(5), reward=ordinary(5).reward - 0.5 * period) for period in range(5)]
    mdp, num = replace(hidden_context(periods), discount=0.9), 250
    first = 5 * (np.arange(num) * 5 // num) + np.random.default_rng(seed).integers(5, size=num)
    return sample_log(mdp, num, seed, first=first, truth_of=replace(periods[-1], start=np.full(5, 0.2)))


def simpson(seed: int) -> LogWithTruth:
    """In good contexts action 1 is likelier, and it always costs 0.3. All probabilities are recorded correctly."""
    bad = one_state([0, -0.3], [0.3, 0.7], [0.8, 0.2])
    good = one_state([2, 1.7], [0.3, 0.7], [0.2, 0.8])
    return sample_log(hidden_context([bad, good]), 200, seed)


def first_choice_decides(seed: int) -> LogWithTruth:
    """The first action decides all later rewards, no observation shows it, and μ seldom takes action 1."""
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1, :, 1] = transition[2, :, 2] = 1.0
    mdp = HiddenStateMDP(
        transition,
        np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]]),
        np.eye(3)[0],
        in_every_state([0.5, 0.5], 3),
        np.array([[0.97, 0.03], [0.6, 0.4], [0.6, 0.4]]),
        discount=0.9,
        observed_as=np.zeros(3, int),
        reward_noise=normal_noise(1.0),
    )
    return sample_log(mdp, 200, seed)


def one_action_an_episode(seed: int) -> LogWithTruth:
    """μ samples one action for the whole episode and records ½ at every step."""
    mdp = repeating_pays(target=in_every_state([0.5, 0.5], 4), behaviour=in_every_state([0.5, 0.5], 4))
    fixed = [
        replace(mdp, behaviour=in_every_state(action, 4), start=np.array([0.5 * action[0], 0.5 * action[1]] * 2))
        for action in np.eye(2)
    ]
    return sample_log(hidden_context(fixed, recorded=in_every_state([0.5, 0.5], 8)), 200, seed, truth_of=mdp)


LOGS = (
    *(
        MisleadingLog(
            f"hidden-clock-{name}-{num}{'-95' if discount > 0.9 else ''}",
            f"rewards change at a hidden step 5; {num} episodes, truncated at {lengths}, γ = {discount}",
            partial(hidden_clock, truncations=truncations, num=num, discount=discount),
        )
        for name, lengths, truncations in (
            ("even", "40", (40,)),
            ("three", "3, 10 or 40", (3, 10, 40)),
            ("short", "2 … 6 or 40", (2, 3, 4, 5, 6, 40)),
        )
        for num, discount in ((200, 0.9), (2_000, 0.9), (200, 0.95))
    ),
    MisleadingLog(
        "few-go-on",
        "12 of 200 episodes go on after step 6; rewards change at a hidden step 5",
        partial(hidden_clock, truncations=(2, 3, 4, 5, 6) * 3 + (40,), num=200),
    ),
    MisleadingLog("hidden-step-40", "rewards are a cosine of the hidden step; 40 episodes", hidden_wave),
    MisleadingLog("key-and-lock", "the key that opens the lock is not observed", from_process(key_and_lock(), 200)),
    MisleadingLog("key-and-lock-40", "the same with 40 episodes", from_process(key_and_lock(), 40)),
    MisleadingLog(
        "confounder-of-episode", "a hidden trait of the episode changes actions and rewards", confounder_of_episode
    ),
    MisleadingLog(
        "confounder-of-step",
        "a hidden cause, independent at every step, changes action and reward and leaves no other trace",
        confounder_of_step,
        visible=False,
    ),
    MisleadingLog("drift", "rewards fall from episode to episode; the truth is that of the last ones", drift),
    MisleadingLog(
        "simpson", "μ prefers action 1 in good contexts and avoids it in bad ones; all is recorded correctly", simpson
    ),
    MisleadingLog(
        "first-choice-decides",
        "a first action seen in 3 % of the episodes decides all later rewards, and no observation shows it",
        first_choice_decides,
    ),
    MisleadingLog(
        "one-action-an-episode",
        "μ repeats one action for the whole episode and records ½ each time",
        one_action_an_episode,
    ),
)
