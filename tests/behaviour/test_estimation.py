"""estimate_behaviour: the choice, the record, files, and logs made of an estimated one."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.behaviour import estimation
from average_dice.data.estimated import GIVEN, EstimatedBehaviour
from average_dice.errors import DatasetError, SettingError
from average_dice.problem import Problem
from average_dice.testing.exact_mdps import early_termination

MDP = early_termination()


def unknown(num_episodes=50, seed=0):
    """A log without probabilities, and the true ones."""
    data = MDP.sample(num_episodes, seed=seed)
    return replace(data, behaviour_log_prob=None), data.behaviour_log_prob


def one_step_log(observation, action):
    """A log of episodes of one step."""
    number = len(observation)
    return ad.LoggedDataset.from_arrays(
        observation=observation,
        action=action,
        reward=np.zeros(number),
        next_observation=observation,
        terminated=np.ones(number, bool),
        episode=np.arange(number),
    )


def test_estimates_tend_to_the_behaviour_policy():
    errors = []
    for number in (50, 800):
        data, truth = unknown(number)
        found = ad.estimate_behaviour(data, models=["constant", "table"])
        errors.append(np.sqrt(np.mean((found.behaviour_log_prob - truth) ** 2)))
    assert errors[1] < 0.03
    assert errors[1] < errors[0] / 2  # by 1 / √16, if the model is right


def test_recorded_probabilities_are_not_used():
    data, truth = unknown()
    wrong = replace(data, behaviour_log_prob=np.zeros(len(truth)))
    np.testing.assert_array_equal(
        ad.estimate_behaviour(data).behaviour_log_prob, ad.estimate_behaviour(wrong).behaviour_log_prob
    )


def test_the_chosen_model_has_the_highest_held_out_likelihood():
    record = ad.estimate_behaviour(unknown()[0], models=["constant", "table", "linear"]).estimated_behaviour
    assert record.model == max(record.candidates, key=record.candidates.get)
    assert record.candidates["constant"] < record.candidates["table (shrinkage 1)"]
    assert record.calibration_error < 0.05


def test_actions_that_do_not_depend_on_states_are_not_overfitted():
    data, _ = unknown(100)
    action = np.random.default_rng(0).integers(0, 2, data.num_transitions)
    found = ad.estimate_behaviour(replace(data, action=action))
    assert np.abs(np.exp(found.behaviour_log_prob) - 0.5).max() < 0.05


def test_a_single_allowed_action_is_certain():
    generator = np.random.default_rng(0)
    alone = np.arange(300) % 3 == 0
    data = one_step_log(generator.normal(size=(300, 2)), np.where(alone, 2, generator.integers(0, 3, 300)))
    found = ad.estimate_behaviour(replace(data, action_mask=np.column_stack([~alone, ~alone, np.ones(300, bool)])))
    np.testing.assert_allclose(found.behaviour_log_prob[alone], 0.0, atol=1e-12)
    assert (found.behaviour_log_prob[~alone] < 0).all()


def test_small_probabilities_are_raised_and_counted():
    data = one_step_log(np.zeros((6_000, 1)), (np.arange(6_000) < 2).astype(int))
    found = ad.estimate_behaviour(data, models=["constant"])
    assert found.estimated_behaviour.floored == 2
    np.testing.assert_allclose(np.exp(found.behaviour_log_prob[:2]), estimation.FLOOR)
    assert "in 2 of the rows" in found.estimated_behaviour.notes[0]


def test_continuous_actions_have_the_density_of_their_policy():
    generator = np.random.default_rng(0)
    observation = generator.normal(size=(4_000, 2))
    mean, std = observation @ [[1.0], [-1.0]], 0.5
    action = mean + std * generator.normal(size=mean.shape)
    found = ad.estimate_behaviour(one_step_log(observation, action))
    truth = -0.5 * (((action - mean) / std) ** 2)[:, 0] - np.log(std * np.sqrt(2 * np.pi))
    assert np.sqrt(np.mean((found.behaviour_log_prob - truth) ** 2)) < 0.05  # 2 % of the spread
    assert found.estimated_behaviour.model.startswith("linear")


@pytest.mark.parametrize("models", [["table"], ["linear"]])
def test_again_on_the_log_itself_changes_nothing(models):
    data = ad.estimate_behaviour(unknown()[0], models=models)
    again = data.estimated_behaviour.again(np.arange(data.num_episodes))
    np.testing.assert_allclose(again, data.behaviour_log_prob, atol=1e-3)  # L-BFGS starts at its last result
    resampled = np.random.default_rng(0).integers(0, data.num_episodes, data.num_episodes)
    assert np.abs(data.estimated_behaviour.again(resampled) - data.behaviour_log_prob).max() > 0.01


def test_logs_made_of_an_estimated_one_remember_it():
    data = ad.estimate_behaviour(unknown(10)[0], models=["table"])
    everything = np.arange(data.num_episodes)
    short = data.up_to(3)
    np.testing.assert_array_equal(
        short.estimated_behaviour.again(everything), data.estimated_behaviour.again(everything)[data.step < 3]
    )
    part = data.select_episodes(everything[:4])
    assert part.estimated_behaviour == data.estimated_behaviour
    assert part.estimated_behaviour.again is None
    assert Problem(data, MDP.policy, 0.9).with_single_action().dataset.estimated_behaviour is None
    assert replace(data, behaviour_log_prob=None).estimated_behaviour is None


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_a_file_keeps_the_record(tmp_path, suffix):
    data = ad.estimate_behaviour(unknown(10)[0], models=["table"])
    ad.write_dataset(data, tmp_path / f"log.{suffix}")
    found = ad.read_dataset(tmp_path / f"log.{suffix}")
    assert found.estimated_behaviour == data.estimated_behaviour
    assert found.estimated_behaviour.again is None
    assert found.sha256 == data.sha256
    plain = replace(data, estimated_behaviour=None)
    assert plain.sha256 == data.sha256  # only columns count


def test_users_can_say_that_probabilities_are_estimates(tmp_path):
    data = MDP.sample(5, seed=0)
    ad.write_dataset(data, tmp_path / "log.parquet")
    assert ad.read_dataset(tmp_path / "log.parquet").estimated_behaviour is None
    found = ad.read_dataset(tmp_path / "log.parquet", behaviour_estimated=True)
    assert found.estimated_behaviour == EstimatedBehaviour()
    assert found.estimated_behaviour.model == GIVEN
    columns = {name: getattr(data, name) for name in ("observation", "action", "reward", "next_observation")}
    columns |= {name: getattr(data, name) for name in ("terminated", "episode", "behaviour_log_prob")}
    assert ad.LoggedDataset.from_arrays(**columns, behaviour_estimated=True).estimated_behaviour.model == GIVEN


def test_files_with_different_records_count_as_estimated(tmp_path):
    data = MDP.sample(10, seed=0)
    estimated = ad.estimate_behaviour(data, models=["table"])
    first, last = np.arange(5), np.arange(5, 10)
    ad.write_dataset(data.select_episodes(first), tmp_path / "one.parquet")
    rest = estimated.select_episodes(last)
    ad.write_dataset(replace(rest, episode=rest.episode + 5), tmp_path / "two.parquet")
    found = ad.read_dataset(tmp_path / "one.parquet", tmp_path / "two.parquet")
    assert found.estimated_behaviour.model == GIVEN


def test_a_damaged_record_is_refused():
    with pytest.raises(DatasetError, match="Estimate it again"):
        EstimatedBehaviour.from_json('{"model": "table"}')


def test_without_scikit_learn_a_note_says_so(monkeypatch):
    measured = one_step_log(np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2)
    monkeypatch.setattr(estimation, "find_spec", lambda name: None)
    record = ad.estimate_behaviour(measured).estimated_behaviour
    assert record.notes == (estimation.TREES_MISSING,)
    assert "trees" not in record.candidates
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(SettingError, match=r"average-dice\[estimate\]"):
        ad.estimate_behaviour(measured, models=["trees"])


def test_trees_learn_what_lines_cannot():
    pytest.importorskip("sklearn")
    generator = np.random.default_rng(0)
    observation = generator.uniform(-1, 1, (3_000, 2))
    prob = np.where(observation[:, 0] * observation[:, 1] > 0, 0.9, 0.2)
    data = one_step_log(observation, (generator.random(3_000) < prob).astype(int))
    found = ad.estimate_behaviour(data, models=["linear", "trees"])
    assert found.estimated_behaviour.model == "trees"
    truth = np.where(data.action == 1, prob, 1 - prob)
    assert np.abs(np.exp(found.behaviour_log_prob) - truth).mean() < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"folds": 1}, "at least 2 folds"), ({"models": ["forest"]}, "unknown model forest"), ({"seed": -1}, "seed")],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(SettingError, match=message):
        ad.estimate_behaviour(unknown(5)[0], **settings)


def test_one_episode_is_too_few():
    with pytest.raises(SettingError, match="two episodes"):
        ad.estimate_behaviour(unknown(1)[0])
