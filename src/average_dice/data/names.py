"""Names: what the numbers of a log are called in the user's own data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from average_dice.errors import DatasetError

EPISODE_NAME = "episode_name"  # among the extra columns of a log: the user's own identifier of the episode


@dataclass(frozen=True)
class Names:
    """Names for reports and messages. What has no name is called by its number.

    - `observations`: of the observation columns.
    - `actions`: of the discrete actions; for continuous ones, of their dimensions.
    - `categories`: by observation column, the name of each code: code 0 is the first.
    """

    observations: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def observation(self, column: int) -> str:
        """What an observation column is called."""
        return self.observations[column] if column < len(self.observations) else f"column {column}"

    def action(self, action: int) -> str:
        """What an action, or a dimension of it, is called."""
        return self.actions[action] if 0 <= action < len(self.actions) else str(action)

    def category(self, column: int, code: float) -> str:
        """What a code of a categorical column is called."""
        known = self.categories.get(column, ())
        return known[int(code)] if code == int(code) and 0 <= code < len(known) else f"{code:g}"

    def check(self, observation: np.ndarray, action: np.ndarray) -> None:
        """Raises unless there is a name for every column and every logged action, or none."""
        width = observation.shape[1]
        if self.observations and len(self.observations) != width:
            raise DatasetError(f"{len(self.observations)} names of observations are given for {width} columns.")
        needed = action.shape[1] if action.ndim > 1 else int(action.max()) + 1
        if self.actions and len(self.actions) < needed:
            raise DatasetError(f"{len(self.actions)} names of actions are given, and the log needs {needed}.")
        if wrong := [column for column in self.categories if not 0 <= column < width]:
            raise DatasetError(f"names are given for the codes of column {wrong[0]}, but there are {width} columns.")

    def to_json(self) -> str:
        """As stored in a file."""
        categories = {str(column): list(known) for column, known in self.categories.items()}
        content = {"observations": list(self.observations), "actions": list(self.actions), "categories": categories}
        return json.dumps(content)

    @staticmethod
    def from_json(text: str | bytes) -> "Names":
        """From a file."""
        try:
            content = json.loads(text)
            categories = {int(column): _texts(known) for column, known in content["categories"].items()}
            return Names(_texts(content["observations"]), _texts(content["actions"]), categories)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DatasetError(
                "its names of columns and actions are not readable. Remove them, or convert the log again."
            ) from None


def _texts(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise TypeError
    return tuple(given)
