"""Logs from data frames: the same rows from every library, and what becomes of each kind of column."""

import datetime
import uuid
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import average_dice as ad
from average_dice.data.understood import columns_of, notes_of

# Rows out of order: two patients with three and two days.
CLINIC: dict[str, list[Any]] = {
    "patient": ["p2", "p1", "p1", "p2", "p1"],
    "day": [1, 3, 1, 2, 2],
    "age": [40.0, 52.0, 50.0, 41.0, 51.0],
    "ward": ["south", "north", "south", "north", "south"],
    "drug": ["none", "high", "low", "high", "none"],
    "outcome": [0.0, 1.0, 0.25, 0.5, 0.125],
    "discharged": [False, True, False, True, False],
    "prob": [0.5, 1.0, 0.25, 0.5, 0.25],
    "cost": [4, 3, 1, 5, 2],
}
ROLES: dict[str, Any] = {
    "episode": "patient",
    "time": "day",
    "observations": ["age", "ward"],
    "action": "drug",
    "reward": "outcome",
    "terminated": "discharged",
    "behaviour_prob": "prob",
    "extra": ["cost"],
}


def clinic(changes: dict[str, list[Any]] | None = None, **roles: Any) -> ad.LoggedDataset:
    return ad.from_dataframe(pa.table(CLINIC | (changes or {})), **ROLES | roles)


def log_of(columns: dict[str, Any], **roles: Any) -> ad.LoggedDataset:
    """A log whose columns have one letter: episode, time, observation, action, reward, terminated."""
    usual = {"episode": "e", "observations": ["x"], "action": "a", "reward": "r"}
    return ad.from_dataframe(pa.table(columns), **usual | roles)


def one_step(**columns: Any) -> dict[str, Any]:
    """A table of one-row episodes; the others by default."""
    number = len(next(iter(columns.values())))
    usual = {"e": list(range(number)), "x": [0.5] * number, "a": [0] * number, "r": [1.0] * number}
    return usual | columns


def duckdb_of(columns: dict[str, list[Any]]) -> Any:
    table = pa.table(columns)  # DuckDB finds it by its name
    assert table.num_rows
    return duckdb.sql("select * from table")


FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with categoricals": lambda columns: pd.DataFrame(columns).astype({"drug": "category", "ward": "category"}),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "Arrow": pa.table,
    "DuckDB": lambda columns: duckdb.from_arrow(pa.table(columns)),
}


@pytest.mark.parametrize("library", FRAMES)
def test_the_same_rows_of_every_library_are_the_same_log(library: str) -> None:
    log = ad.from_dataframe(FRAMES[library](CLINIC), **ROLES)
    expected = ad.LoggedDataset.from_columns(
        {
            "episode": [0, 0, 1, 1, 1],
            "step": [0, 1, 0, 1, 2],
            "observation": [[40, 1], [41, 0], [50, 1], [51, 1], [52, 0]],
            "action": [2, 0, 1, 2, 0],
            "reward": [0.0, 0.5, 0.25, 0.125, 1.0],
            "next_observation": [[41, 0], [41, 0], [51, 1], [52, 0], [52, 0]],
            "terminated": [False, True, False, False, True],
            "truncated": [False] * 5,
            "behaviour_log_prob": np.log([0.5, 0.5, 0.25, 0.25, 1.0]),
        },
        categorical=[1],
    )
    assert log.sha256 == expected.sha256
    assert log.names.observations == ("age", "ward")
    assert log.names.actions == ("high", "low", "none")
    assert log.names.categories == {1: ("north", "south")}
    assert log.extra["episode_name"].tolist() == ["p2", "p2", "p1", "p1", "p1"]
    assert log.extra["cost"].tolist() == [4, 5, 1, 2, 3]
    assert notes_of(log.metadata) == ()
    assert log.place(4) == "episode p1, step 2"


def test_the_static_method_is_the_same() -> None:
    assert ad.LoggedDataset.from_dataframe(pa.table(CLINIC), **ROLES).sha256 == clinic().sha256


def test_what_was_understood_is_a_table() -> None:
    found = {one.ours: one for one in columns_of(clinic(metadata={"site": "A"}).metadata)}
    assert found["observation 0"][1:] == ("age", "numbers", "40 to 52", "40")
    assert found["observation 1"][1:] == ("ward", "categorical", "2: north, south", "south")
    assert found["action"][1:] == ("drug", "discrete", "3: high, low, none", "none")
    assert found["episode"][1:4] == ("patient", "text", "2 different")
    assert found["step"][1:4] == ("day", "integers", "1 to 3")
    assert found["terminated"][1:4] == ("discharged", "flags", "2 true")
    assert found["next_observation"][1:3] == ("–", "the next row")
    assert found["extra"][1] == "cost"
    assert clinic(metadata={"site": "A"}).metadata["site"] == "A"


# Episodes and time.


@pytest.mark.parametrize(
    ("identifiers", "numbers", "names"),
    [
        ([7, -3, 7], [-3, 7, 7], None),
        ([7.0, 3.0, 7.0], [3, 7, 7], None),
        (["b", "a", "b"], [0, 0, 1], ["b", "b", "a"]),
        ([2.5, 1.5, 2.5], [0, 0, 1], ["2.5", "2.5", "1.5"]),
        (np.array([2**64 - 1, 1, 2**64 - 1], np.uint64), [0, 0, 1], [str(2**64 - 1)] * 2 + ["1"]),
    ],
)
def test_integers_stay_and_other_identifiers_are_numbered(identifiers: Any, numbers: Any, names: Any) -> None:
    log = log_of({"e": identifiers, "x": [1.0, 2.0, 3.0], "a": [0, 1, 0], "r": [0.0] * 3}, terminated=True)
    assert log.episode.tolist() == numbers
    assert ("episode_name" in log.extra) == (names is not None)
    if names is not None:
        assert log.extra["episode_name"].tolist() == names


def test_every_row_may_be_an_episode() -> None:
    log = log_of({"x": [1.0, 2.0], "a": [0, 1], "r": [0.0, 1.0]}, episode=None)
    assert log.is_one_step
    assert log.episode.tolist() == [0, 1]
    assert "episode_name" not in log.extra


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_uuids_are_names(library: Any) -> None:
    first, second = uuid.UUID(int=2), uuid.UUID(int=1)
    frame = library(one_step(e=[first, second, first]))
    log = ad.from_dataframe(frame, episode="e", observations="x", action="a", reward="r", terminated=True)
    assert log.extra["episode_name"].tolist() == [str(first), str(first), str(second)]


def test_timestamps_sort_rows_and_ties_are_refused() -> None:
    days = pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"])
    columns = {"e": [0, 0, 0], "d": days, "x": [3.0, 1.0, 2.0], "a": [0, 1, 0], "r": [0.0] * 3}
    roles = {"episode": "e", "observations": "x", "action": "a", "reward": "r", "terminated": True}
    assert ad.from_dataframe(pd.DataFrame(columns), time="d", **roles).observation[:, 0].tolist() == [1, 2, 3]
    with pytest.raises(ad.DatasetError, match=r"^episode p1: two rows have day 1\. Remove one"):
        clinic({"day": [1, 1, 1, 2, 2]})


def test_dates_that_python_does_not_know_are_sorted_but_are_no_names() -> None:
    far = pa.array([2**30, -(2**30)], pa.date32())
    log = log_of(one_step(e=[0, 0], t=far, x=[1.0, 2.0]), time="t", terminated=True)
    assert log.observation[:, 0].tolist() == [2, 1]
    with pytest.raises(ad.DatasetError, match="a column of dates holds values out of range"):
        log_of(one_step(e=far))


def test_text_as_time_is_sorted_by_the_alphabet_with_a_note() -> None:
    log = log_of(one_step(e=[0, 0], t=["10", "9"], x=[1.0, 2.0]), time="t", terminated=True)
    assert log.observation[:, 0].tolist() == [1, 2]
    assert "t is text, so rows are sorted by the alphabet, from 10 to 9" in notes_of(log.metadata)[0]


def test_jumps_in_time_are_told() -> None:
    log = log_of(one_step(e=[0] * 5, t=[0, 1, 2, 5, 6]), time="t", terminated=True)
    assert log.step.tolist() == [0, 1, 2, 3, 4]
    assert notes_of(log.metadata) == (
        "t jumps in 1 place, the first after episode 0, step 2: rows count as consecutive steps",
    )


def test_missing_episodes_and_times_are_refused() -> None:
    with pytest.raises(ad.DatasetError, match="patient: 1 missing, the first in row 1"):
        clinic({"patient": ["p2", None, "p1", "p2", "p1"]})
    with pytest.raises(ad.DatasetError, match="day: 2 missing, the first in row 3"):
        clinic({"day": [1, 3, 1, None, None]})


# How episodes end.


def test_terminated_must_be_said_unless_every_episode_has_one_row() -> None:
    with pytest.raises(ad.DatasetError, match="how do episodes end"):
        clinic(terminated=None)
    log = log_of(one_step(x=[1.0, 2.0]))
    assert log.is_one_step
    assert notes_of(log.metadata) == (
        "every episode has one row: each counts as terminated, as in a log of single decisions",
    )


@pytest.mark.parametrize("flags", [[0, 1, 0, 1, 0], ["no", "Yes", "no", "YES", "no"], [0.0, 1.0, 0.0, 1.0, 0.0]])
def test_flags_may_be_numbers_and_words(flags: Any) -> None:
    assert clinic({"discharged": flags}).sha256 == clinic().sha256


def test_other_flags_are_refused() -> None:
    with pytest.raises(ad.DatasetError, match=r"discharged holds 'home'\. A flag is true or false"):
        clinic({"discharged": ["home"] * 5})
    with pytest.raises(ad.DatasetError, match=r"discharged holds 2\. A flag"):
        clinic({"discharged": [0, 2, 0, 1, 0]})
    with pytest.raises(ad.DatasetError, match="discharged: 1 missing, the first at episode p1, step 2"):
        clinic({"discharged": [False, None, False, True, False]})
    with pytest.raises(ad.DatasetError, match="episode p1, step 1: the episode continues after terminated"):
        clinic({"discharged": [False, True, False, True, True]})


def test_a_truncated_last_row_only_gives_the_next_observation() -> None:
    """Its action and reward may even be missing."""
    log = clinic({"discharged": [False, False, False, True, False], "drug": ["none", None, "low", "high", "none"]})
    assert log.num_transitions == 4
    assert log.observation[2:].tolist() == [[50, 1], [51, 1]]
    assert log.next_observation[3].tolist() == [52, 0]
    assert log.truncated.tolist() == [False, False, False, True]
    assert log.terminated.tolist() == [False, True, False, False]
    assert notes_of(log.metadata) == (
        "no flag on the last row of 1 of 2 episodes: this counts as truncated, that is, only the recording stopped",
        "1 truncated episode without a next observation after the last row: this row only gives the next observation "
        "of the row before, its action and reward are not used",
    )


def test_an_episode_of_one_truncated_row_is_left_out_and_counted() -> None:
    log = log_of(one_step(e=[0, 1, 1], x=[1.0, 2.0, 3.0]), terminated=False)
    assert (log.num_transitions, log.num_episodes, log.episode.tolist()) == (1, 1, [1])
    assert notes_of(log.metadata)[0].endswith("not used; left out: 1 episode of one row")
    with pytest.raises(ad.DatasetError, match=r"no transition is left.*terminated=True"):
        log_of(one_step(x=[1.0, 2.0]), terminated=False)


def test_next_observations_of_the_table_keep_truncated_rows() -> None:
    changes = {
        "discharged": [False, False, False, True, False],
        "then_age": [41.0, 53.0, None, None, 52.0],
        "then_ward": ["north", "east", None, None, "north"],
    }
    log = clinic(changes, next_observations=["then_age", "then_ward"])
    assert log.num_transitions == 5
    assert log.names.categories == {1: ("east", "north", "south")}
    assert log.next_observation.tolist() == [[41, 1], [41, 1], [51, 2], [52, 1], [53, 0]]
    assert log.truncated.tolist() == [False, False, False, False, True]
    assert clinic(changes, next_observations="then_*").sha256 == log.sha256
    with pytest.raises(ad.DatasetError, match="1 next_observations are given for 2 observations"):
        clinic(changes, next_observations=["then_age"])


def test_a_truncated_flag_is_respected() -> None:
    table = one_step(e=[0, 0, 1, 1], x=[1.0, 2.0, 3.0, 4.0], n=[2.0, 9.0, 4.0, 8.0], d=[0, 0, 0, 1], c=[0, 1, 0, 0])
    log = log_of(table, terminated="d", truncated="c", next_observations="n")
    assert log.truncated.tolist() == [False, True, False, False]
    assert log.terminated.tolist() == [False, False, False, True]
    assert log.next_observation[:, 0].tolist() == [2, 9, 4, 8]
    assert notes_of(log.metadata) == ()


def test_a_flag_of_the_whole_episode_counts_on_its_last_row() -> None:
    log = clinic({"discharged": [False, True, True, False, True]}, truncated=None)
    assert log.terminated.tolist() == [False, False, False, True]  # the row of p2 that only ends is not used
    assert "discharged is the same in all rows of each episode" in notes_of(log.metadata)[0]


# Actions.


@pytest.mark.parametrize(
    ("given", "actions", "names"),
    [
        ([0, 1, 2], [0, 1, 2], ()),
        ([0, 2, 2], [0, 2, 2], ()),
        ([10, 50, 20], [0, 2, 1], ("10", "20", "50")),
        ([0, 10, 20], [0, 1, 2], ("0", "10", "20")),
        ([-1, 1, -1], [0, 1, 0], ("-1", "1")),
        ([True, True, True], [1, 1, 1], ("false", "true")),
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
    ],
)
def test_discrete_actions(given: Any, actions: Any, names: Any) -> None:
    log = log_of(one_step(a=given))
    assert log.is_discrete
    assert log.action.tolist() == actions
    assert log.names.actions == names


def test_renumbered_and_absent_actions_are_told() -> None:
    assert "(10 → 0, 20 → 1, 50 → 2)" in notes_of(log_of(one_step(a=[10, 50, 20])).metadata)[1]
    assert notes_of(log_of(one_step(a=[0, 2, 2])).metadata)[1] == ("of the actions 0 to 2 of a, 1 not in the log")


def test_the_order_of_actions_can_be_given() -> None:
    log = clinic(actions=["none", "low", "high", "highest"])
    assert log.action.tolist() == [0, 2, 1, 0, 2]
    assert log.names.actions == ("none", "low", "high", "highest")
    assert log_of(one_step(a=[20, 10]), actions=[10, 20, 50]).action.tolist() == [1, 0]
    with pytest.raises(ad.DatasetError, match=r"episode p2, step 1: drug is 'high'.*Did you mean hihg"):
        clinic(actions=["none", "low", "hihg"])


def test_floats_lists_and_several_columns_are_continuous() -> None:
    assert log_of(one_step(a=[0.5, 1.5])).action.tolist() == [[0.5], [1.5]]
    assert log_of(one_step(a=[[0.5, 1.0], [1.5, 2.0]])).action.tolist() == [[0.5, 1.0], [1.5, 2.0]]
    two = log_of(one_step(a=[1, 2], b=[0.5, 0.25]), action=["a", "b"])
    assert two.action.tolist() == [[1.0, 0.5], [2.0, 0.25]]
    assert two.names.actions == ("a", "b")
    assert log_of(one_step(a=[1, 2]), action=["a"]).action.tolist() == [[1.0], [2.0]]


def test_whole_floats_are_continuous_with_a_note_unless_declared() -> None:
    log = log_of(one_step(a=[1.0, 0.0]))
    assert not log.is_discrete
    assert "If these are choices, declare it: --categorical a" in notes_of(log.metadata)[1]
    assert log_of(one_step(a=[1.0, 0.0]), categorical=["a"]).action.tolist() == [1, 0]
    assert log_of(one_step(a=[7.5, 2.0]), categorical=["a"]).names.actions == ("2", "7.5")


# Observations and missing values.


def test_kinds_of_observations() -> None:
    table = one_step(f=[True, False, True], w=[12, 3, 12], v=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], z=[0, 1, 2])
    log = log_of(table, observations=["f", "w", "v", "z"], categorical=["w", 4])
    assert log.observation.tolist() == [[1, 1, 1, 2, 0], [0, 0, 3, 4, 1], [1, 1, 5, 6, 2]]
    assert log.categorical == (1, 4)
    assert log.names.observations == ("f", "w", "v[0]", "v[1]", "z")
    assert log.names.categories == {1: ("3", "12")}
    assert log_of(table, observations=["[fw]"]).names.observations == ("f", "w")


def test_categoricals_of_numbers_are_codes() -> None:
    frame = pd.DataFrame({"e": [0, 1, 2], "x": pd.Categorical([7, 3, 7]), "a": pd.Categorical([0.5, 2.5, 2.5]), "r": 1})
    log = ad.from_dataframe(frame, episode="e", observations=["x"], action="a", reward="r")
    assert log.observation.tolist() == [[1], [0], [1]]
    assert log.categorical == (0,)
    assert log.names.categories == {0: ("3", "7")}
    assert (log.action.tolist(), log.names.actions) == ([0, 1, 1], ("0.5", "2.5"))


def test_names_that_are_no_texts_or_occur_twice_are_refused() -> None:
    for names, words in ((["e", 5], "the name of column 5 is no text"), (["e", "e"], "two columns of the same name")):
        with pytest.raises(ad.DatasetError, match=words):
            ad.from_dataframe(pd.DataFrame([[1, 2]], columns=names), **ROLES)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_every_kind_of_text_is_the_same(kind: pa.DataType) -> None:
    table = pa.table(CLINIC).set_column(4, "drug", pa.array(CLINIC["drug"]).cast(kind))
    assert ad.from_dataframe(table, **ROLES).sha256 == clinic().sha256


def test_times_and_structures_are_refused_as_observations() -> None:
    with pytest.raises(ad.DatasetError, match=r"x holds times .* and cannot be an observation"):
        log_of(one_step(x=pd.to_datetime(["2024-01-01", "2024-01-02"])))
    with pytest.raises(ad.DatasetError, match="cannot be an observation"):
        log_of(one_step(x=[{"a": 1}, {"a": 2}]))
    with pytest.raises(ad.DatasetError, match="x has 1 numbers in row 1 and 2 in others"):
        log_of(one_step(x=[[1.0, 2.0], [3.0]]))


ODD = {
    "times": pa.array([1, 2], pa.time32("s")),
    "durations": pa.array([1, 2], pa.duration("s")),
    "bytes": pa.array([b"\xff", b"a"]),
    "lists of texts": pa.array([["a"], ["b"]]),
    "empty lists": pa.array([[], []], pa.list_(pa.float64())),
    "structures": pa.array([{"a": 1}, {"a": 2}]),
    "maps": pa.array([[("a", 1)], [("a", 2)]], pa.map_(pa.string(), pa.int32())),
    "nothing": pa.nulls(2),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1.0, 2.0])]),
    "run ends": pa.RunEndEncodedArray.from_arrays([1, 2], [1.0, 2.0]),
    "infinite": pa.array([float("inf")] * 2),
}


READ = {
    "e": set(ODD) - {"nothing"},
    "t": {"times", "durations", "bytes", "run ends", "infinite"},
    "x": {"run ends"},
    "a": {"run ends"},
    "r": {"run ends"},
    "d": set(),
    "p": {"nothing"},
    "k": set(ODD),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("role", READ)
def test_odd_columns_are_read_or_refused(kind: str, role: str) -> None:
    usual = one_step(e=["a", "b"], t=[1, 2], d=[1, 1], p=[0.5, 0.5], k=["u", "v"])
    roles = {"time": "t", "terminated": "d", "behaviour_prob": "p", "extra": ["k"]}
    if kind in READ[role]:
        assert log_of(usual | {role: ODD[kind]}, **roles).num_transitions == 2
    else:
        with pytest.raises(ad.DatasetError):
            log_of(usual | {role: ODD[kind]}, **roles)


def test_missing_values_are_counted_and_refused() -> None:
    changes = {"age": [40.0, None, float("nan"), 41.0, 51.0], "ward": ["south", None, "south", "north", "south"]}
    with pytest.raises(ad.DatasetError, match=r"^age: 2 missing, ward: 1 missing \(the first at episode p1, step 0\)"):
        clinic(changes)
    for column, role in (("outcome", "Rewards"), ("drug", "Actions")):
        gaps = [*CLINIC[column][:2], None, *CLINIC[column][3:]]
        with pytest.raises(ad.DatasetError, match=f"{column}: 1 missing, the first at episode p1, step 0. {role} are"):
            clinic({column: gaps}, impute="median")


def test_medians_indicators_and_a_category_replace_missing_values() -> None:
    changes = {"age": [40.0, None, 50.0, 41.0, 51.0], "ward": ["south", None, "south", "north", "south"]}
    log = clinic(changes, impute="median")
    assert log.names.observations == ("age", "ward", "age_missing")
    assert log.names.categories == {1: ("north", "south", "missing")}
    assert log.observation.tolist() == [[40, 1, 0], [41, 0, 0], [50, 1, 0], [51, 1, 0], [45.5, 2, 1]]
    assert log.next_observation[3].tolist() == [45.5, 2, 1]
    assert notes_of(log.metadata) == (
        "missing values are imputed by the median (age: 1 by 45.5; ward: 1 as the category missing). "
        "New observations: age_missing",
    )
    assert clinic(impute="median").sha256 == clinic().sha256
    with pytest.raises(ad.DatasetError, match="age is missing in every row"):
        clinic({"age": [None] * 5}, impute="median")
    with pytest.raises(ad.SettingError, match="impute is 'mean'"):
        clinic(impute="mean")


# Probabilities, masks, names.


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5])
def test_probabilities_outside_their_range_are_refused(wrong: float) -> None:
    with pytest.raises(
        ad.DatasetError, match=rf"^episode p1, step 0: prob is {wrong:g}\. The probability of the logged"
    ):
        clinic({"prob": [0.5, 1.0, wrong, 0.5, 0.25]})


def test_probabilities_of_the_target_may_be_zero_and_densities_above_one() -> None:
    log = clinic({"p": [0.0, 1.0, 0.5, 0.5, 0.5]}, target_prob="p")
    assert log.target_log_prob is not None
    assert log.target_log_prob[0] == -np.inf
    assert log_of(one_step(a=[0.5, 1.5], p=[2.0, 4.0]), behaviour_prob="p").behaviour_log_prob == pytest.approx(
        np.log([2.0, 4.0])
    )
    with pytest.raises(ad.DatasetError, match="give behaviour_prob or behaviour_log_prob, not both"):
        clinic(behaviour_log_prob="prob")
    empty = clinic({"prob": [None] * 5})
    assert empty.behaviour_log_prob is None
    assert notes_of(empty.metadata) == ("prob is empty: behaviour_prob counts as unknown",)


def test_masks_are_columns_or_lists() -> None:
    table = one_step(a=[0, 1], m=[[True, False], [True, True]], m0=["yes", "yes"], m1=[0, 1])
    assert log_of(table, action_mask="m").sha256 == log_of(table, action_mask=["m0", "m1"]).sha256


def test_an_unknown_column_is_named_with_a_similar_one() -> None:
    with pytest.raises(ad.DatasetError, match=r"^no column 'Outcme'\. Did you mean outcome\? The columns are patient"):
        clinic(reward="Outcme")
    with pytest.raises(ad.DatasetError, match=r"categorical names 'wart', which is no observation. Did you mean ward"):
        clinic(categorical=["wart"])
    with pytest.raises(ad.DatasetError, match="list is no data frame"):
        ad.from_dataframe([1, 2], **ROLES)
    with pytest.raises(ad.DatasetError, match="holds values of different types"):
        ad.from_dataframe(pd.DataFrame(CLINIC | {"outcome": [1, "a", 2, 3, 4]}), **ROLES)
    with pytest.raises(ad.DatasetError, match="the table has no rows"):
        ad.from_dataframe(pd.DataFrame(CLINIC).iloc[:0], **ROLES)


@settings(max_examples=40, deadline=None)
@given(order=st.permutations(range(5)), names=st.permutations(["p1", "p2", "zz"]))
def test_the_order_of_rows_and_names_of_patients_do_not_matter(order: list[int], names: list[str]) -> None:
    """But for the numbers of the episodes."""
    renamed = CLINIC | {"patient": [names[int(one[1]) - 1] for one in CLINIC["patient"]]}
    log = ad.from_dataframe(pa.table(renamed).take(order), **ROLES)
    expected = clinic()
    here = {names[0]: "p1", names[1]: "p2"}
    for name in ("p1", "p2"):
        rows = [here[str(one)] == name for one in log.extra["episode_name"]]
        same = expected.extra["episode_name"] == name
        for column in ("observation", "next_observation", "action", "reward", "terminated", "behaviour_log_prob"):
            assert np.array_equal(getattr(log, column)[rows], getattr(expected, column)[same])


@pytest.mark.parametrize("has_dates", [False, True])
def test_named_episodes_are_numbered_by_their_first_step(has_dates):
    """Not by whichever of their rows stands first: in shuffled rows that is a row of a long episode."""
    table = {"e": ["long", "short", "long"], "t": [2, 1, 1], "x": [0.0, 1.0, 2.0], "a": [0, 1, 0], "r": [3.0, 2.0, 1.0]}
    if has_dates:  # then the table's order does not matter
        table = {name: [values[row] for row in (2, 0, 1)] for name, values in table.items()}
        table["t"] = [datetime.date(2024, 5, day) for day in (2, 3, 1)]
    log = log_of(table, time="t", terminated=True)
    assert log.extra["episode_name"].tolist() == ["short", "long", "long"]
    assert log.reward.tolist() == [2.0, 1.0, 3.0]


def test_features_of_actions():
    log = clinic(actions=["none", "low", "high"], action_features=[[0.0], [1.0], [5.0]])
    np.testing.assert_array_equal(log.action_features[log.action, 0], [0, 5, 1, 0, 5])  # p2, then p1
    with pytest.raises(ad.DatasetError, match="action_features have 2 rows, and the log has action 2"):
        clinic(action_features=[[0.0], [1.0]])
