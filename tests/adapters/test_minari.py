"""Data sets that Minari itself has written, read back with the same numbers."""

import json
import os

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import average_dice as ad

minari = pytest.importorskip("minari")
h5py = pytest.importorskip("h5py")
from minari.data_collector import EpisodeBuffer  # noqa: E402


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


class WithProbability(minari.StepDataCallback):
    """Adds log μ(a|s) of the uniform policy to the infos, 7 in that of a reset."""

    def __call__(self, env, **given):
        step = super().__call__(env, **given)
        step["info"] = {"log_prob": np.log(0.5) if "action" in given else 7.0}
        return step


def collected(name, num_episodes=6, max_steps=12, **settings):
    """A data set of a random policy, and what a plain loop saw."""
    env = minari.DataCollector(gymnasium.make(name, max_episode_steps=max_steps), **settings)
    env.action_space.seed(0)
    seen = []
    for episode in range(num_episodes):
        observation, _ = env.reset(seed=episode)
        step = 0
        while True:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            seen.append((episode, step, observation, action, reward, after, terminated, truncated))
            observation, step = after, step + 1
            if terminated or truncated:
                break
    dataset = env.create_dataset("test/log-v0", algorithm_name="random", author="a", author_email="a@b.c",
                                 code_permalink="none", description="none")  # fmt: skip
    env.close()
    return dataset, [np.array(column) for column in zip(*seen, strict=True)]


def check(log, seen):
    episode, step, observation, action, reward, after, terminated, truncated = seen
    np.testing.assert_array_equal(log.episode, episode)
    np.testing.assert_array_equal(log.step, step)
    np.testing.assert_array_equal(log.observation, observation.reshape(len(step), -1).astype(np.float64))
    np.testing.assert_array_equal(log.action, action)
    np.testing.assert_array_equal(log.reward, np.asarray(reward, np.float64))
    np.testing.assert_array_equal(log.next_observation, after.reshape(len(step), -1).astype(np.float64))
    np.testing.assert_array_equal(log.terminated, terminated)
    np.testing.assert_array_equal(log.truncated, truncated)


@pytest.mark.filterwarnings("ignore")
def test_cart_pole_in_every_form(datasets):
    dataset, seen = collected("CartPole-v1")
    folder = datasets / "test" / "log-v0"
    main = folder / "data" / "main_data.hdf5"
    for log in (
        ad.from_minari(dataset),
        ad.from_minari("test/log-v0"),
        ad.from_minari(folder),
        ad.from_minari(str(folder / "data")),
        ad.from_minari(dataset.iterate_episodes()),
        ad.from_minari(list(dataset)),
        ad.read_dataset(main),
    ):
        check(log, seen)
        assert log.behaviour_log_prob is None
    assert ad.from_minari(dataset).metadata == {
        "source": "Minari",
        "dataset": "test/log-v0",
        "environment": "CartPole-v1",
    }
    assert seen[6].any()
    assert seen[7].any()  # some episodes terminated, others reached the time limit


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data_format", ["arrow", "parquet"])
def test_other_formats_of_minari(datasets, data_format):
    _, seen = collected("CartPole-v1", data_format=data_format)
    assert not list(datasets.rglob("*.hdf5"))
    check(ad.from_minari("test/log-v0"), seen)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_continuous_actions(name):
    dataset, seen = collected(name, num_episodes=2)
    log = ad.from_minari(dataset)
    check(log, seen)
    assert not log.is_discrete
    assert not log.terminated.any()


@pytest.mark.filterwarnings("ignore")
def test_states_by_number_and_log_probabilities():
    dataset, seen = collected("FrozenLake-v1", step_data_callback=WithProbability, record_infos=True)
    log = ad.from_minari(dataset)
    check(log, seen)
    assert log.categorical == (0,)
    np.testing.assert_array_equal(log.behaviour_log_prob, np.full(log.num_transitions, np.log(0.5)))
    np.testing.assert_array_equal(ad.from_minari(dataset, extra=["log_prob"]).extra["log_prob"], log.behaviour_log_prob)
    with pytest.raises(ad.DatasetError, match="episode 0: its infos have no cost"):
        ad.from_minari(dataset, extra=["cost"])
    assert ad.from_minari(dataset.iterate_episodes()).categorical == (0,)


@pytest.mark.filterwarnings("ignore")
def test_some_of_the_episodes():
    dataset, _ = collected("CartPole-v1")
    long = dataset.filter_episodes(lambda episode: len(episode) == 12)
    assert 0 < len(long) < len(dataset)
    log = ad.from_minari(long)
    assert log.num_episodes == len(long)
    assert not log.terminated.any()


NESTED = spaces.Dict(
    {"goal": spaces.Discrete(3), "arm": spaces.Tuple((spaces.Box(-9, 9, (2,)), spaces.Box(-9, 9, ())))}
)


def from_buffers(buffers, **settings):
    spaces_of = {"observation_space": NESTED, "action_space": spaces.Discrete(2, start=1)} | settings
    return minari.create_dataset_from_buffers("test/made-v0", buffers, **spaces_of)


def buffer(**changed):
    """An episode of two steps that ends by a time limit, with nested observations."""
    given = {
        "observations": {
            "goal": [0, 1, 2],
            "arm": ([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])], [0.5, 1.5, 2.5]),
        },
        "actions": [1, 2],
        "rewards": [1.0, 2.0],
        "terminations": [False, False],
        "truncations": [False, True],
        "infos": {"behaviour_log_prob": [-1.0, -2.0]},
    }
    return EpisodeBuffer(**given | changed)


@pytest.mark.filterwarnings("ignore")
def test_nested_observations_from_buffers():
    log = ad.from_minari(from_buffers([buffer(), buffer(terminations=[False, True], truncations=[False, False])]))
    assert sorted(log.names.observations) == ["arm[0][0]", "arm[0][1]", "arm[1]", "goal"]
    by_name = {name: log.observation[:, place].tolist() for place, name in enumerate(log.names.observations)}
    assert by_name == {"goal": [0, 1] * 2, "arm[0][0]": [1, 3] * 2, "arm[0][1]": [2, 4] * 2, "arm[1]": [0.5, 1.5] * 2}
    assert log.categorical == (log.names.observations.index("goal"),)
    assert log.action.tolist() == [0, 1, 0, 1]
    assert log.truncated.tolist() == [False, True, False, False]
    assert log.terminated.tolist() == [False, False, False, True]
    assert log.behaviour_log_prob.tolist() == [-1, -2, -1, -2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"terminations": [True, False]}, "episode 0: step 0 is terminated or truncated"),
        ({"actions": [1]}, "episode 0: it has 2 rewards and 1 actions"),
        ({"rewards": [1.0]}, "episode 0: it has 1 rewards"),
        ({"infos": {"log_prob": [0.0] * 5}}, "has 5 entries for 2 steps"),
    ],
)
def test_wrong_episodes(changed, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.from_minari(from_buffers([buffer(**changed)]))


@pytest.mark.filterwarnings("ignore")
def test_spaces_that_are_not_supported():
    episode = buffer(actions=[np.array([0, 1]), np.array([1, 1])])
    with pytest.raises(ad.DatasetError, match="must be Discrete or Box"):
        ad.from_minari(from_buffers([episode], action_space=spaces.MultiDiscrete([2, 2])))
    with pytest.raises(ad.DatasetError, match="Give observation_space"):
        ad.from_minari([buffer()])
    assert ad.from_minari([buffer()], observation_space=NESTED).num_transitions == 2


@pytest.mark.filterwarnings("ignore")
def test_hostile_folders(datasets):
    from_buffers([buffer()])
    folder = datasets / "test" / "made-v0" / "data"
    path = folder / "metadata.json"
    metadata = json.loads(path.read_text())
    # Minari would make this environment to learn its spaces, and so import what the file names.
    spec = {"id": "Evil-v0", "entry_point": "os:abort", "additional_wrappers": []}
    evil = {name: value for name, value in metadata.items() if not name.endswith("_space")}
    for content in (json.dumps(evil | {"env_spec": json.dumps(spec)}), "[]", "{", "[" * 10**5):
        path.write_text(content)
        with pytest.raises(ad.DatasetError, match="does not hold the spaces"):
            ad.from_minari(folder)
    path.write_text(json.dumps(metadata | {"observation_space": '{"type": "Text"}'}))
    with pytest.raises(ad.DatasetError, match="not a readable data set of Minari"):
        ad.from_minari(folder)
    path.write_text(json.dumps(metadata))
    with h5py.File(folder / "main_data.hdf5", "a") as file:
        del file["episode_0/rewards"]
        file["episode_0/rewards"] = h5py.ExternalLink(os.devnull, "/rewards")
    with pytest.raises(ad.DatasetError, match="rewards is a link"):
        ad.from_minari(folder)
    with h5py.File(folder / "main_data.hdf5", "a") as file:
        del file["episode_0/rewards"]
    with pytest.raises(ad.DatasetError, match="the data set is not readable"):
        ad.from_minari(folder)


def test_what_is_no_data_set(tmp_path):
    for given, message in (
        ("test/none-v0", "minari download test/none-v0"),
        (tmp_path, "neither a folder nor the id"),
        (3, "not int"),
        ([3], "not int"),
        ([], "no episode"),
    ):
        with pytest.raises(ad.DatasetError, match=message):
            ad.from_minari(given)
