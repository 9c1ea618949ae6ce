"""Logs in the style of the Open Bandit Dataset: single steps with known probabilities."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import average_dice as ad

ROWS = {
    "timestamp": ["2019-11-24"] * 4,
    "item_id": [14, 3, 79, 3],
    "position": [3, 1, 2, 1],
    "click": [0, 1, 0, 0],
    "propensity_score": [0.0125, 0.5, 0.25, 1.0],
    "user_feature_0": ["b1", "a9", "b1", "c0"],
    "user_feature_1": ["x", "x", "y", "x"],
    "user-item_affinity_0": [0.0, 1.5, 0.0, 2.0],
}


def check(log):
    assert log.is_one_step
    assert log.num_episodes == 4
    np.testing.assert_array_equal(log.action, ROWS["item_id"])
    np.testing.assert_array_equal(log.reward, ROWS["click"])
    np.testing.assert_array_equal(log.behaviour_log_prob, np.log(ROWS["propensity_score"]))
    assert log.names.observations == ("position", "user_feature_0", "user_feature_1", "user-item_affinity_0")
    assert log.categorical == (0, 1, 2)
    assert [log.names.category(1, code) for code in log.observation[:, 1]] == ROWS["user_feature_0"]
    assert [log.names.category(0, code) for code in log.observation[:, 0]] == ["3", "1", "2", "1"]
    np.testing.assert_array_equal(log.observation[:, 3], ROWS["user-item_affinity_0"])


def test_a_csv_file_a_table_and_a_dictionary(tmp_path):
    table = pa.table({"": [0, 1, 2, 3], **ROWS})  # with an index, as in the original
    pc.write_csv(table, tmp_path / "men.csv")
    for given in (tmp_path / "men.csv", str(tmp_path / "men.csv"), table, ROWS):
        check(ad.from_open_bandit(given))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame(library):
    check(ad.from_open_bandit(pytest.importorskip(library).DataFrame(ROWS)))


def test_items_by_name_and_no_features():
    rows = {name: ROWS[name] for name in ("click", "propensity_score")} | {"item_id": ["hat", "coat", "hat", "shoe"]}
    log = ad.from_open_bandit(rows)
    assert [log.names.action(one) for one in log.action.tolist()] == rows["item_id"]
    np.testing.assert_array_equal(log.observation, np.zeros((4, 1)))


def test_the_value_of_the_logged_policy_is_the_mean_click():
    log = ad.from_open_bandit(ROWS)
    uniform = np.zeros((4, 80))
    weights = ad.Problem(log, ad.CategoricalPolicy(lambda rows: uniform[: len(rows)]), 0.0).ratio
    np.testing.assert_allclose(weights, 1 / 80 / np.array(ROWS["propensity_score"]), rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"propensity_score": [0.5, 0.0, 0.5, 0.5]}, "row 1: propensity_score is 0"),
        ({"propensity_score": [0.5, 0.5, 1.5, 0.5]}, r"row 2: propensity_score is 1\.5"),
        ({"propensity_score": [0.5, 0.5, 0.5, None]}, "row 3: propensity_score is missing"),
        ({"click": ["yes", "no", "no", "no"]}, "click must be numbers"),
        ({"item_id": [-1, 0, 0, 0]}, "action is -1"),
    ],
)
def test_wrong_rows(changed, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.from_open_bandit({**ROWS, **changed})


def test_other_tables_and_files(tmp_path):
    with pytest.raises(ad.DatasetError, match="missing column: item_id, propensity_score"):
        ad.from_open_bandit({"click": [1]})
    with pytest.raises(ad.DatasetError, match="no such file"):
        ad.from_open_bandit(tmp_path / "none.csv")
    (tmp_path / "broken.csv").write_bytes(b"a,b\n1,2,3\n\xff\xfe")
    with pytest.raises(ad.DatasetError, match="not a readable CSV file"):
        ad.from_open_bandit(tmp_path / "broken.csv")
    with pytest.raises(ad.DatasetError, match="not a readable table"):
        ad.from_open_bandit(3)
