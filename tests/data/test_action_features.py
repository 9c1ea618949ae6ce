"""Features of actions: read from files, and checked against the log and the policy."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.data import read_action_features
from average_dice.testing.exact_mdps import early_termination
from conftest import columns_of


@pytest.mark.parametrize("header", ["", "dose,hour\n"])
def test_csv_with_and_without_a_header(tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}0.1,1\n2e3,-4\n\n")
    np.testing.assert_array_equal(read_action_features(tmp_path / "a.csv"), [[0.1, 1.0], [2000.0, -4.0]])


def test_npz_with_one_array(tmp_path):
    np.savez(tmp_path / "a.npz", any_name=np.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(read_action_features(tmp_path / "a.npz"), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row of numbers"),
        ("dose,hour\n", "no row of numbers"),
        ("1,2\n3\n", r"a\.csv, line 2: 1 columns where the first row has 2"),
        ("dose\n1\nmuch\n", r"a\.csv, line 3: 'much' is not a number"),
        ("1,b\n2,3\n", r"a\.csv, line 1: 'b' is not a number"),
    ],
)
def test_wrong_csv_files(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ad.DatasetError, match=message):
        read_action_features(tmp_path / "a.csv")


def test_other_wrong_files(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 2)), b=np.zeros(2))
    np.savez(tmp_path / "text.npz", a=np.array(["x", "y"]))
    np.savez(tmp_path / "object.npz", a=np.array([{}, None]))
    np.save(tmp_path / "plain.npy", np.zeros((2, 2)))
    (tmp_path / "plain.npy").rename(tmp_path / "plain.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 cut short")
    cases = {
        "two.npz": "2 arrays",
        "text.npz": "Give numbers",
        "object.npz": "not a readable NumPy archive",
        "plain.npz": "not a NumPy archive",
        "broken.npz": "not a NumPy archive",
        "none.csv": "no such file",
        "a.txt": "unknown kind of file",
    }
    for name, message in cases.items():
        with pytest.raises(ad.DatasetError, match=message):
            read_action_features(tmp_path / name)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[1.0]], "1 rows, and the log has action 1"),
        ([[1.0], [np.nan]], "action 1 hold"),
        ([[1.0], [2.0, 3.0]], "one list of numbers for each action"),
        (np.zeros((2, 2, 2)), r"not of shape \(2, 2, 2\)"),
    ],
)
def test_features_that_do_not_fit_the_log(small_log, features, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.LoggedDataset.from_columns(columns_of(small_log), action_features=features)


def test_features_are_for_discrete_actions(small_log):
    with pytest.raises(ad.DatasetError, match="are for discrete actions"):
        replace(small_log, action=np.zeros((small_log.num_transitions, 1)), action_features=np.array([[1.0]]))


def test_features_that_do_not_fit_the_policy():
    mdp = early_termination()
    log = mdp.sample(20, seed=0, action_features=[[0.0], [1.0], [2.0]])
    with pytest.raises(ad.PolicyError, match="action_features have 3 rows, the policy has actions 0 to 1"):
        ad.estimators.FittedQ().fit(ad.Problem(log, mdp.policy, 0.9), key=jax.random.key(0))


def test_features_are_part_of_the_content(small_log):
    described = replace(small_log, action_features=np.array([[0.0], [1.0]]))
    assert described.sha256 != small_log.sha256
    np.testing.assert_array_equal(described.select_episodes(np.array([2])).action_features, [[0.0], [1.0]])
    assert ad.Problem(described, None, 0.9).with_single_action().dataset.action_features is None
