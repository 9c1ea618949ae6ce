"""LoggedDataset: order, derived columns, hash, read-only arrays."""

import numpy as np
import pytest

import average_dice as ad
from conftest import columns_of

OBSERVATION = np.array([[0.0], [1.0], [2.0], [5.0], [6.0]])
NEXT = np.array([[1.0], [2.0], [3.0], [6.0], [7.0]])
COLUMNS = {
    "observation": OBSERVATION,
    "action": np.array([0, 1, 0, 1, 1]),
    "reward": np.arange(5.0),
    "next_observation": NEXT,
    "terminated": np.array([False, False, True, False, False]),
}


def test_rows_in_any_order_are_sorted_by_episode_and_step():
    shuffle = np.array([4, 2, 0, 3, 1])
    columns = {name: values[shuffle] for name, values in COLUMNS.items()}
    episode, step = np.array([7, 7, 7, 9, 9]), np.array([0, 1, 2, 0, 1])
    log = ad.LoggedDataset.from_arrays(**columns, episode=episode[shuffle], step=step[shuffle])
    assert log.reward.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert log.starts.tolist() == [0, 3]
    assert log.lengths.tolist() == [3, 2]
    assert log.truncated.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize("ends", [np.array([False, False, True, False, True]), [2, 4], np.array([4, 2])])
def test_episode_ends_as_flags_or_positions(ends):
    log = ad.LoggedDataset.from_arrays(**COLUMNS, episode_ends=ends)
    assert log.episode.tolist() == [0, 0, 0, 1, 1]
    assert log.step.tolist() == [0, 1, 2, 0, 1]


def test_steps_are_counted_in_order_of_appearance_when_episodes_are_interleaved():
    order = np.array([0, 3, 1, 4, 2])
    columns = {name: values[order] for name, values in COLUMNS.items()}
    log = ad.LoggedDataset.from_arrays(**columns, episode=np.array([0, 1, 0, 1, 0]))
    assert log.step.tolist() == [0, 1, 2, 0, 1]
    assert log.reward.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either episode.*neither is given"),
        ({"episode": [0] * 5, "episode_ends": [4]}, "either episode.*both are given"),
        ({"episode": [[0]] * 5}, r"episode must be one integer per row, but has shape \(5, 1\)"),
        ({"episode_ends": [0, 0, 1, 0, 1]}, "holds only 0 and 1"),
        ({"episode_ends": [4], "step": [0] * 5}, "step cannot be combined with episode_ends"),
        ({"episode_ends": [2]}, "must include the last row"),
        ({"episode_ends": [5]}, "between 0 and 4"),
        ({"episode_ends": [True, True]}, "2 flags for 5 rows"),
        ({"episode_ends": ["a"]}, "boolean for each row"),
    ],
)
def test_invalid_episode_ends(arguments, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.LoggedDataset.from_arrays(**COLUMNS, **arguments)


def test_plain_lists_and_single_numbers_instead_of_lists():
    log = ad.LoggedDataset.from_arrays(
        observation=[0.0, 1.0],
        action=[0.5, -0.5],
        reward=[1, 2],
        next_observation=[1.0, 2.0],
        terminated=[0, 1],
        episode=[0, 0],
    )
    assert log.observation.shape == (2, 1)
    assert log.action.shape == (2, 1)
    assert not log.is_discrete
    assert log.terminated.dtype == bool


def test_vectors_of_data_frames_and_actions_of_wrappers():
    vectors = np.empty(2, object)
    vectors[:] = [np.array([0.0, 1.0]), np.array([1.0, 2.0])]
    log = ad.LoggedDataset.from_arrays(
        observation=vectors,
        action=np.array([[True], [False]]),
        reward=[1, 2],
        next_observation=[np.array([1.0, 2.0]), np.array([2.0, 3.0])],
        terminated=[0, 1],
        episode=[0, 0],
    )
    assert log.observation.tolist() == [[0.0, 1.0], [1.0, 2.0]]
    assert log.action.tolist() == [1, 0]


@pytest.mark.parametrize("metadata", [{"count": np.int64(3)}, {"when": object()}])
def test_metadata_that_json_cannot_hold(metadata):
    with pytest.raises(ad.DatasetError, match="metadata must be names with JSON values"):
        ad.LoggedDataset.from_arrays(**COLUMNS, episode_ends=[2, 4], metadata=metadata)


def test_columns_cannot_be_written_to(small_log):
    with pytest.raises(ValueError, match="read-only"):
        small_log.reward[0] = 1.0


def test_the_callers_arrays_stay_as_they_were(small_log):
    columns = columns_of(small_log)
    ad.LoggedDataset(**columns)
    columns["reward"][0] = 5.0  # still writeable


def test_the_hash_is_that_of_the_content(small_log):
    columns = columns_of(small_log)
    backwards = {name: values[::-1] for name, values in columns.items()}
    assert ad.LoggedDataset(**backwards, metadata={"other": 1}).sha256 == small_log.sha256
    columns["reward"][3] += 1e-9
    assert ad.LoggedDataset(**columns).sha256 != small_log.sha256
    del columns["target_log_prob"]
    assert ad.LoggedDataset(**columns).sha256 != small_log.sha256
