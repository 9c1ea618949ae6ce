"""A small log of patients with names of columns, categories and actions, for the tests of policies."""

import numpy as np

import average_dice as ad
from average_dice.data.names import Names

WARDS = ("er", "icu", "home")
NAMES = Names(("age", "ward"), ("wait", "treat"), {1: WARDS})
NUM_EPISODES, LENGTH = 40, 3


def named_log(**changes):
    """Forty episodes of three steps; the behaviour policy tosses a coin. The state after the end is (−1, 0)."""
    generator = np.random.default_rng(0)
    age = np.repeat(generator.integers(20, 90, NUM_EPISODES), LENGTH).astype(float)
    ward = generator.integers(0, 3, NUM_EPISODES * LENGTH).astype(float)
    observation = np.column_stack([age, ward])
    last = np.arange(len(age)) % LENGTH == LENGTH - 1
    action = generator.integers(0, 2, len(age))
    columns = {
        "observation": observation,
        "action": action,
        "reward": generator.normal(size=len(age)) + action * (age > 60),
        "next_observation": np.where(last[:, None], [-1.0, 0.0], np.roll(observation, -1, axis=0)),
        "terminated": last,
        "episode_ends": last,
        "behaviour_log_prob": np.full(len(age), np.log(0.5)),
        "categorical": (1,),
        "names": NAMES,
    }
    return ad.LoggedDataset.from_arrays(**columns | changes)


def continuous_log(width=2):
    """Thirty one-step episodes with continuous actions and observations of three numbers."""
    generator = np.random.default_rng(1)
    observation = generator.normal(size=(30, 3))
    return ad.LoggedDataset.from_arrays(
        observation=observation,
        action=generator.uniform(-0.9, 0.9, size=(30, width)),
        reward=generator.normal(size=30),
        next_observation=observation,
        terminated=np.ones(30, bool),
        episode=np.arange(30),
        behaviour_log_prob=np.zeros(30),
    )


def probabilities(policy, observations):
    """π(·|s) of a discrete policy."""
    actions, weights = policy.weighted_actions(observations, num_draws=1, generator=np.random.default_rng(0))
    np.testing.assert_array_equal(actions[0], np.arange(weights.shape[1]))
    return weights
