"""Importers: data of other libraries and of public data sets as a log. One file each, and one line below.

Each is a function that returns a `LoggedDataset`. The packages that they read are imported when they are needed.
"""

from collections.abc import Callable

from average_dice.data.dataset import LoggedDataset
from average_dice.data.importers.d3rlpy import from_d3rlpy
from average_dice.data.importers.d4rl import from_d4rl
from average_dice.data.importers.gymnasium import from_gymnasium
from average_dice.data.importers.minari import from_minari
from average_dice.data.importers.open_bandit import from_open_bandit

IMPORTERS: dict[str, Callable[..., LoggedDataset]] = {
    "minari": from_minari,
    "d4rl": from_d4rl,
    "d3rlpy": from_d3rlpy,
    "gymnasium": from_gymnasium,
    "open-bandit": from_open_bandit,
}

__all__ = ["IMPORTERS", "from_d3rlpy", "from_d4rl", "from_gymnasium", "from_minari", "from_open_bandit"]
