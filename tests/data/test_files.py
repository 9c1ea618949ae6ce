"""Parquet and npz files: nothing is lost, executed or half-written."""

import os
import pickle
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import average_dice as ad
from average_dice.files import written_whole
from conftest import columns_of
from processes import started

SUFFIXES = [".parquet", ".npz"]


def continuous(log):
    columns = columns_of(log)
    columns["action"] = np.linspace(-1, 1, 2 * log.num_transitions).reshape(-1, 2)
    return ad.LoggedDataset(**columns, metadata={"task": "exact", "seed": 3})


def without_probabilities(log):
    columns = columns_of(log)
    return ad.LoggedDataset(**{name: columns[name] for name in columns if not name.endswith("log_prob")})


def with_mask(log):
    mask = np.arange(log.num_transitions)[:, None] % 3 != np.arange(4)
    mask[np.arange(log.num_transitions), log.action] = True
    return ad.LoggedDataset(**columns_of(log), action_mask=mask)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("variant", [lambda log: log, continuous, without_probabilities, with_mask])
def test_round_trip(small_log, tmp_path, suffix, variant):
    log = variant(small_log)
    ad.write_dataset(log, tmp_path / f"log{suffix}")
    again = ad.read_dataset(tmp_path / f"log{suffix}")
    assert again.sha256 == log.sha256
    assert again.metadata == log.metadata
    for name, values in columns_of(log).items():
        np.testing.assert_array_equal(getattr(again, name), values)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_log_gives_the_same_bytes(small_log, tmp_path, suffix):
    for name in ("a", "b"):
        ad.write_dataset(small_log, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_the_parquet_file_has_the_documented_types(small_log, tmp_path):
    ad.write_dataset(continuous(small_log), tmp_path / "log.parquet")
    schema = pq.read_schema(tmp_path / "log.parquet")
    types = {name: str(schema.field(name).type).replace("element", "item") for name in schema.names}
    assert types == {
        "episode": "int64",
        "step": "int64",
        "observation": "list<item: float>",  # one-hot: float32 loses nothing
        "action": "list<item: double>",  # these would lose digits in float32
        "reward": "double",
        "next_observation": "list<item: float>",
        "terminated": "bool",
        "truncated": "bool",
        "behaviour_log_prob": "double",
        "target_log_prob": "double",
    }


def test_a_mask_is_written_as_lists_of_bool_and_read_from_numbers_too(small_log, tmp_path):
    log = with_mask(small_log)
    ad.write_dataset(log, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    column = table.column("action_mask")
    assert column.type.value_type == pa.bool_()
    assert column.to_pylist() == log.action_mask.tolist()
    index = table.column_names.index("action_mask")
    for changed in (column.cast(pa.list_(pa.int8())), column.cast(pa.list_(pa.bool_(), 4)), pa.nulls(len(table))):
        pq.write_table(table.set_column(index, "action_mask", changed), tmp_path / "other.parquet")
        again = ad.read_dataset(tmp_path / "other.parquet")
        assert again.sha256 == (small_log if changed.null_count else log).sha256


def test_masks_of_parts_are_joined(small_log, tmp_path):
    log = with_mask(small_log)
    halves = [log.select_episodes(np.arange(6)), log.select_episodes(np.arange(6, 12))]
    second = ad.LoggedDataset(**columns_of(halves[1]) | {"episode": halves[1].episode + 6})
    ad.write_dataset(halves[0], tmp_path / "a.parquet")
    ad.write_dataset(second, tmp_path / "b.npz")
    np.testing.assert_array_equal(
        ad.read_dataset(tmp_path / "a.parquet", tmp_path / "b.npz").action_mask, log.action_mask
    )
    wider = columns_of(second)
    wider["action_mask"] = np.pad(wider["action_mask"], ((0, 0), (0, 1)))
    ad.write_dataset(ad.LoggedDataset(**wider), tmp_path / "b.npz")
    with pytest.raises(
        ad.DatasetError, match=r"episode \d+, step 0: action_mask has [45] numbers where other rows have"
    ):
        ad.read_dataset(tmp_path / "a.parquet", tmp_path / "b.npz")


def test_a_null_within_a_mask_is_named(small_log, tmp_path):
    log = with_mask(small_log)
    ad.write_dataset(log, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    values = table.column("action_mask").to_pylist()
    values[2][3] = None
    column = pa.array(values, pa.list_(pa.bool_()))
    pq.write_table(
        table.set_column(table.column_names.index("action_mask"), "action_mask", column), tmp_path / "n.parquet"
    )
    with pytest.raises(
        ad.DatasetError, match=rf"episode 0, step {log.step[2]}: action_mask\[3\] is None. It must be true"
    ):
        ad.read_dataset(tmp_path / "n.parquet")


def test_fixed_size_and_large_lists_are_read_too(small_log, tmp_path):
    ad.write_dataset(small_log, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    for kind in (pa.list_(pa.float32(), 5), pa.large_list(pa.float64())):
        column = table.column("observation").cast(kind)
        changed = table.set_column(table.column_names.index("observation"), "observation", column)
        pq.write_table(changed, tmp_path / "other.parquet")
        assert ad.read_dataset(tmp_path / "other.parquet").sha256 == small_log.sha256


def test_a_null_column_is_an_unknown_one(small_log, tmp_path):
    ad.write_dataset(small_log, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    nulls = pa.nulls(len(table), pa.float64())
    index = table.column_names.index("behaviour_log_prob")
    pq.write_table(table.set_column(index, "behaviour_log_prob", nulls), tmp_path / "log.parquet")
    assert ad.read_dataset(tmp_path / "log.parquet").behaviour_log_prob is None


@pytest.mark.parametrize("name", ["reward", "behaviour_log_prob", "observation", "step", "terminated"])
def test_a_single_null_is_named(small_log, tmp_path, name):
    ad.write_dataset(small_log, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    values = table.column(name).to_pylist()
    values[2] = None
    changed = table.set_column(table.column_names.index(name), name, pa.array(values, table.column(name).type))
    pq.write_table(changed, tmp_path / "log.parquet")
    with pytest.raises(ad.DatasetError, match=rf"episode 0, step .*{name} is missing"):
        ad.read_dataset(tmp_path / "log.parquet")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"not a log at all", b"PAR1 but no more", b"PK\x03\x04 cut short"])
def test_unreadable_files(tmp_path, suffix, content):
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content)
    with pytest.raises(ad.DatasetError, match=r"log\.(parquet|npz)"):
        ad.read_dataset(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_incomplete_file_is_an_error(small_log, tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    ad.write_dataset(small_log, path)
    whole = path.read_bytes()
    for size in np.linspace(1, len(whole) - 1, 12).astype(int):
        path.write_bytes(whole[:size])
        with pytest.raises(ad.DatasetError):
            ad.read_dataset(path)


def test_unknown_kinds_of_file_and_missing_files(small_log, tmp_path):
    with pytest.raises(ad.DatasetError, match="unknown kind of file"):
        ad.read_dataset(tmp_path / "log.txt")
    with pytest.raises(ad.DatasetError, match="unknown kind of file"):
        ad.write_dataset(small_log, tmp_path / "log.txt")
    with pytest.raises(ad.DatasetError, match="no such file"):
        ad.read_dataset(tmp_path / "log.parquet")
    with pytest.raises(ad.DatasetError, match="no file given"):
        ad.read_dataset()


class Trap:
    """Unpickling this creates a file."""

    def __reduce__(self):
        return (open, ("trap-was-executed", "w"))


def test_reading_executes_nothing(small_log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = columns_of(small_log)
    columns["reward"] = np.array([Trap()] * small_log.num_transitions, dtype=object)
    np.savez("log.npz", **columns)
    (tmp_path / "pickled.npz").write_bytes(pickle.dumps(Trap()))
    for name in ("log.npz", "pickled.npz"):
        with pytest.raises(ad.DatasetError):
            ad.read_dataset(name)
    assert not (tmp_path / "trap-was-executed").exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(small_log, tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    path.write_bytes(b"precious")

    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="No space left"):
        ad.write_dataset(small_log, path)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["[1]", "3", "{broken"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_metadata_that_is_no_object(small_log, tmp_path, text, suffix):
    path = tmp_path / f"log{suffix}"
    ad.write_dataset(small_log, path)
    if suffix == ".npz":
        np.savez(path, **columns_of(small_log), average_dice=np.array(text))
    else:
        pq.write_table(pq.read_table(path).replace_schema_metadata({"average_dice": text}), path)
    with pytest.raises(ad.DatasetError, match="metadata under average_dice is not a JSON object"):
        ad.read_dataset(path)


def test_a_column_that_occurs_twice(small_log, tmp_path):
    ad.write_dataset(small_log, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    pq.write_table(table.append_column("reward", table.column("reward")), tmp_path / "log.parquet")
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: column reward occurs more than once"):
        ad.read_dataset(tmp_path / "log.parquet")


def test_a_link_stays_a_link_and_a_pipe_a_pipe(small_log, tmp_path):
    real, link, folder = tmp_path / "real.npz", tmp_path / "link.npz", tmp_path / "folder.npz"
    link.symlink_to(real)
    ad.write_dataset(small_log, link)
    assert link.is_symlink()
    assert ad.read_dataset(real).sha256 == small_log.sha256
    folder.mkdir()
    with pytest.raises(ad.SettingError, match="a folder, not a file"):
        ad.write_dataset(small_log, folder)
    with pytest.raises(ad.SettingError, match="its folder does not exist"):
        ad.write_dataset(small_log, tmp_path / "nowhere" / "log.npz")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with started(["cat", pipe], stdout=subprocess.PIPE) as reader:
        with written_whole(pipe) as path:
            path.write_text("through")
        assert reader.communicate()[0] == b"through"
    assert pipe.is_fifo()


def test_parts_that_do_not_fit_together(small_log, tmp_path):
    ad.write_dataset(small_log, tmp_path / "a.parquet")
    ad.write_dataset(without_probabilities(small_log), tmp_path / "b.parquet")
    with pytest.raises(ad.DatasetError, match=r"behaviour_log_prob is missing in .*b\.parquet"):
        ad.read_dataset(tmp_path / "a.parquet", tmp_path / "b.parquet")
    columns = columns_of(small_log)
    columns["episode"] += 100
    columns["observation"], columns["next_observation"] = (
        columns["observation"][:, 1:],
        columns["next_observation"][:, 1:],
    )
    ad.write_dataset(ad.LoggedDataset(**columns), tmp_path / "c.npz")
    with pytest.raises(
        ad.DatasetError, match=r"episode \d+, step \d+: observation has . numbers where other rows have"
    ):
        ad.read_dataset(tmp_path / "a.parquet", tmp_path / "c.npz")
    ad.write_dataset(continuous(small_log), tmp_path / "d.npz")
    with pytest.raises(ad.DatasetError, match="action"):
        ad.read_dataset(tmp_path / "a.parquet", tmp_path / "d.npz")
