"""Categorical observation columns: declared, stored, encoded, and recognised where they are not declared."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import average_dice as ad
from average_dice.data.categories import as_categorical
from average_dice.data.encoding import CODE_SIZE, MOST_INDICATORS, Encoding
from conftest import columns_of


def log_of(observation: np.ndarray, length: int = 10, **options) -> ad.LoggedDataset:
    """Truncated episodes of this length with these observations, and the last one repeated after the end."""
    observation = np.asarray(observation, float).reshape(len(observation), -1)
    after = np.vstack([observation[1:], observation[-1:]])
    return ad.LoggedDataset.from_arrays(
        observation=observation,
        action=np.zeros(len(observation), int),
        reward=np.zeros(len(observation)),
        next_observation=after,
        terminated=np.zeros(len(observation), bool),
        episode=np.arange(len(observation)) // length,
        **options,
    )


def test_a_categorical_column_becomes_indicators_in_its_place():
    encoding = Encoding.of([1], np.array([[0.5, 7, 1], [1.5, 3, 2]]), np.array([[0.0, 9, 0], [0, 3, 0]]))
    found = encoding.encode(np.array([[0.5, 7.0, 1.0], [1.5, 9.0, 2.0], [2.5, 3.0, 3.0], [3.5, 8.0, 4.0]]))
    expected = [[0.5, 0, 1, 0, 1.0], [1.5, 0, 0, 1, 2.0], [2.5, 1, 0, 0, 3.0], [3.5, 0, 0, 0, 4.0]]  # 8: unknown
    np.testing.assert_array_equal(found, expected)


def test_without_categorical_columns_the_encoding_returns_the_same_array(small_log):
    assert small_log.encoding.encode(small_log.observation) is small_log.observation


def test_a_column_with_many_values_has_a_fixed_random_code():
    values = np.arange(MOST_INDICATORS + 200.0)[:, None]
    codes = Encoding.of([0], values).encode(values)
    assert codes.shape == (len(values), CODE_SIZE)
    np.testing.assert_array_equal(codes, Encoding.of([0], values[::-1]).encode(values))
    np.testing.assert_array_equal(Encoding.of([0], values).encode(np.array([[-1.0], [0.5]])), 0)
    assert abs(codes.var() - 1) < 0.05
    distances = ((codes[:, None] - codes) ** 2).sum(axis=2)[np.triu_indices(len(codes), 1)]
    assert abs(distances.mean() / (2 * CODE_SIZE) - 1) < 0.05
    assert distances.std() / distances.mean() < 0.2  # no value is much nearer to one than to another


def test_the_largest_number_of_indicators():
    values = np.arange(float(MOST_INDICATORS))[:, None]
    np.testing.assert_array_equal(Encoding.of([0], values).encode(values), np.eye(MOST_INDICATORS))


def test_a_part_of_the_log_has_the_encoding_of_the_whole():
    log = log_of(np.arange(40), categorical=[0])
    part = log.select_episodes(np.array([3, 3, 1]))
    assert part.categorical == (0,)
    assert part.encoding.encode(part.observation).shape == (30, 40)


def test_the_hash_changes_only_with_declared_columns(small_log):
    assert replace(small_log, categorical=()).sha256 == small_log.sha256
    assert len({replace(small_log, categorical=one).sha256 for one in ((), (0,), (0, 1))}) == 3


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_declared_columns_are_stored(small_log, tmp_path, suffix):
    log = replace(small_log, categorical=(3, 0), action_features=np.array([[0.1, 1.0], [1 / 3, -2.0]]))
    assert log.categorical == (0, 3)
    ad.write_dataset(log, tmp_path / f"log{suffix}")
    again = ad.read_dataset(tmp_path / f"log{suffix}")
    assert (again.categorical, again.sha256, again.metadata) == (log.categorical, log.sha256, log.metadata)
    np.testing.assert_array_equal(again.action_features, log.action_features)
    changed = ad.read_dataset(tmp_path / f"log{suffix}", categorical=[], action_features=[[1.0], [2.0]])
    assert changed.categorical == ()
    np.testing.assert_array_equal(changed.action_features, [[1.0], [2.0]])


def test_parts_of_a_log_must_declare_the_same(small_log, tmp_path):
    for name, episodes, columns in (("a", np.arange(6), (1,)), ("b", np.arange(6, 12), ())):
        part = small_log.select_episodes(episodes)
        columns_of_part = columns_of(part) | {"episode": part.episode + 100 * episodes[0]}
        ad.write_dataset(ad.LoggedDataset(**columns_of_part, categorical=columns), tmp_path / f"{name}.npz")
    with pytest.raises(ad.DatasetError, match=r"categorical is not the same in .*a\.npz and in .*b\.npz"):
        ad.read_dataset(tmp_path / "a.npz", tmp_path / "b.npz")
    joined = ad.read_dataset(tmp_path / "a.npz", tmp_path / "b.npz", categorical=[1])
    assert (joined.num_episodes, joined.categorical) == (12, (1,))


def test_an_unreadable_declaration(small_log, tmp_path):
    ad.write_dataset(replace(small_log, categorical=(0,)), tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    stored = {**table.schema.metadata, b"average_dice.categorical": b"{"}
    pq.write_table(table.replace_schema_metadata(stored), tmp_path / "log.parquet")
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: its metadata under average_dice\.categorical"):
        ad.read_dataset(tmp_path / "log.parquet")


@pytest.mark.parametrize(
    ("categorical", "message"),
    [
        ([5], r"column 5, but columns are numbered 0 to 4"),
        ([-1], r"column -1, but columns are numbered 0 to 4"),
        ([1, 1], r"name each column once"),
    ],
)
def test_wrong_declarations(small_log, categorical, message):
    with pytest.raises(ad.DatasetError, match=message):
        ad.LoggedDataset.from_columns(columns_of(small_log), categorical=categorical)


def test_declarations_that_are_no_numbers_of_columns():
    with pytest.raises(ad.DatasetError, match="different whole numbers"):
        as_categorical([0.5])
    with pytest.raises(ad.DatasetError, match="indices of observation columns"):
        as_categorical(["a"])


def test_codes_must_be_equal_in_the_next_row():
    """A measurement may differ by rounding. Code 500,001 is another category than code 500,000."""
    columns = columns_of(log_of([500_000, 500_000, 500_002], length=3))
    columns["next_observation"][0, 0] = 500_001
    ad.LoggedDataset(**columns)
    with pytest.raises(ad.DatasetError, match=r"episode 0, step 0: next_observation\[0\] is 500001, and the next row"):
        ad.LoggedDataset(**columns, categorical=(0,))


def test_columns_that_look_categorical():
    generator = np.random.default_rng(0)
    rows = 1_000
    within = np.tile(np.arange(10), rows // 10)
    columns = {
        "codes": generator.integers(0, 12, rows),
        "numbers": generator.normal(size=rows),
        "flag": generator.integers(0, 2, rows),
        "time": within,
        "time left": 9 - within,
        "identifier": np.arange(rows),
        "rare codes": generator.integers(0, 250, rows),
        "halves": generator.integers(0, 12, rows) / 2,
        "constant within episodes": np.repeat(np.arange(rows // 10) % 7, 10),
    }
    observation = np.column_stack(list(columns.values()))
    names = list(columns)
    assert [names[one] for one in log_of(observation).looks_categorical] == ["codes", "constant within episodes"]
    declared = log_of(observation, categorical=[0])
    assert [names[one] for one in declared.looks_categorical] == ["constant within episodes"]
    assert log_of(observation, categorical=[0, 8]).categorical_advice is None
    assert [names[one] for one in log_of(observation, length=1).looks_categorical] == [
        "codes",
        "time",  # a log of one-step episodes has no time
        "time left",
        "constant within episodes",
    ]


def test_the_advice_names_the_columns_and_the_option():
    codes = np.random.default_rng(0).integers(0, 12, (600, 8))
    assert log_of(codes[:, :1]).categorical_advice == (
        "observation column 0 holds only integers (12 different values). If they are codes, declare it: --categorical 0"
    )
    assert log_of(codes[:, :2]).categorical_advice == (
        "observation columns 0 and 1 hold only integers (12 and 12 different values). If they are codes, declare them: "
        "--categorical 0,1"
    )
    assert "columns 0, 1, 2, 3, 4 and 3 more hold" in log_of(codes).categorical_advice
    assert log_of(codes).categorical_advice.endswith("--categorical 0,1,2,3,4,5,6,7")
