"""Logged episodes: what they are, what makes them valid, how they are read and written."""

from .dataset import LoggedDataset
from .files import check_suffix, read_dataset, write_dataset

__all__ = ["LoggedDataset", "check_suffix", "read_dataset", "write_dataset"]
