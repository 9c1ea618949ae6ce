"""Spaces: how observations and actions of a Gymnasium space become columns of a log.

- Box: its numbers, flattened. MultiBinary: zeros and ones.
- Discrete and MultiDiscrete: codes, in columns that are declared categorical.
- Dict and Tuple: the columns of their parts, one after the other, with names such as `arm.position[0]`.

Spaces are recognised by the names of their classes, so this needs neither Gymnasium nor its predecessor.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.data.names import Names
from average_dice.errors import DatasetError

MOST_COLUMNS = 10_000  # more are images


@dataclass(frozen=True)
class Layout:
    """The columns of an observation space: which hold codes, and what they are called."""

    space: Any
    names: Names
    categorical: tuple[int, ...]
    width: int

    @staticmethod
    def of(space: Any) -> "Layout":
        """The layout of a space. Raises if its observations are not numbers, or images."""
        columns = _columns(space, "")
        width = len(columns)
        if width == 0 or width > MOST_COLUMNS:
            raise DatasetError(
                f"observations of {width:,} numbers cannot be evaluated. Give features of them instead of images."
            )
        named = _kind(space) in ("Dict", "Tuple")
        return Layout(
            space=space,
            names=Names(observations=tuple(name for name, _ in columns) if named else ()),
            categorical=tuple(place for place, (_, is_code) in enumerate(columns) if is_code),
            width=width,
        )

    def rows(self, values: Any, num_rows: int) -> Float[np.ndarray, "row observation"]:
        """Observations of that many rows, as the space nests them: a dictionary of arrays, an array, …"""
        rows = np.concatenate(_parts(self.space, values, num_rows), axis=1)
        if rows.shape[1] != self.width:
            raise DatasetError(f"an observation has {rows.shape[1]} numbers, its space {self.width}.")
        return rows


def actions_of(space: Any, values: Any, num_rows: int) -> np.ndarray:
    """Actions as a log has them: integers from 0, or rows of floats."""
    check_action_space(space)
    if _kind(space) == "Discrete":
        return np.asarray(values).reshape(num_rows).astype(np.int64) - first_action(space)
    return np.asarray(values, np.float64).reshape(num_rows, -1)


def check_action_space(space: Any) -> None:
    """Raises unless actions are one integer or a fixed number of floats."""
    if _kind(space) not in ("Discrete", "Box"):
        raise DatasetError(
            f"actions of {space} are not supported: they must be Discrete or Box. "
            "Number the combinations of a MultiDiscrete space, for example."
        )


def is_discrete(space: Any) -> bool:
    """Whether its elements are single integers."""
    return _kind(space) == "Discrete"


def first_action(space: Any) -> int:
    """The number that the environment gives to action 0 of the log."""
    return int(getattr(space, "start", 0))


def _kind(space: Any) -> str:
    """The name of the space's class, or of the known one that it derives from."""
    known = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple")
    ancestors = [one.__name__ for one in type(space).__mro__]
    return next((name for name in ancestors if name in known), ancestors[0])


def _columns(space: Any, name: str) -> list[tuple[str, bool]]:
    """The name of each column, and whether it holds codes."""
    match _kind(space):
        case "Dict":
            inner = [(f"{name}.{key}" if name else str(key), part) for key, part in space.spaces.items()]
            return [column for inside, part in inner for column in _columns(part, inside)]
        case "Tuple":
            parts = enumerate(space.spaces)
            return [column for place, part in parts for column in _columns(part, f"{name}[{place}]")]
        case "Discrete":
            return [(name, True)]
        case "Box" | "MultiBinary" | "MultiDiscrete" as kind:
            size = int(np.prod(space.shape))
            if size > MOST_COLUMNS:
                raise DatasetError(
                    f"observations of {size:,} numbers cannot be evaluated. Give features of them instead of images."
                )
            is_code = kind == "MultiDiscrete"
            return [(name, is_code)] if size == 1 else [(f"{name}[{place}]", is_code) for place in range(size)]
    raise DatasetError(
        f"observations of {space} are not supported: they must be numbers. Give a Box, Discrete or Dict of these."
    )


def _parts(space: Any, values: Any, num_rows: int) -> list[np.ndarray]:
    match _kind(space):
        case "Dict":
            return [one for key, part in space.spaces.items() for one in _parts(part, values[key], num_rows)]
        case "Tuple":
            pairs = zip(space.spaces, values, strict=True)
            return [one for part, inside in pairs for one in _parts(part, inside, num_rows)]
    return [np.asarray(values, np.float64).reshape(num_rows, -1)]
