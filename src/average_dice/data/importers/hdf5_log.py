"""A log from an HDF5 file: arrays in the style of D4RL, or the file within the folder of a Minari data set."""

from collections.abc import Sequence
from pathlib import Path

from average_dice.data.dataset import LoggedDataset
from average_dice.data.importers import hdf5
from average_dice.data.importers.d4rl import from_d4rl
from average_dice.data.importers.minari import from_minari


def from_hdf5(path: str | Path, extra: Sequence[str] = ()) -> LoggedDataset:
    """The log, whichever of the two the file is, with these extra columns."""
    with hdf5.opened(Path(path)) as file:
        is_minari = "episode_0" in file
    return from_minari(Path(path).parent, extra=extra) if is_minari else from_d4rl(path, extra=extra)
