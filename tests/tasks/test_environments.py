"""`ad.collect`: the log of any environment is what a plain loop with the same seed sees."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import average_dice as ad
from average_dice.policies import DeterministicPolicy, Network

# Leans with the pole, with some noise: it falls after some dozens of steps.
POLICY = ad.CategoricalPolicy(Network((np.array([[0.0] * 4, [0.0, 0.3, 4.0, 1.0]]),), (np.zeros(2),)))


def plain_loop(env, policy, seed, num_episodes):
    """The rewards and the flags of each episode, by a loop of its own."""
    environment_seed, action_seed = np.random.SeedSequence(seed).generate_state(2)
    generator = np.random.default_rng(action_seed)
    found = []
    for number in range(num_episodes):
        observation, _ = env.reset(seed=int(environment_seed)) if number == 0 else env.reset()
        rewards, ended = [], False
        while not ended:
            row = np.asarray(observation, np.float64)[None]
            action = int(policy.sample(row, generator=generator)[0])
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            ended = terminated or truncated
        found.append((sum(rewards), terminated, truncated, observation))
    return found


def test_a_log_is_that_of_a_plain_loop():
    log = ad.collect("CartPole-v1", POLICY, episodes=8, seed=3)
    env = gymnasium.make("CartPole-v1")
    expected = plain_loop(env, POLICY, 3, 8)
    env.close()
    last = log.starts + log.lengths - 1
    assert np.add.reduceat(log.reward, log.starts).tolist() == [total for total, *_ in expected]
    assert log.terminated[last].tolist() == [terminated for _, terminated, _, _ in expected]
    assert log.truncated[last].tolist() == [truncated for _, _, truncated, _ in expected]
    np.testing.assert_array_equal(log.next_observation[last], [final for *_, final in expected])
    np.testing.assert_array_equal(log.behaviour_log_prob, POLICY.log_prob(log.observation, log.action))
    assert log.metadata["environment"] == "CartPole-v1"


def test_time_limits_are_truncation():
    """A policy that balances well reaches the environment's own limit, and ours."""
    careful = ad.CategoricalPolicy(Network((np.array([[0.0] * 4, [5.0, 15.0, 100.0, 50.0]]),), (np.zeros(2),)))
    own = ad.collect("CartPole-v1", careful, episodes=1, seed=0)
    assert own.lengths.tolist() == [500]
    assert not own.terminated.any()
    assert own.truncated[-1]
    ours = ad.collect("CartPole-v1", careful, episodes=3, max_steps=20, seed=0)
    assert ours.lengths.tolist() == [20] * 3
    assert not ours.terminated.any()
    np.testing.assert_array_equal(ours.observation[:20], own.observation[:20])


class Corridor(gymnasium.Env):
    """Places 0 to 3, by number. Action 5 stays, 6 goes on; the last place terminates."""

    observation_space, action_space = spaces.Discrete(4), spaces.Discrete(2, start=5)
    closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        assert action in (5, 6)
        self.place += int(action) - 5
        return self.place, float(10 * self.place + action), self.place == 3, False, {}

    def close(self):
        self.closed = True


STAYS_OFTEN = ad.CategoricalPolicy(lambda rows: np.log(np.tile([0.6, 0.4], (len(rows), 1))))


def test_places_by_number():
    env = Corridor()
    log = ad.collect(env, STAYS_OFTEN, episodes=200, max_steps=6, seed=1)
    assert log.categorical == (0,)
    assert set(np.unique(log.action)) == {0, 1}
    np.testing.assert_array_equal(log.next_observation[:, 0], log.observation[:, 0] + log.action)
    np.testing.assert_array_equal(log.reward, 10 * log.next_observation[:, 0] + log.action + 5)
    np.testing.assert_array_equal(log.terminated, log.next_observation[:, 0] == 3)
    last = log.starts + log.lengths - 1
    np.testing.assert_array_equal(log.truncated[last], log.lengths == 6)
    np.testing.assert_allclose(np.exp(log.behaviour_log_prob), np.where(log.action == 1, 0.4, 0.6))
    assert 0 < log.terminated[last].mean() < 1
    assert not env.closed


def test_the_same_seed_gives_the_same_log_and_episodes_stay_whole():
    logs = [ad.collect(Corridor, STAYS_OFTEN, transitions=100, max_steps=6, seed=seed) for seed in (1, 1, 2)]
    assert logs[0].sha256 == logs[1].sha256 != logs[2].sha256
    assert 100 <= logs[0].num_transitions < 106


class Reach(gymnasium.Env):
    """A Dict of observations. The reward is the action that arrives here, which must be within its bounds."""

    observation_space = spaces.Dict({"goal": spaces.Discrete(3), "arm": spaces.Box(-9, 9, (2,), np.float64)})
    action_space = spaces.Box(-0.5, 0.5, (2, 1), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.time += 1
        return self._seen(), float(action.sum()), False, self.time == 5, {}

    def _seen(self):
        return {"goal": self.time % 3, "arm": np.array([self.time, -self.time], np.float64)}


def test_nested_observations_and_actions_beyond_the_bounds():
    wide = ad.GaussianPolicy(lambda rows: 0.1 * rows[:, 1:3], [0.0, 0.0])
    log = ad.collect(Reach, wide, episodes=20)
    # Gymnasium sorts the keys of a plain dictionary.
    order = [log.names.observations.index(name) for name in ("goal", "arm[0]", "arm[1]")]
    np.testing.assert_array_equal(log.observation[:, order], np.stack([log.step % 3, log.step, -log.step], axis=1))
    assert log.categorical == (order[0],)
    assert np.abs(log.action).max() > 0.5
    np.testing.assert_allclose(log.reward, np.clip(log.action, -0.5, 0.5).sum(axis=1), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(log.behaviour_log_prob, wide.log_prob(log.observation, log.action))
    assert log.lengths.tolist() == [5] * 20
    assert not log.terminated.any()


def test_a_deterministic_policy_has_no_density():
    still = DeterministicPolicy(lambda rows: np.zeros((len(rows), 2)))
    assert ad.collect(Reach, still, episodes=1).behaviour_log_prob is None


def test_the_estimate_from_the_log_of_the_policy_itself_is_its_mean_return():
    log = ad.collect(Corridor, STAYS_OFTEN, episodes=50)
    evaluation = ad.evaluate(log, STAYS_OFTEN, 1.0, estimators="is", bootstrap=0)
    expected = np.add.reduceat(log.reward, log.starts).mean()
    assert evaluation.estimates["is"].value == pytest.approx(expected, rel=1e-9)


class Choices(Corridor):
    action_space = spaces.MultiDiscrete([2, 2])


THREE = ad.CategoricalPolicy(lambda rows: np.tile([-np.inf, -np.inf, 0.0], (len(rows), 1)))
GAUSSIAN = ad.GaussianPolicy(lambda rows: np.zeros((len(rows), 1)), [0.0])


@pytest.mark.parametrize(
    ("env", "policy", "settings", "error", "message"),
    [
        (Corridor, STAYS_OFTEN, {}, ad.SettingError, "either episodes or transitions"),
        (Corridor, STAYS_OFTEN, {"episodes": 1, "transitions": 1}, ad.SettingError, "either episodes or transitions"),
        (Corridor, STAYS_OFTEN, {"episodes": 0}, ad.SettingError, "episodes must be at least 1"),
        (Corridor, STAYS_OFTEN, {"episodes": 1, "max_steps": 0}, ad.SettingError, "max_steps must be at least 1"),
        ("Nowhere-v0", STAYS_OFTEN, {"episodes": 1}, ad.SettingError, "Nowhere-v0: Gymnasium cannot make it"),
        (7, STAYS_OFTEN, {"episodes": 1}, ad.SettingError, "not a int"),
        (list, STAYS_OFTEN, {"episodes": 1}, ad.SettingError, "the function made a list"),
        (Choices, STAYS_OFTEN, {"episodes": 1}, ad.DatasetError, "must be Discrete or Box"),
        (Corridor, THREE, {"episodes": 1}, ad.PolicyError, "chose action 2, the environment has 0 to 1"),
        (Corridor, GAUSSIAN, {"episodes": 1}, ad.PolicyError, "takes one integer"),
        (Reach, GAUSSIAN, {"episodes": 1}, ad.PolicyError, "takes 2 floats"),
        (Corridor, 5, {"episodes": 1}, ad.PolicyError, "a policy is an object with log_prob"),
    ],
)
def test_what_cannot_be_collected(env, policy, settings, error, message):
    with pytest.raises(error, match=message):
        ad.collect(env, policy, **settings)
