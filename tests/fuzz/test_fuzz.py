"""Every reader ends in a result or in one of our errors, whatever the file holds. `make fuzz` tries many more."""

import gzip
import io
import json
import zipfile
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import average_dice as ad
from average_dice import memory
from average_dice.data.columns import OPTIONAL, REQUIRED
from fuzz.inputs import MAPPED, TARGETS, Unacceptable, acceptable, examples_of, mutated, run

NUM_MUTATED = 40  # for each reader


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_files(name, tmp_path):
    generator = np.random.default_rng(20250)
    accepted = [run(name, mutated(name, generator), tmp_path) for _ in range(NUM_MUTATED)]
    assert not all(accepted), "no input was refused: the mutations change nothing"


@pytest.mark.parametrize("name", TARGETS)
def test_the_files_that_mutations_start_from_are_valid(name, tmp_path):
    assert any(run(name, content, tmp_path) for content in examples_of(name))


def test_what_counts_as_unacceptable(tmp_path):
    def fails() -> None:
        raise KeyError("x")

    def is_silent() -> None:
        raise ad.DatasetError("")

    with pytest.raises(Unacceptable, match="KeyError"):
        acceptable(fails)
    with pytest.raises(Unacceptable, match="unreadable"):
        acceptable(is_silent)
    import os

    with pytest.raises(Unacceptable, match=r"os\.system"):
        acceptable(lambda: os.system("true"))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
)
columns = st.one_of(
    st.lists(scalars, max_size=4),
    st.lists(st.lists(st.floats(), max_size=3), max_size=4),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    scalars,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from((*REQUIRED, *OPTIONAL)), columns, min_size=6))
def test_columns_of_any_structure(given_columns: dict[str, Any]):
    acceptable(lambda: ad.LoggedDataset.from_columns(given_columns))


VISITS = {
    "patient": ["a", "a", "b"],
    "day": [0, 1, 0],
    "age": [61.0, 62.5, 47.0],
    "ward": ["er", "icu", "er"],
    "drug": ["wait", "treat", "treat"],
    "outcome": [0.5, 1.0, 2.0],
    "ended": [False, True, True],
    "p": [0.5, 0.25, 1.0],
}
kinds = (st.booleans(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=3))
cells_of_one_kind = st.sampled_from(
    (*kinds, st.datetimes(), st.dates(), st.lists(st.floats(), max_size=2), st.binary())
)
columns_of_one_kind = cells_of_one_kind.flatmap(lambda kind: st.lists(st.none() | kind, min_size=3, max_size=3))


def from_visits(changes: dict[str, list[Any]]) -> ad.LoggedDataset:
    """The log of the visits with other columns in place of some."""
    frame = polars.DataFrame(VISITS | changes)
    return ad.from_dataframe(frame, **MAPPED["columns"], observations=MAPPED["observations"])


def test_the_visits_are_valid():
    assert from_visits({}).num_episodes == 2


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(VISITS)), columns_of_one_kind, min_size=1, max_size=2))
def test_data_frames_with_columns_of_any_kind(changes: dict[str, list[Any]]):
    acceptable(lambda: from_visits(changes))


json_values = st.recursive(
    scalars.filter(lambda one: not isinstance(one, bytes)),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=4), children, max_size=3),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), json_values)
def test_results_with_one_other_value(place: int, value: Any):
    content = json.loads(examples_of("result, JSON")[0])
    places = list(_places(content))
    holder, key = places[place % len(places)]
    holder[key] = value
    acceptable(lambda: _rendered(content))


def _rendered(content: Any) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        path.write_text(json.dumps(content))
        TARGETS["result, JSON"].read(path)


def _places(content: Any):
    """Every place of a value in a JSON content."""
    for key in content if isinstance(content, dict) else range(len(content)):
        yield content, key
        if isinstance(content[key], dict | list):
            yield from _places(content[key])


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    """A gigabyte of zeros takes a megabyte."""
    path = tmp_path / "bomb.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**27,)})
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("reward.npy", "w", force_zip64=True) as file,
    ):
        file.write(header.getvalue())
        for _ in range(1024):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**21
    with memory.limited("100MiB"):
        with pytest.raises(ad.NotEnoughMemory, match="memory"):
            ad.read_dataset(path)
        with pytest.raises(ad.NotEnoughMemory, match="memory"):
            ad.data.read_action_features(path)


def test_a_parquet_bomb_is_refused_before_it_is_decoded(tmp_path):
    """A constant column of many rows takes a few bytes."""
    path = tmp_path / "bomb.parquet"
    rows = 2**24
    pq.write_table(pa.table({name: pa.array(np.zeros(rows, np.int64)) for name in REQUIRED}), path, compression="zstd")
    assert path.stat().st_size < 2**20
    with memory.limited("100MiB"), pytest.raises(ad.NotEnoughMemory, match="memory"):
        ad.read_dataset(path)


@pytest.mark.parametrize("target", ["result, JSON", "policy, rules"])
def test_deeply_nested_json_is_refused(tmp_path, target):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    assert not acceptable(lambda: TARGETS[target].read(path))


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"patient,day,age,ward,drug,outcome,ended,p\n")
        for _ in range(300):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    with memory.limited("100MiB"), pytest.raises(ad.NotEnoughMemory, match="memory"):
        ad.read_dataset(path, **MAPPED)
