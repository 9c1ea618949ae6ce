"""Logged episodes: the dataset, its validation, its encoding, and its files."""

from average_dice.data.action_features import read_action_features
from average_dice.data.blocks import LogBlocks
from average_dice.data.dataset import LoggedDataset
from average_dice.data.encoding import Encoding
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.files import check_suffix, read_dataset, write_dataset
from average_dice.data.importers import from_d3rlpy, from_d4rl, from_gymnasium, from_minari, from_open_bandit
from average_dice.data.tables import from_dataframe

__all__ = [
    "Encoding",
    "EstimatedBehaviour",
    "LogBlocks",
    "LoggedDataset",
    "check_suffix",
    "from_d3rlpy",
    "from_d4rl",
    "from_dataframe",
    "from_gymnasium",
    "from_minari",
    "from_open_bandit",
    "read_action_features",
    "read_dataset",
    "write_dataset",
]
