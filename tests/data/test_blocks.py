"""Blocks of a log on disk are the log that `read_dataset` reads: in every order of rows, row groups and files."""

import gc
import os
import pickle
import sys
import tempfile
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import average_dice as ad
from average_dice.data import LogBlocks, external_sort, survey
from average_dice.data import parts as parts_module
from average_dice.data.parts import read_groups
from average_dice.data.survey import BlockEnds
from on_disk import check_the_same, continuous_log, sizes, table_of, uneven_log, with_everything, write_parts

EXTRA = ("cost", "site")
LOGS = {"plain": uneven_log, "everything": with_everything, "continuous": continuous_log}
NUM_ROWS = uneven_log().num_transitions

# Rows of each file. The first four need no sorting.
LAYOUTS = {
    "one file": [range(31)],
    "files that divide episodes": [range(8), range(8, 9), range(9, 31)],
    "files in another order": [range(20, 31), range(5), range(5, 20)],
    "row groups in another order": [[*range(12, 24), *range(12), *range(24, 31)]],  # by groups of 4
    "rows reversed": [range(30, -1, -1)],
    "interleaved files": [range(0, 31, 2), range(1, 31, 2)],
    "shuffled": [np.random.default_rng(0).permutation(31)],
}


@pytest.fixture
def own_temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def extra_of(log):
    return [name for name in EXTRA if name in log.extra]


@pytest.mark.parametrize("rows", [1, 10, 1_000])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", LOGS)
def test_blocks_are_the_log_that_is_read_whole(tmp_path, kind, layout, rows):
    log = LOGS[kind]()
    folder = write_parts(table_of(log, tmp_path), tmp_path / "log", LAYOUTS[layout])
    whole = ad.read_dataset(folder, extra=extra_of(log))
    assert whole.sha256 == log.sha256
    blocks = LogBlocks.open(folder, rows=rows, extra=extra_of(log))
    check_the_same(blocks, whole, rows)
    check_the_same(blocks, whole, rows)  # another pass gives the same
    blocks.close()


def test_batches_that_are_sorted_each_are_not_sorted_together(tmp_path, monkeypatch):
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", [[*range(16, 31), *range(16)]], 31)
    monkeypatch.setattr(survey, "MOST_ROWS_AT_ONCE", 15)
    with LogBlocks.open(folder, rows=10) as blocks:
        assert blocks.copy is not None
        check_the_same(blocks, uneven_log(), 10)


@pytest.mark.parametrize("layout", list(LAYOUTS)[:4])
def test_rows_that_have_a_sorted_order_of_row_groups_need_no_sorting(tmp_path, layout, monkeypatch):
    monkeypatch.setattr(external_sort, "_sort", None)
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", LAYOUTS[layout], row_group=1)
    assert LogBlocks.open(folder).num_transitions == NUM_ROWS


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    rows=st.integers(1, 40),
    row_group=st.integers(1, 20),
    num_files=st.integers(1, 3),
    batch=st.integers(1, 20),
    disorder=st.sampled_from(["none", "files", "all"]),
    seed=st.integers(0, 99),
)
def test_any_lengths_blocks_and_layout(tmp_path_factory, lengths, rows, row_group, num_files, batch, disorder, seed):
    folder = tmp_path_factory.mktemp("any")
    log = uneven_log(tuple(lengths), seed=seed)
    generator = np.random.default_rng(seed)
    order = generator.permutation(sum(lengths)) if disorder == "all" else np.arange(sum(lengths))
    bounds = np.sort(generator.integers(0, sum(lengths) + 1, num_files - 1))  # some files may be empty
    parts = np.split(order, bounds)
    if disorder == "files":
        parts = [parts[one] for one in generator.permutation(num_files)]
    write_parts(table_of(log, folder), folder / "log", parts, row_group)
    with pytest.MonkeyPatch.context() as patch:
        for module in (parts_module, survey):
            patch.setattr(module, "MOST_ROWS_AT_ONCE", batch)
        with LogBlocks.open(folder / "log", rows=rows) as blocks:
            check_the_same(blocks, log, rows)
            assert blocks.num_episodes == log.num_episodes
            assert (blocks.shortest, blocks.longest) == (min(lengths), max(lengths))


@given(
    rows=st.integers(1, 12),
    row_group=st.integers(1, 20),
    bounds=st.lists(st.integers(0, 31), max_size=4),
    layout=st.sampled_from(list(LAYOUTS)),
    sent=st.booleans(),
)
def test_parts_are_the_whole_however_it_is_divided(tmp_path_factory, rows, row_group, bounds, layout, sent):
    folder = tmp_path_factory.mktemp("parts")
    log = with_everything()
    write_parts(table_of(log, folder), folder / "log", LAYOUTS[layout], row_group)
    in_memory = LogBlocks.of_dataset(log, rows)
    with LogBlocks.open(folder / "log", rows=rows, extra=EXTRA) as on_disk:
        for blocks in (in_memory, on_disk):
            is_sent = sent and blocks is on_disk  # copies of columns in memory could be written to
            used = pickle.loads(pickle.dumps(blocks)) if is_sent else blocks
            ends = [0, *sorted(one for one in bounds if one < len(blocks)), len(blocks)]
            found = [list(used.part(*both)) for both in pairwise(ends)]
            assert [len(some) for some in found] == [last - first for first, last in pairwise(ends)]
            check_the_same(Joined(blocks, [one for some in found for one in some]), log, rows)
            episodes = np.cumsum([block.num_episodes for block in blocks])
            assert blocks.episode_ends == tuple(episodes.tolist())


class Joined(list):
    """Blocks that were read in parts."""

    def __init__(self, blocks, found):
        super().__init__(found)
        self.ends = blocks.ends


def test_a_part_reads_its_own_row_groups_alone(tmp_path, monkeypatch):
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", [range(14), range(14, 31)], row_group=2)
    blocks = LogBlocks.open(folder, rows=12)  # of 11, 2, 12 and 6 rows
    read = []

    def recorded(path, groups, names, num_rows):
        read.extend((path.name, group) for group in groups)
        return read_groups(path, groups, names, num_rows)

    monkeypatch.setattr(parts_module, "read_groups", recorded)
    assert [block.num_transitions for block in blocks.part(1, 2)] == [2]
    assert read == [("part-0.parquet", 5), ("part-0.parquet", 6)]
    read.clear()
    assert [block.num_transitions for block in blocks.part(2, 4)] == [12, 6]
    assert read == [("part-0.parquet", 6), *(("part-1.parquet", group) for group in range(9))]
    assert list(blocks.part(2, 2)) == []


def test_another_process_reads_relative_paths_and_leaves_the_sorted_copy(tmp_path, monkeypatch):
    write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", LAYOUTS["shuffled"])
    monkeypatch.chdir(tmp_path)
    with LogBlocks.open("log", rows=9) as blocks, LogBlocks.open("log", rows=9, folder="kept") as kept:
        sent, sent_kept = pickle.loads(pickle.dumps((blocks, kept)))
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        check_the_same(sent_kept, uneven_log(), 9)
        sent.close()
        check_the_same(sent, uneven_log(), 9)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=30),
    st.integers(1, 40),
    st.lists(st.integers(0, 30), max_size=5),
)
def test_ends_of_blocks_do_not_depend_on_the_batches(lengths, rows, bounds):
    ends = BlockEnds(rows)
    for some in np.split(np.cumsum(lengths), sorted(bounds)):
        ends.add(some)
    assert np.diff(ends.finished(), prepend=0).tolist() == sizes(lengths, rows)


@pytest.mark.parametrize("kind", LOGS)
def test_what_is_known_without_a_pass(tmp_path, kind):
    log = LOGS[kind]()
    ad.write_dataset(log, tmp_path / "log.parquet")
    for blocks in (LogBlocks.open(tmp_path / "log.parquet", rows=10), LogBlocks.of_dataset(log, 10)):
        assert blocks.num_transitions == log.num_transitions
        assert blocks.num_episodes == log.num_episodes == 7
        assert blocks.num_terminated == log.terminated.sum() == 4
        assert (blocks.shortest, blocks.longest) == (1, 12)
        assert (blocks.reward_min, blocks.reward_max) == (log.reward.min(), log.reward.max())
        assert blocks.num_observations == 3
        assert blocks.is_discrete == log.is_discrete
        assert blocks.num_actions == (log.action.max() + 1 if log.is_discrete else 2)
        assert ("behaviour_log_prob" in blocks.columns) == (log.behaviour_log_prob is not None)
        assert ("action_mask" in blocks.columns) == (log.action_mask is not None)
        for name in ("names", "metadata", "categorical", "estimated_behaviour"):
            assert getattr(blocks, name) == getattr(log, name)
        np.testing.assert_equal(blocks.action_features, log.action_features)
        assert len(blocks) == len(list(blocks)) == 4
        assert repr(blocks) == "LogBlocks(31 transitions, 7 episodes, 4 blocks)"


@pytest.mark.parametrize("kind", LOGS)
def test_blocks_of_a_log_in_memory_are_views(kind):
    log = LOGS[kind]()
    blocks = LogBlocks.of_dataset(log, 10)
    check_the_same(blocks, log, 10)
    for block in blocks:
        assert np.shares_memory(block.observation, log.observation)
        assert np.shares_memory(block.reward, log.reward)
        assert block.starts[0] == 0
        assert block.num_episodes == len(np.unique(block.episode))


def test_a_block_of_a_log_in_memory_cannot_be_estimated_again():
    log = ad.estimate_behaviour(uneven_log(behaviour_log_prob=None), models=["constant"])
    assert log.estimated_behaviour.again is not None
    assert all(block.estimated_behaviour.again is None for block in LogBlocks.of_dataset(log, 10))


def test_passes_may_overlap(tmp_path):
    log = uneven_log()
    folder = write_parts(table_of(log, tmp_path), tmp_path / "log", LAYOUTS["interleaved files"])
    blocks = LogBlocks.open(folder, rows=5)
    for one, other in zip(blocks, blocks, strict=True):
        np.testing.assert_array_equal(one.reward, other.reward)


def test_files_folders_patterns_and_lists_of_them(tmp_path):
    folder = write_parts(
        table_of(uneven_log(), tmp_path), tmp_path / "log", LAYOUTS["files that divide episodes"], row_group=3
    )
    files = sorted(folder.iterdir())
    for paths in (folder, str(folder), f"{folder}/*.parquet", files, [files[2], f"{folder}/part-[01].parquet"]):
        check_the_same(LogBlocks.open(paths, rows=9), uneven_log(), 9)


def test_types_of_other_writers_are_read_as_in_memory(tmp_path):
    log = uneven_log(observation=np.ones((31, 3)), next_observation=np.ones((31, 3)), extra={"site": ["x"] * 31})
    table = table_of(log, tmp_path)
    kinds = {
        "observation": [pa.list_(pa.float32(), 3), pa.large_list(pa.float64()), pa.list_(pa.float16())],
        "step": [pa.int16(), pa.int64(), pa.int32()],
        "reward": [pa.float64()] * 3,
        "action": [pa.int8(), pa.int32(), pa.int64()],
        "site": [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string()],
    }
    for layout in ("interleaved", "sorted"):
        folder = tmp_path / layout
        folder.mkdir()
        for number in range(3):
            rows = np.arange(number, 31, 3) if layout == "interleaved" else np.split(np.arange(31), [8, 9])[number]
            part = table.take(pa.array(rows))
            for name, types in kinds.items():
                part = part.set_column(part.column_names.index(name), name, part.column(name).cast(types[number]))
            pq.write_table(part, folder / f"{number}.parquet", row_group_size=4)
        assert ad.read_dataset(folder).sha256 == log.sha256
        check_the_same(LogBlocks.open(folder, rows=6, extra=["site"]), log, 6)


def test_an_optional_column_that_is_null_throughout_is_unknown(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    nulls = table.set_column(8, "behaviour_log_prob", pa.nulls(31, pa.float64())).append_column(
        "action_mask", pa.nulls(31)
    )
    pq.write_table(nulls, tmp_path / "log.parquet", row_group_size=4)
    blocks = LogBlocks.open(tmp_path / "log.parquet", rows=5)
    assert "behaviour_log_prob" not in blocks.columns
    assert all(block.behaviour_log_prob is None and block.action_mask is None for block in blocks)


def test_declarations_of_the_caller_replace_those_of_the_files(tmp_path):
    ad.write_dataset(with_everything(), tmp_path / "log.parquet")
    given = {"categorical": ["ward", 0], "action_features": [[1.0], [2.0], [3.0], [4.0]], "extra": ["cost"]}
    with pytest.raises(ad.DatasetError, match="Codes of a categorical column must be"):  # column 0 differs by rounding
        ad.read_dataset(_rounded(tmp_path), **given)
    with pytest.raises(ad.DatasetError, match="Codes of a categorical column must be"):
        list(LogBlocks.open(_rounded(tmp_path), **given))
    given["categorical"] = ["ward"]
    whole = ad.read_dataset(tmp_path / "log.parquet", **given)
    check_the_same(LogBlocks.open(tmp_path / "log.parquet", rows=6, **given), whole, 6)


def _rounded(folder):
    """The same log with next observations that differ a little from the next row's."""
    table = pq.read_table(folder / "log.parquet")
    values = [[one + 1e-7 for one in row[:2]] + row[2:] for row in table.column("next_observation").to_pylist()]
    place = table.column_names.index("next_observation")
    path = folder / "rounded.parquet"
    pq.write_table(table.set_column(place, "next_observation", pa.array(values)), path)
    return path


def test_probabilities_of_the_user_are_estimates(tmp_path):
    ad.write_dataset(uneven_log(), tmp_path / "log.parquet")
    blocks = LogBlocks.open(tmp_path / "log.parquet", behaviour_estimated=True)
    whole = ad.read_dataset(tmp_path / "log.parquet", behaviour_estimated=True)
    assert next(iter(blocks)).estimated_behaviour == whole.estimated_behaviour is not None


def test_a_low_limit_of_memory_makes_blocks_smaller(tmp_path):
    ad.write_dataset(uneven_log((9,) * 400), tmp_path / "log.parquet")
    assert len(LogBlocks.open(tmp_path / "log.parquet")) == 1
    blocks = LogBlocks.open(tmp_path / "log.parquet", memory="1MiB")
    assert [block.num_transitions for block in blocks][:-1] == [blocks.ends[0]] * (len(blocks) - 1)
    assert 256 < blocks.ends[0] < 1_000


def test_the_temporary_copy_goes_with_the_blocks(tmp_path, own_temporary_folder):
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", LAYOUTS["shuffled"])
    with LogBlocks.open(folder) as blocks:
        assert len(os.listdir(own_temporary_folder)) == 1
        assert [path.name.split("-")[0] for path in blocks.copy.path.iterdir()] == ["sorted"]
    assert os.listdir(own_temporary_folder) == []
    remaining = iter(LogBlocks.open(folder, rows=10))
    next(remaining)
    gc.collect()
    assert len(list(remaining)) == 3  # the copy exists as long as a pass needs it
    del remaining
    gc.collect()
    assert os.listdir(own_temporary_folder) == []


def test_a_sorted_copy_in_a_folder_is_reused_until_a_file_changes(tmp_path, own_temporary_folder, monkeypatch):
    source = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", LAYOUTS["interleaved files"])
    sorts = []
    sort = external_sort._sort
    monkeypatch.setattr(external_sort, "_sort", lambda *given: sorts.append(1) or sort(*given))
    for expected in (1, 1):
        check_the_same(LogBlocks.open(source, rows=9, folder=tmp_path / "kept"), uneven_log(), 9)
        assert len(sorts) == expected
    (copy,) = (tmp_path / "kept").iterdir()
    assert ad.read_dataset(copy).sha256 == uneven_log().sha256  # a log of its own
    write_parts(table_of(uneven_log(seed=5), tmp_path), source, LAYOUTS["interleaved files"])
    check_the_same(LogBlocks.open(source, rows=9, folder=tmp_path / "kept"), uneven_log(seed=5), 9)
    assert len(sorts) == 2
    os.utime(source / "part-0.parquet", ns=(0, 0))
    LogBlocks.open(source, folder=tmp_path / "kept")
    assert len(sorts) == 3
    assert os.listdir(own_temporary_folder) == []


def test_without_duckdb_only_sorted_logs_are_read(tmp_path, monkeypatch, own_temporary_folder):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    table = table_of(uneven_log(), tmp_path)
    write_parts(table, tmp_path / "sorted", LAYOUTS["files in another order"], row_group=10)
    check_the_same(LogBlocks.open(tmp_path / "sorted", rows=9), uneven_log(), 9)
    write_parts(table, tmp_path / "unsorted", LAYOUTS["shuffled"])
    with pytest.raises(
        ad.SettingError, match=r"unsorted: the rows are not sorted .* pip install 'average-dice\[large\]'"
    ):
        LogBlocks.open(tmp_path / "unsorted")
    gc.collect()
    assert os.listdir(own_temporary_folder) == []
