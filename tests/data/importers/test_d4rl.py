"""D4RL's arrays: ends by a time limit are never terminations, and nothing is made up."""

import numpy as np
import pytest

import average_dice as ad

# Three episodes: terminated after 3 steps, ended by a time limit after 4, and the unfinished end of the file.
OBSERVATIONS = np.array([[0.0], [1], [2], [10], [11], [12], [13], [20], [21]])
AFTER = np.array([[1.0], [2], [3], [11], [12], [13], [14], [21], [22]])
DATA = {
    "observations": OBSERVATIONS,
    "actions": np.array([0, 1, 1, 0, 1, 0, 1, 1, 0]),
    "rewards": np.arange(9.0),
    "terminals": np.arange(9) == 2,
    "timeouts": np.arange(9) == 6,
}


def test_with_next_observations_every_row_is_kept():
    log = ad.from_d4rl({**DATA, "next_observations": AFTER})
    assert log.lengths.tolist() == [3, 4, 2]
    np.testing.assert_array_equal(log.next_observation, AFTER)
    np.testing.assert_array_equal(log.reward, DATA["rewards"])
    assert np.flatnonzero(log.terminated).tolist() == [2]
    assert np.flatnonzero(log.truncated).tolist() == [6, 8]
    assert "left_out" not in log.metadata


def test_without_them_truncated_episodes_end_one_step_earlier():
    log = ad.from_d4rl(DATA)
    assert log.lengths.tolist() == [3, 3, 1]
    np.testing.assert_array_equal(log.observation[:, 0], [0, 1, 2, 10, 11, 12, 20])
    np.testing.assert_array_equal(log.next_observation[:, 0], [1, 2, 2, 11, 12, 13, 21])
    np.testing.assert_array_equal(log.reward, [0, 1, 2, 3, 4, 5, 7])
    np.testing.assert_array_equal(log.action, [0, 1, 1, 0, 1, 0, 1])
    assert np.flatnonzero(log.terminated).tolist() == [2]
    assert np.flatnonzero(log.truncated).tolist() == [5, 6]
    assert log.metadata["left_out"].startswith("the last row of 2 truncated episodes")


def test_an_episode_of_one_truncated_row_disappears_and_the_others_keep_their_numbers():
    ends = np.isin(np.arange(9), (3, 6))
    log = ad.from_d4rl({**DATA, "timeouts": ends})
    assert np.unique(log.episode).tolist() == [0, 2, 3]
    assert log.metadata["left_out"].endswith("; 1 of them had no other row")
    with pytest.raises(ad.DatasetError, match="no row is left"):
        ad.from_d4rl({**DATA, "terminals": np.zeros(9), "timeouts": np.ones(9)})


def test_a_row_with_both_flags_is_terminated():
    log = ad.from_d4rl({**DATA, "timeouts": np.isin(np.arange(9), (2, 6))})
    assert log.lengths.tolist() == [3, 3, 1]
    assert log.terminated[2]


def test_the_form_of_qlearning_dataset_has_no_timeouts():
    """It drops the last row of episodes that end by a time limit: the observations do not follow each other there."""
    rows = [0, 1, 2, 3, 4, 5, 7]
    data = {name: values[rows] for name, values in DATA.items() if name != "timeouts"}
    log = ad.from_d4rl({**data, "next_observations": AFTER[rows]})
    assert log.lengths.tolist() == [3, 3, 1]
    assert np.flatnonzero(log.truncated).tolist() == [5, 6]
    np.testing.assert_array_equal(log.next_observation, AFTER[rows])


def test_a_time_limit_instead_of_timeouts():
    data = {name: values for name, values in DATA.items() if name != "timeouts"}
    assert ad.from_d4rl(data, max_steps=4).sha256 == ad.from_d4rl(DATA).sha256
    with pytest.raises(ad.DatasetError, match="neither timeouts nor next_observations"):
        ad.from_d4rl(data)
    with pytest.raises(ad.SettingError, match="at least 1"):
        ad.from_d4rl(data, max_steps=0)


@pytest.mark.parametrize("seed", range(10))
def test_without_next_observations_only_the_last_rows_of_truncated_episodes_are_missing(seed):
    generator = np.random.default_rng(seed)
    observations = np.arange(50.0)[:, None]
    data = {
        "observations": observations,
        "next_observations": observations + 1,
        "actions": generator.integers(3, size=50),
        "rewards": generator.standard_normal(50),
        "terminals": generator.random(50) < 0.15,
        "timeouts": generator.random(50) < 0.15,
        "costs": generator.standard_normal(50),
    }
    whole = ad.from_d4rl(data, extra=["costs"])
    found = ad.from_d4rl({name: data[name] for name in data if name != "next_observations"}, extra=["costs"])
    kept = ~(whole.truncated & ~whole.terminated)
    for name in ("episode", "step", "observation", "action", "reward", "terminated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[kept])
    np.testing.assert_array_equal(found.extra["costs"], data["costs"][kept])
    going_on = ~found.terminated
    np.testing.assert_array_equal(found.next_observation[going_on], whole.next_observation[kept][going_on])


@pytest.mark.parametrize("nested", [True, False])
def test_log_probabilities_of_the_behaviour_policy(nested):
    log_prob = -np.arange(1.0, 10.0)
    infos = {"infos": {"action_log_probs": log_prob}} if nested else {"infos/action_log_probs": log_prob}
    log = ad.from_d4rl({**DATA, **infos})
    np.testing.assert_array_equal(log.behaviour_log_prob, log_prob[[0, 1, 2, 3, 4, 5, 7]])
    assert ad.from_d4rl(DATA).behaviour_log_prob is None


def test_columns_of_replay_buffers():
    """Rewards and flags in lists of one, flags as floats, actions of several numbers."""
    actions = np.linspace(-1, 1, 18).reshape(9, 2)
    column = {name: DATA[name].astype(np.float32)[:, None] for name in ("rewards", "terminals", "timeouts")}
    log = ad.from_d4rl({**DATA, **column, "actions": actions})
    expected = ad.from_d4rl({**DATA, "actions": actions})
    assert log.sha256 == expected.sha256
    assert not log.is_discrete
    discrete = ad.from_d4rl({**DATA, "actions": DATA["actions"][:, None]})
    assert discrete.sha256 == ad.from_d4rl(DATA).sha256


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rewards": None}, "missing: rewards"),
        ({"rewards": np.zeros((9, 1, 1))}, "rewards must be one number per row"),
        ({"rewards": np.zeros(8)}, "differ in length: observations has 9"),
        ({"terminals": np.full(9, 0.5)}, "row 0: terminals is 0.5"),
        ({"terminals": np.zeros((9, 2))}, "terminals must be one number per row"),
        ({"observations": np.array(["a"] * 9)}, "observations must be numbers"),
        ({"observations": [[1.0], [1.0, 2.0]]}, "rows of different shapes"),
        ({"next_observations": np.zeros((9, 2))}, r"observations are \(9, 1\), next_observations \(9, 2\)"),
        ({"next_observations": AFTER + 1}, "next_observation is not the observation of the next row"),
        ({"rewards": np.full(9, np.nan)}, "reward is nan"),
    ],
)
def test_wrong_data(changed, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.from_d4rl({**DATA, **changed})


def test_an_empty_log():
    with pytest.raises(ad.DatasetError, match="empty"):
        ad.from_d4rl({name: values[:0] for name, values in DATA.items()})
