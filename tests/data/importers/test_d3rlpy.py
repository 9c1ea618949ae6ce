"""Episodes with the attributes of d3rlpy's; tests/adapters has those of d3rlpy itself."""

from types import SimpleNamespace

import numpy as np
import pytest

import average_dice as ad


def episode(first, length, terminated, **changed):
    given = {
        "observations": np.arange(first, first + length, dtype=np.float32)[:, None],
        "actions": np.zeros((length, 1), np.int32),
        "rewards": np.arange(length, dtype=np.float32)[:, None],
        "terminated": terminated,
    }
    return SimpleNamespace(**given | changed)


def test_a_truncated_episode_ends_one_step_earlier():
    data = SimpleNamespace(episodes=[episode(0, 3, True), episode(10, 3, False), episode(20, 1, True)])
    log = ad.from_d3rlpy(data)
    assert log.lengths.tolist() == [3, 2, 1]
    np.testing.assert_array_equal(log.observation[:, 0], [0, 1, 2, 10, 11, 20])
    np.testing.assert_array_equal(log.next_observation[:, 0], [1, 2, 2, 11, 12, 20])
    assert np.flatnonzero(log.terminated).tolist() == [2, 5]
    assert np.flatnonzero(log.truncated).tolist() == [4]


def test_observations_in_parts_and_discrete_actions_as_floats():
    parts = (np.zeros((3, 2)), np.ones((3, 1, 2)))
    space = SimpleNamespace(action_space=SimpleNamespace(name="DISCRETE"))
    one = episode(0, 3, True, observations=parts, actions=np.array([[1.0], [0.0], [2.0]]))
    log = ad.from_d3rlpy(SimpleNamespace(episodes=[one], dataset_info=space))
    np.testing.assert_array_equal(log.observation, np.tile([0, 0, 1, 1], (3, 1)))
    assert log.action.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ([], "no episode"),
        ([SimpleNamespace(observations=1)], "actions, rewards, terminated"),
        ([episode(0, 3, True, rewards=np.zeros(2))], "episode 0: the arrays differ in length"),
        ([episode(0, 3, True), episode(0, 3, True, rewards=np.zeros(0))], "the log is empty"),
    ],
)
def test_wrong_episodes(episodes, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.from_d3rlpy(SimpleNamespace(episodes=episodes))
