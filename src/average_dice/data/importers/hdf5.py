"""Arrays of an HDF5 file, read without following links, loading plugins or filling the memory.

An HDF5 file may refer to other files, name a filter that HDF5 would load as a plugin, or declare a huge array in a few
bytes. Such files are refused before anything is read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from average_dice import memory
from average_dice.errors import DatasetError, first_line, needs_extra

DEEPEST = 16  # groups within groups
BUILT_IN_FILTERS = {
    1,
    2,
    3,
    4,
    5,
    6,
    32000,
}  # deflate, shuffle, fletcher32, szip, nbit, scaleoffset; lzf comes with h5py
BROKEN = (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, MemoryError, AttributeError)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The file, opened to be read. What HDF5 cannot read ends in a `DatasetError`."""
    with needs_extra("hdf5"):
        import h5py
    if not path.is_file():
        raise DatasetError(f"{path}: no such file. Check the path.")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except DatasetError as error:
        raise DatasetError(*(f"{path}: {text}" for text in error.problems)) from None
    except BROKEN as error:
        raise DatasetError(f"{path}: not a readable HDF5 file ({first_line(error)}).") from None


def array(group: Any, name: str) -> np.ndarray | None:
    """The array of that name, such as `infos/action_log_probs`; None if there is none."""
    found = group
    for part in name.split("/"):
        if found is None or not hasattr(found, "keys"):
            return None
        found = _member(found, part)
    if found is None or hasattr(found, "keys"):
        return None
    _check_array(name, found)
    return np.asarray(found[()])


def check_all(group: Any, depth: int = 0) -> None:
    """Raises if anything in the file may not be read: before another library reads it."""
    if depth > DEEPEST:
        raise DatasetError("its groups are nested too deeply. Write the file again.")
    for name in group:
        member = _member(group, name)
        if hasattr(member, "keys"):
            check_all(member, depth + 1)
        elif hasattr(member, "shape"):
            _check_array(name, member, texts=True)


def _member(group: Any, name: str) -> Any:
    import h5py

    link = group.get(name, getlink=True)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise DatasetError(f"{name} is a link to another place. Copy the data into the file.")
    return group[name]


def _check_array(name: str, found: Any, texts: bool = False) -> None:
    if not hasattr(found, "shape") or found.shape is None:
        raise DatasetError(f"{name} is not an array of numbers.")
    if found.dtype.kind not in ("biufOSV" if texts else "biuf"):
        raise DatasetError(f"{name} is {found.dtype}, not an array of numbers.")
    if found.is_virtual or found.external:
        raise DatasetError(f"{name} is stored in another file. Copy the data into this one.")
    properties = found.id.get_create_plist()
    filters = {properties.get_filter(place)[0] for place in range(properties.get_nfilters())}
    if not filters <= BUILT_IN_FILTERS:
        raise DatasetError(f"{name} is compressed by a filter that needs a plugin. Write it with gzip, or without.")
    if (needed := found.size * 8) > memory.limit():
        raise DatasetError(
            f"{name} has shape {found.shape}, which takes {needed / 2**30:,.0f} GiB of memory. "
            "Read a part of it, or raise the limit (AVERAGE_DICE_MEMORY)."
        )
