"""Recorded steps of Gymnasium: rows that only reset are no transitions, whatever the vector environment does."""

import numpy as np
import pytest

import average_dice as ad

gymnasium = pytest.importorskip("gymnasium")
AutoresetMode = gymnasium.vector.AutoresetMode

NUM_STEPS, NUM_ENVS = 60, 3


class Clock(gymnasium.Env):
    """The observation is [episode, time]. Every second episode terminates after 4 steps, the others run on.

    The reward is 100 · episode + time, so that every row shows where it comes from.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return np.array([self.episode, self.time], np.float64), {}

    def step(self, action):
        self.time += 1
        terminated = self.episode % 2 == 0 and self.time == 4
        return np.array([self.episode, self.time], np.float64), 100 * self.episode + self.time, terminated, False, {}


def recorded(mode):
    """What a loop over a vector environment records, with a time limit of 6 steps."""
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.wrappers.TimeLimit(Clock(), 6)] * NUM_ENVS, autoreset_mode=mode
    )
    rows = {name: [] for name in ("observations", "actions", "rewards", "terminations", "truncations")}
    after, final = [], []
    observation, _ = envs.reset(seed=0)
    generator = np.random.default_rng(0)
    for _ in range(NUM_STEPS):
        action = generator.integers(2, size=NUM_ENVS)
        following, reward, terminated, truncated, info = envs.step(action)
        for name, value in zip(rows, (observation, action, reward, terminated, truncated), strict=True):
            rows[name].append(np.copy(value))
        whole = following.copy()
        for place in np.flatnonzero(info.get("_final_obs", np.zeros(NUM_ENVS, bool))):
            whole[place] = info["final_obs"][place]
        after.append(np.copy(following))
        final.append(whole)
        observation = following.copy()
        if mode == AutoresetMode.DISABLED and (ended := terminated | truncated).any():
            observation = envs.reset(options={"reset_mask": ended})[0].copy()
    return rows, np.array(after), np.array(final), envs.metadata["autoreset_mode"]


def check_whole(log, lost=0):
    """Every row is of its own episode and time; terminated episodes have 4 steps, those of the time limit 6."""
    np.testing.assert_array_equal(log.observation[:, 1], log.step)
    np.testing.assert_array_equal(log.reward, 100 * log.observation[:, 0] + log.step + 1)
    last = log.starts + log.lengths - 1
    terminated = log.terminated[last]
    assert (log.observation[last[terminated], 0] % 2 == 0).all()
    assert (log.lengths[terminated] == 4).all()
    stopped = np.isin(log.episode[last], log.episode[last][np.append(np.diff(log.observation[last, 0]) < 0, True)])
    assert (log.lengths[~terminated & ~stopped] == 6 - lost).all()
    assert (~terminated & ~stopped).sum() > 10
    going_on = ~log.terminated
    np.testing.assert_array_equal(log.next_observation[going_on, 0], log.observation[going_on, 0])
    np.testing.assert_array_equal(log.next_observation[going_on, 1], log.step[going_on] + 1)


@pytest.mark.parametrize("with_next", [True, False])
def test_resets_on_the_next_step_are_removed(with_next):
    rows, after, _, mode = recorded(AutoresetMode.NEXT_STEP)
    log = ad.from_gymnasium(**rows, next_observations=after if with_next else None, autoreset=mode)
    check_whole(log)
    if with_next:
        ends = np.array(rows["terminations"]) | np.array(rows["truncations"])
        assert log.num_transitions == NUM_STEPS * NUM_ENVS - ends[:-1].sum()


def test_resets_on_the_same_step_with_the_final_observations():
    rows, _, final, mode = recorded(AutoresetMode.SAME_STEP)
    log = ad.from_gymnasium(**rows, next_observations=final, autoreset=mode)
    check_whole(log)
    assert log.num_transitions == NUM_STEPS * NUM_ENVS


@pytest.mark.parametrize("with_next", [True, False])
def test_resets_on_the_same_step_without_the_final_observations(with_next):
    """What `step` returns there belongs to the next episode: the truncated row is left out."""
    rows, after, _, mode = recorded(AutoresetMode.SAME_STEP)
    log = ad.from_gymnasium(**rows, next_observations=after if with_next else None, autoreset=mode)
    check_whole(log, lost=1)


def test_a_loop_that_resets():
    rows, after, _, mode = recorded(AutoresetMode.DISABLED)
    log = ad.from_gymnasium(**rows, next_observations=after, autoreset=mode)
    check_whole(log)
    assert log.num_transitions == NUM_STEPS * NUM_ENVS
    check_whole(ad.from_gymnasium(**rows, autoreset=mode), lost=1)


def test_one_environment_is_the_same_as_one_of_several():
    rows, after, _, _ = recorded(AutoresetMode.DISABLED)
    single = {name: np.array(values)[:, 1] for name, values in rows.items()}
    log = ad.from_gymnasium(**single, next_observations=after[:, 1], behaviour_log_prob=np.full(NUM_STEPS, -1.0))
    check = ad.from_gymnasium(**{name: np.array(values)[:, 1:2] for name, values in rows.items()},
                              next_observations=after[:, 1:2], behaviour_log_prob=np.full((NUM_STEPS, 1), -1.0),
                              autoreset=AutoresetMode.DISABLED)  # fmt: skip
    assert log.sha256 == check.sha256
    assert log.num_transitions == NUM_STEPS


def test_the_mode_of_a_vector_environment_must_be_given():
    rows, _, _, _ = recorded(AutoresetMode.NEXT_STEP)
    with pytest.raises(ad.SettingError, match=r"autoreset=envs\.metadata"):
        ad.from_gymnasium(**rows)
    with pytest.raises(ad.SettingError, match=r"must be a gymnasium\.vector\.AutoresetMode"):
        ad.from_gymnasium(**rows, autoreset="sometimes")


@pytest.mark.parametrize("truncated", [True, False])
def test_the_observation_after_the_last_step(truncated):
    steps = {
        "actions": [0, 1],
        "rewards": [0.0, 1.0],
        "terminations": [False, False],
        "truncations": [False, truncated],
    }
    log = ad.from_gymnasium([[0.0], [1.0], [2.0]], **steps)
    assert log.next_observation[:, 0].tolist() == [1.0, 2.0]
    assert log.truncated.tolist() == [False, True]
    assert ad.from_gymnasium([[0.0], [1.0]], **steps).num_transitions == 1


def test_after_several_episodes_it_may_be_that_of_a_reset():
    steps = {"actions": [0, 1], "rewards": [0.0, 1.0], "terminations": [True, False], "truncations": [False, True]}
    log = ad.from_gymnasium([[0.0], [1.0], [2.0]], **steps)
    assert log.num_transitions == 1
    assert "left_out" in log.metadata


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"observations": [[0.0]]}, "differ in length"),
        ({"rewards": np.zeros((2, 1, 1))}, "rewards must be"),
        ({"terminations": [0, 2]}, "terminations must be true or false"),
        ({"next_observations": np.zeros((2, 3))}, "observations have 1 numbers, next_observations 3"),
    ],
)
def test_wrong_arrays(changed, message):
    given = {"observations": [[0.0], [1.0]], "actions": [0, 1], "rewards": [0.0, 1.0], "terminations": [0, 1],
             "truncations": [0, 0]}  # fmt: skip
    assert ad.from_gymnasium(**given).num_transitions == 2
    with pytest.raises(ad.DatasetError, match=message):
        ad.from_gymnasium(**given | changed)


def test_states_by_number_are_categorical():
    steps = {"actions": [0, 1], "rewards": [0.0, 1.0], "terminations": [False, True], "truncations": [False, False]}
    assert ad.from_gymnasium([3, 5], **steps).categorical == (0,)
    assert ad.from_gymnasium([3.0, 5.0], **steps).categorical == ()
