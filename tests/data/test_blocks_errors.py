"""What is wrong with a log on disk is said in the sentences of the reader in memory, with the file."""

import gc
import os
import re
import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import average_dice as ad
from average_dice.data import LogBlocks
from average_dice.data.survey import divided
from on_disk import continuous_log, table_of, uneven_log, with_everything, write_parts

ROWS = 5  # of a block
LAYOUTS = {"sorted": False, "shuffled": True}


def all_blocks(path, rows=ROWS, **options):
    with LogBlocks.open(path, rows=rows, **options) as blocks:
        return list(blocks)


def sentences(function, *given, **options):
    """The problems without the files before them and the number of others like them."""
    with pytest.raises(ad.DatasetError) as caught:
        function(*given, **options)
    return [re.sub(r"^.*?\.parquet: | \(\d+ more like it\)$", "", one) for one in caught.value.problems]


def changed(table, name, row, value):
    values = table.column(name).to_pylist()
    if isinstance(value, tuple):
        place, value = value
        values[row][place] = value
    else:
        values[row] = value
    place = table.column_names.index(name)
    return table.set_column(place, table.field(name), pa.array(values, table.field(name).type))


def without(table, row):
    return table.take(pa.array([one for one in range(len(table)) if one != row]))


# Row 15 is step 2 of an episode of 12 steps, which is in the middle of the file; row 24 is its last.
WRONG = {
    "gap": lambda table: without(table, 15),
    "late start": lambda table: without(table, 13),
    "repeated row": lambda table: pa.concat_tables([table.slice(0, 16), table.slice(15)]),
    "repeated row at the end": lambda table: pa.concat_tables([table, table.slice(30)]),
    "continues after terminated": lambda table: changed(table, "terminated", 15, True),
    "continues after truncated": lambda table: changed(table, "truncated", 15, True),
    "no end": lambda table: changed(table, "terminated", 24, False),
    "NaN in a vector": lambda table: changed(table, "observation", 15, (1, np.nan)),
    "null in a vector": lambda table: changed(table, "observation", 15, (1, None)),
    "infinite reward": lambda table: changed(table, "reward", 15, np.inf),
    "huge number": lambda table: changed(table, "behaviour_log_prob", 15, -1e38),
    "impossible action": lambda table: changed(table, "behaviour_log_prob", 15, -np.inf),
    "positive log-probability": lambda table: changed(table, "behaviour_log_prob", 15, 0.5),
    "negative action": lambda table: changed(table, "action", 15, -1),
    "broken chain": lambda table: changed(table, "next_observation", 15, (0, 9.0)),
    "another code": lambda table: changed(table, "next_observation", 15, (2, 2.000001)),
    "forbidden action": lambda table: changed(table, "action_mask", 15, [False, False, False, True]),
    "no allowed action": lambda table: changed(table, "action_mask", 15, [False] * 4),
    "null in a mask": lambda table: changed(table, "action_mask", 15, (3, None)),
    "short vector": lambda table: changed(table, "observation", 15, [0.0, 1.0]),
    "vector in one row only": lambda table: changed(table, "observation", 30, [0.0] * 4),
    "short mask": lambda table: changed(table, "action_mask", 15, [True] * 3),
    "null": lambda table: changed(table, "reward", 15, None),
    "null step": lambda table: changed(table, "step", 15, None),
    "null in the first row": lambda table: changed(table, "reward", 0, None),
    "null list": lambda table: changed(table, "observation", 15, None),
    "null of an optional column": lambda table: changed(table, "behaviour_log_prob", 15, None),
    "null of an optional column in the first row": lambda table: changed(table, "behaviour_log_prob", 0, None),
    "null of an extra column": lambda table: changed(table, "cost", 15, None),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wrong", WRONG)
def test_the_sentence_is_that_of_the_reader_in_memory(tmp_path, wrong, layout):
    table = WRONG[wrong](table_of(with_everything(), tmp_path))
    if LAYOUTS[layout]:
        first = np.arange(len(table)) > 0  # the first row stays, because it says what is known
        table = table.take(np.append(0, np.random.default_rng(0).permutation(np.flatnonzero(first))))
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, row_group_size=3)
    expected = sentences(ad.read_dataset, path, extra=["cost"])
    assert sentences(all_blocks, path, extra=["cost"])[0] in expected
    with pytest.raises(ad.DatasetError, match=f"^{re.escape(str(path))}: "):
        all_blocks(path, extra=["cost"])


def test_a_column_that_is_null_in_a_whole_block_is_no_unknown_one(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    for row in range(13, 25):  # an episode, and a block
        table = changed(table, "behaviour_log_prob", row, None)
    pq.write_table(table, tmp_path / "log.parquet")
    expected = sentences(ad.read_dataset, tmp_path / "log.parquet")
    assert expected[0].startswith("episode 17, step 0: behaviour_log_prob is missing here but known in other rows")
    assert sentences(all_blocks, tmp_path / "log.parquet") == expected


def test_vectors_that_are_longer_in_a_whole_block(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    for name in ("observation", "next_observation"):
        for row in range(13, 25):
            table = changed(table, name, row, [0.0] * 4)
    pq.write_table(table, tmp_path / "log.parquet")
    expected = "episode 17, step 0: observation has 4 numbers where other rows have 3"
    assert sentences(all_blocks, tmp_path / "log.parquet")[0].startswith(expected)
    assert sentences(ad.read_dataset, tmp_path / "log.parquet")[0].startswith(expected)


def test_the_file_of_the_block_is_named(tmp_path):
    table = changed(table_of(uneven_log(), tmp_path), "reward", 27, np.nan)
    folder = write_parts(table, tmp_path / "log", [range(13), range(13, 25), range(25, 31)])
    with pytest.raises(ad.DatasetError, match=r"part-2\.parquet: episode 31, step 1: reward is nan"):
        all_blocks(folder)


def test_an_episode_in_two_files_must_continue(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    write_parts(table, tmp_path / "log", [range(13), range(31)])  # both hold the first episodes
    with pytest.raises(ad.DatasetError, match="episode -11, step 0: the row occurs twice"):
        all_blocks(tmp_path / "log")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_truncated_part_is_named(tmp_path, layout):
    table = table_of(uneven_log((5,) * 200), tmp_path)
    rows = np.random.default_rng(0).permutation(1_000) if LAYOUTS[layout] else np.arange(1_000)
    folder = write_parts(table, tmp_path / "log", np.split(rows, 3 * [500])[::3], row_group=100)
    broken = folder / "part-1.parquet"
    whole = broken.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 9).astype(int):
        broken.write_bytes(whole[:size])
        with pytest.raises(ad.DatasetError, match=r"part-1\.parquet: (the file is empty|not a readable Parquet file)"):
            all_blocks(folder)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_with_damaged_pages_is_named(tmp_path, layout, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    table = table_of(uneven_log((5,) * 200), tmp_path)
    rows = np.random.default_rng(0).permutation(1_000) if LAYOUTS[layout] else np.arange(1_000)
    folder = write_parts(table, tmp_path / "log", [rows[:500]])
    broken = folder / "part-1.parquet"
    pq.write_table(table.take(pa.array(rows[500:])), broken, row_group_size=100, write_page_checksum=True)
    column = pq.ParquetFile(broken).metadata.row_group(3).column(table.column_names.index("observation"))
    content = bytearray(broken.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 20] ^= 255
    broken.write_bytes(content)
    with pytest.raises(ad.DatasetError, match=r"part-1\.parquet: not a readable Parquet file \(.*[cC]hecksum"):
        all_blocks(folder)
    gc.collect()
    assert os.listdir(temporary) == []


def test_files_of_other_kinds_and_missing_ones(tmp_path):
    ad.write_dataset(uneven_log(), tmp_path / "a.parquet")
    ad.write_dataset(uneven_log(), tmp_path / "b.npz")
    with pytest.raises(ad.DatasetError, match=r"b\.npz: only Parquet files are read in blocks\. .* read_dataset"):
        LogBlocks.open(tmp_path)
    with pytest.raises(ad.DatasetError, match="no such file"):
        LogBlocks.open(tmp_path / "c.parquet")
    with pytest.raises(ad.DatasetError, match="no file given"):
        LogBlocks.open([])
    with pytest.raises(ad.DatasetError, match="no file has such a name"):
        LogBlocks.open(str(tmp_path / "*.feather"))


def test_a_missing_column(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    pq.write_table(table.drop_columns(["reward"]), tmp_path / "log.parquet")
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: missing column: reward\. .*average-dice convert"):
        LogBlocks.open(tmp_path / "log.parquet")


def test_a_log_without_rows(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    pq.write_table(table.slice(0, 0), tmp_path / "log.parquet")
    assert sentences(LogBlocks.open, tmp_path / "log.parquet") == sentences(ad.read_dataset, tmp_path / "log.parquet")


def test_parts_that_do_not_fit_together(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    folder = write_parts(table, tmp_path / "log", [range(13)])
    rest, second = table.slice(13), folder / "part-1.parquet"
    place = table.column_names.index
    actions = rest.column("action")
    others = {
        r"behaviour_log_prob is missing in .*part-1\.parquet but not in": rest.drop_columns(["behaviour_log_prob"]),
        r"behaviour_log_prob is missing in .*part-1\.parquet but not": rest.set_column(
            8, rest.field(8).name, pa.nulls(18)
        ),
        "action has different types in different files": rest.set_column(
            place("action"), "action", actions.cast(pa.float64())
        ),
        "step has different types in different files": rest.set_column(
            place("step"), "step", rest.column("step").cast(pa.uint64())
        ),
        "next_observation": rest.set_column(place("next_observation"), "next_observation", pa.array([[0.0, 1.0]] * 18)),
        r"categorical is not the same in .*part-0\.parquet and in .*part-1": rest.replace_schema_metadata(
            {"average_dice.categorical": "[2]"}
        ),
        "metadata under average_dice is not a JSON object": rest.replace_schema_metadata({"average_dice": "[]"}),
    }
    for message, other in others.items():
        pq.write_table(other, second)
        for read in (ad.read_dataset, all_blocks):
            with pytest.raises(ad.DatasetError, match=message):
                read(folder)
    longer = [[0.0] * 4] * 18
    wide = rest.set_column(place("observation"), "observation", pa.array(longer))
    pq.write_table(wide.set_column(place("next_observation"), "next_observation", pa.array(longer)), second)
    with pytest.raises(ad.DatasetError, match="episode 17, step 0: observation has 4 numbers where other rows have 3"):
        LogBlocks.open(folder)


def test_wrong_types(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    wrong = {
        "episode must be one integer per row": ("episode", pa.array([0.5] * 31)),
        "reward must be one number per row": ("reward", pa.array(["x"] * 31)),
        "terminated must be true or false": ("terminated", pa.array(["x"] * 31)),
        "observation must be one list of numbers per row": ("observation", pa.array([["x"]] * 31)),
        "action must be one integer per row": ("action", pa.array([[]] * 31, pa.list_(pa.float64()))),
        "reward is missing": ("reward", pa.nulls(31)),
    }
    for message, (name, values) in wrong.items():
        pq.write_table(table.set_column(table.column_names.index(name), name, values), tmp_path / "log.parquet")
        for read in (ad.read_dataset, all_blocks):
            with pytest.raises(ad.DatasetError, match=message):
                read(tmp_path / "log.parquet")
    pq.write_table(table.append_column("reward", table.column("reward")), tmp_path / "log.parquet")
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: column reward occurs more than once"):
        LogBlocks.open(tmp_path / "log.parquet")


def test_extra_columns_that_cannot_be_read(tmp_path):
    table = table_of(uneven_log(), tmp_path)
    table = table.append_column("day", pa.array(np.arange(31).astype("datetime64[D]")))
    table = table.append_column("Reward", table.column("reward")).append_column("pair", pa.array([[1, 2]] * 31))
    pq.write_table(table, tmp_path / "log.parquet")
    for name, message in {
        "day": r"column day is of type date32\[day\], which is not read in blocks\. .*read_dataset",
        "Reward": r"columns reward and Reward differ only in upper and lower case\. .*read_dataset",
        "pair": r"extra column pair has shape",
        "dai": r"no column dai\. Did you mean day\?",
    }.items():
        with pytest.raises(ad.DatasetError, match=message):
            LogBlocks.open(tmp_path / "log.parquet", extra=[name])


def test_declarations_that_do_not_fit(tmp_path):
    ad.write_dataset(with_everything(), tmp_path / "log.parquet")
    ad.write_dataset(continuous_log(), tmp_path / "continuous.parquet")
    for given, message in (
        ({"categorical": [3]}, "categorical names observation column 3"),
        ({"categorical": ["wird"]}, "Did you mean ward?"),
        ({"action_features": [[1.0], [2.0]]}, "action_features have 2 rows, and the log has action 2"),
    ):
        for read in (ad.read_dataset, LogBlocks.open):
            with pytest.raises(ad.DatasetError, match=re.escape(message)):
                read(tmp_path / "log.parquet", **given)
    with pytest.raises(ad.DatasetError, match="this log has continuous ones"):
        LogBlocks.open(tmp_path / "continuous.parquet", action_features=[[1.0], [2.0]])


def test_a_file_that_changes_between_passes(tmp_path):
    path = tmp_path / "log.parquet"
    ad.write_dataset(uneven_log(), path)
    blocks = LogBlocks.open(path, rows=ROWS)
    assert len(list(blocks)) == len(blocks)
    ad.write_dataset(uneven_log(seed=9), path)
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: the file was changed or removed"):
        list(blocks)
    path.unlink()
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: the file was changed or removed"):
        list(blocks)


def test_rows_that_are_missing_at_the_end_of_a_pass(tmp_path):
    ad.write_dataset(uneven_log(), tmp_path / "log.parquet")
    parts = LogBlocks.open(tmp_path / "log.parquet").source.parts
    assert [len(table) for table, _ in divided(parts, (3, 31))] == [3, 28]
    for ends in ((3, 32), (3, 30)):
        with pytest.raises(ad.DatasetError, match="the files were changed while the log was read"):
            list(divided(parts, ends))


def test_a_damaged_sorted_copy(tmp_path):
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", [range(30, -1, -1)])
    LogBlocks.open(folder, folder=tmp_path / "kept")
    (copy,) = (tmp_path / "kept").iterdir()
    for content in (b"PAR1", (folder / "part-0.parquet").read_bytes()):
        copy.write_bytes(content)
        with pytest.raises(ad.DatasetError, match=rf"{copy.name}: this sorted copy of the log is damaged"):
            LogBlocks.open(folder, folder=tmp_path / "kept")


def test_sorting_that_fails_says_what_it_needs(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", [range(30, -1, -1)])

    def fail(*given, **options):
        raise duckdb.IOException("no space left")

    monkeypatch.setattr(duckdb, "connect", fail)
    with pytest.raises(ad.SettingError, match=r"sorting the rows failed \(no space left\)\. .* free space in .*kept"):
        LogBlocks.open(folder, folder=tmp_path / "kept")
    assert os.listdir(tmp_path / "kept") == []


def test_settings(tmp_path):
    ad.write_dataset(uneven_log(), tmp_path / "log.parquet")
    for make in (lambda rows: LogBlocks.open(tmp_path / "log.parquet", rows=rows), _of_dataset):
        with pytest.raises(ad.SettingError, match="a block needs at least 1 row, not 0"):
            make(0)
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", [range(30, -1, -1)])
    shutil.copy(folder / "part-0.parquet", tmp_path / "file")
    with pytest.raises(ad.SettingError, match="a file, not a folder"):
        LogBlocks.open(folder, folder=tmp_path / "file")


def _of_dataset(rows):
    return LogBlocks.of_dataset(uneven_log(), rows)
