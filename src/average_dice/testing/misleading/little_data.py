"""Little data: few episodes, or episodes that are short for the discount."""

from dataclasses import replace

import numpy as np

from average_dice.testing.misleading.finite_mdps import normal_noise, ordinary
from average_dice.testing.misleading.hidden_states import key_and_lock
from average_dice.testing.misleading.log import MisleadingLog, from_process


def rarely_large(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
    """20 with probability 0.01."""
    return 20.0 * (generator.random(len(state)) < 0.01) - 0.2


LOGS = (
    MisleadingLog(
        "skewed-and-few",
        "twelve episodes; a reward of 20 with probability 0.01",
        from_process(replace(ordinary(4), reward_noise=rarely_large), 12),
    ),
    MisleadingLog("twelve-episodes", "an ordinary MDP, twelve episodes", from_process(ordinary(4), 12)),
    MisleadingLog(
        "ten-episodes-noisy",
        "ten episodes of the key and the lock, with noise on the rewards",
        from_process(key_and_lock(reward_noise=normal_noise(1.0)), 10),
    ),
    MisleadingLog(
        "discount-999",
        "an ordinary MDP, γ = 0.999, truncated at 100 steps",
        from_process(replace(ordinary(3), discount=0.999, truncations=(100,)), 400),
    ),
)
