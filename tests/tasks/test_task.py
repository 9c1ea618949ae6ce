"""Tasks and their behaviour policies."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.tasks import TASKS, find_task
from sample_policies import OBSERVATIONS, network


def test_seven_tasks_with_the_papers_grids():
    assert list(TASKS) == [
        "CartPole-v1",
        "Acrobot-v1",
        "MountainCarContinuous-v0",
        "Hopper-v5",
        "HalfCheetah-v5",
        "Walker2d-v5",
        "Ant-v5",
    ]
    for task in TASKS.values():
        assert task.noise in task.noises
        assert 100 in task.lengths
        assert task.discrete == (task.noise < 1)


def test_the_behaviour_policies_are_those_of_the_paper():
    discrete = ad.CategoricalPolicy(network(4))
    mixed = TASKS["CartPole-v1"].behaviour(discrete)
    expected = 0.7 * np.exp(discrete.log_probabilities(OBSERVATIONS)) + 0.3 / 4
    np.testing.assert_allclose(np.exp(mixed.log_probabilities(OBSERVATIONS)), expected)
    continuous = ad.GaussianPolicy(network(2), [0.0, -1.0])
    wide = TASKS["Hopper-v5"].behaviour(continuous)
    np.testing.assert_allclose(np.exp(2 * wide.log_std), 2 * np.exp(2 * continuous.log_std))
    narrow = TASKS["Hopper-v5"].behaviour(continuous, 1.4)
    np.testing.assert_allclose(np.exp(2 * narrow.log_std), 1.4 * np.exp(2 * continuous.log_std))


def test_unknown_tasks():
    with pytest.raises(ad.SettingError, match=r"unknown task Hopper-v1\. Did you mean Hopper-v5\? Known are "):
        find_task("Hopper-v1")
