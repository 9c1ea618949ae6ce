"""HDF5 files: the same log as from the arrays, and hostile files end in an error."""

from contextlib import suppress

import numpy as np
import pytest

import average_dice as ad

h5py = pytest.importorskip("h5py")

DATA = {
    "observations": np.arange(12.0, dtype=np.float32).reshape(6, 2),
    "actions": np.linspace(-1, 1, 6, dtype=np.float32)[:, None],
    "rewards": np.arange(6, dtype=np.float32),
    "terminals": np.arange(6) == 2,
    "timeouts": np.arange(6) == 5,
}
LOG_PROB = -np.arange(1.0, 7.0)


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        for name, values in DATA.items():
            file.create_dataset(name, data=values, compression="gzip")
        file.create_dataset("infos/action_log_probs", data=LOG_PROB)
        file.create_dataset("metadata/algorithm", data="SAC")
    return tmp_path / "log.hdf5"


def replaced(path, name):
    """The file without this array, opened for writing."""
    file = h5py.File(path, "a")
    del file[name]
    return file


def test_a_file_is_the_same_as_its_arrays(path):
    expected = ad.from_d4rl({**DATA, "infos/action_log_probs": LOG_PROB})
    for log in (ad.from_d4rl(path), ad.read_dataset(path), ad.from_d4rl(str(path))):
        assert log.sha256 == expected.sha256
        assert log.metadata["left_out"] == expected.metadata["left_out"]
    assert expected.num_transitions == 5


def test_extra_columns(path):
    with h5py.File(path, "a") as file:
        file["costs"] = np.arange(6.0)
    for log in (ad.from_d4rl(path, extra=["costs"]), ad.read_dataset(path, extra=["costs"])):
        np.testing.assert_array_equal(log.extra["costs"], np.arange(5.0))
    assert ad.read_dataset(path).extra == {}
    with pytest.raises(ad.DatasetError, match="missing: none"):
        ad.read_dataset(path, extra=["none"])


def test_both_suffixes_are_read_and_text_of_other_kinds_is_refused(path):
    assert ad.read_dataset(path.rename(path.with_suffix(".h5"))).num_transitions == 5
    text = path.with_name("text.hdf5")
    text.write_text("no HDF5")
    with pytest.raises(ad.DatasetError, match=r"text.hdf5: not a readable HDF5 file"):
        ad.read_dataset(text)
    with pytest.raises(ad.DatasetError, match="no such file"):
        ad.from_d4rl(path.with_name("none.hdf5"))


def link_to_another_file(path):
    other = path.with_name("other.h5")
    with h5py.File(other, "w") as file:
        file["rewards"] = DATA["rewards"]
    with replaced(path, "rewards") as file:
        file["rewards"] = h5py.ExternalLink(other.name, "/rewards")


def link_within(path):
    with replaced(path, "rewards") as file:
        file["rewards"] = h5py.SoftLink("/rewards")


def data_of_another_file(path):
    secret = path.with_name("secret.bin")
    secret.write_bytes(np.arange(6.0).tobytes())
    with replaced(path, "rewards") as file:
        file.create_dataset("rewards", (6,), np.float64, external=[(str(secret), 0, 48)])


def virtual_data(path):
    layout = h5py.VirtualLayout((6,), np.float64)
    layout[:] = h5py.VirtualSource(str(path.with_name("none.h5")), "rewards", (6,))
    with replaced(path, "rewards") as file:
        file.create_virtual_dataset("rewards", layout)


def a_huge_array_in_a_few_bytes(path):
    with replaced(path, "observations") as file:
        file.create_dataset("observations", (10**13, 2), np.float64, chunks=(1024, 2))


def texts(path):
    with replaced(path, "rewards") as file:
        file.create_dataset("rewards", data=["a"] * 6, dtype=h5py.string_dtype())


def references(path):
    with replaced(path, "rewards") as file:
        file.create_dataset("rewards", data=[file["actions"].ref] * 6, dtype=h5py.ref_dtype)


def an_unknown_filter(path):
    with replaced(path, "rewards") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((6,))
        properties.set_filter(31337, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((6,))
        h5py.h5d.create(file.id, b"rewards", h5py.h5t.NATIVE_DOUBLE, space, properties)


def a_group_instead(path):
    with replaced(path, "rewards") as file:
        file.create_group("rewards")


def an_empty_array(path):
    with replaced(path, "rewards") as file:
        file["rewards"] = h5py.Empty("f8")


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (link_to_another_file, "rewards is a link"),
        (link_within, "rewards is a link"),
        (data_of_another_file, "rewards is stored in another file"),
        (virtual_data, "rewards is stored in another file"),
        (a_huge_array_in_a_few_bytes, "GiB of memory"),
        (texts, "rewards is object"),
        (references, "rewards is object"),
        (an_unknown_filter, "needs a plugin"),
        (a_group_instead, "missing: rewards"),
        (an_empty_array, "rewards is not an array"),
    ],
)
def test_hostile_files_end_in_an_error(path, attack, message):
    attack(path)
    with pytest.raises(ad.DatasetError, match=message):
        ad.read_dataset(path)


@pytest.mark.parametrize("position", range(0, 4000, 97))
def test_broken_files_end_in_an_error_or_in_a_valid_log(path, position):
    content = bytearray(path.read_bytes())
    content[position : position + 8] = b"\xff" * 8
    path.write_bytes(content)
    with suppress(ad.DatasetError):
        assert ad.read_dataset(path).observation.shape[1] == 2


def test_half_a_file(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ad.DatasetError, match="not a readable HDF5 file"):
        ad.read_dataset(path)


def test_files_of_other_libraries_are_named(tmp_path):
    for name, library in (("observations_0", "d3rlpy"), ("something", "Rename")):
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file[name] = np.zeros(3)
        with pytest.raises(ad.DatasetError, match=library):
            ad.read_dataset(path)


def test_a_missing_extra_column(path):
    with pytest.raises(ad.DatasetError, match="price"):
        ad.read_dataset(path, extra=["price"])
