"""Data sets of d3rlpy itself: the log has the transitions that d3rlpy trains on."""

import numpy as np
import pytest

import average_dice as ad

d3rlpy = pytest.importorskip("d3rlpy")

NUM_ROWS = 30
GENERATOR = np.random.default_rng(0)
OBSERVATIONS = GENERATOR.standard_normal((NUM_ROWS, 3)).astype(np.float32)
REWARDS = GENERATOR.standard_normal(NUM_ROWS).astype(np.float32)
TERMINALS, TIMEOUTS = np.isin(np.arange(NUM_ROWS), (6, 20)), np.isin(np.arange(NUM_ROWS), (12, 29))


@pytest.mark.parametrize("discrete", [True, False])
def test_the_transitions_are_those_of_d3rlpy(discrete):
    actions = GENERATOR.integers(4, size=NUM_ROWS) if discrete else GENERATOR.standard_normal((NUM_ROWS, 2))
    data = d3rlpy.dataset.MDPDataset(OBSERVATIONS, actions.astype(np.int32 if discrete else np.float32), REWARDS,
                                     TERMINALS.astype(np.float32), TIMEOUTS.astype(np.float32))  # fmt: skip
    log = ad.from_d3rlpy(data)
    assert log.is_discrete == discrete
    assert log.num_transitions == data.transition_count
    assert log.lengths.tolist() == [episode.transition_count for episode in data.episodes]
    picker = d3rlpy.dataset.BasicTransitionPicker()
    row = 0
    for episode in data.episodes:
        for place in range(episode.transition_count):
            expected = picker(episode, place)
            np.testing.assert_array_equal(log.observation[row], expected.observation)
            np.testing.assert_array_equal(np.atleast_1d(log.action[row]), expected.action)
            assert log.reward[row] == expected.reward[0]
            assert log.terminated[row] == bool(expected.terminal)
            if not expected.terminal:
                np.testing.assert_array_equal(log.next_observation[row], expected.next_observation)
            row += 1
    assert row == log.num_transitions
    assert log.sha256 == ad.from_d3rlpy(data.episodes).sha256


def test_a_replay_buffer():
    episodes = [
        d3rlpy.dataset.Episode(OBSERVATIONS[:5], np.zeros((5, 1), np.int32), REWARDS[:5, None], terminated=True),
        d3rlpy.dataset.Episode(OBSERVATIONS[5:9], np.ones((4, 1), np.int32), REWARDS[5:9, None], terminated=False),
    ]
    log = ad.from_d3rlpy(d3rlpy.dataset.create_infinite_replay_buffer(episodes=episodes))
    assert log.lengths.tolist() == [5, 3]
    assert np.flatnonzero(log.terminated).tolist() == [4]
    np.testing.assert_array_equal(log.next_observation[5:], OBSERVATIONS[6:9])
