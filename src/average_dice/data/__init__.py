"""Logged episodes: the dataset, its validation, and its files."""

from average_dice.data.dataset import LoggedDataset
from average_dice.data.files import check_suffix, read_dataset, write_dataset

__all__ = ["LoggedDataset", "check_suffix", "read_dataset", "write_dataset"]
