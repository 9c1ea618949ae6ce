"""Errors in the columns of a log: rows lost or copied, columns shifted, flags and rewards wrong.

An edit takes the columns, sorted by episode and step, and a generator, and returns the columns as they are logged.
"""

from collections.abc import Callable

import numpy as np

from average_dice.testing.misleading.log import Columns, Edit


def never_terminated(columns: Columns, generator: np.random.Generator) -> Columns:
    """Terminations are marked as truncations."""
    return {**columns, "terminated": np.zeros_like(columns["terminated"])}


def always_terminated(columns: Columns, generator: np.random.Generator) -> Columns:
    """Truncations are marked as terminations."""
    return {**columns, "terminated": _last(columns)}


def copies(num: int, noise: float) -> Edit:
    """Every episode is repeated `num` times, with noise on its rewards."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        count = columns["episode"].max() + 1
        parts = [{**columns, "episode": columns["episode"] + copy * count} for copy in range(num)]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in columns}
        joined["reward"] = joined["reward"] + noise * generator.normal(size=len(joined["reward"]))
        return joined

    return edit


def windows(length: int, stride: int) -> Edit:
    """Every episode is an overlapping window of a longer one."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        parts, number = [], 0
        for episode in range(columns["episode"].max() + 1):
            own = np.flatnonzero(columns["episode"] == episode)
            for begin in range(0, len(own) - length + 1, stride):
                piece = _take(columns, own[begin : begin + length])
                parts.append({**piece, "episode": np.full(length, number), "step": np.arange(length)})
                number += 1
        return {name: np.concatenate([part[name] for part in parts]) for name in columns}

    return edit


def without_shorter_than(length: int) -> Edit:
    """Episodes of fewer steps are left out."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        lengths = np.bincount(columns["episode"])[columns["episode"]]
        return _take(columns, lengths >= length)

    return edit


def without_last_row(columns: Columns, generator: np.random.Generator) -> Columns:
    """The row of a termination is lost, and the row before it is marked terminated."""
    lost = columns["terminated"]
    marked = np.append(lost[1:], False) & ~_last(columns)
    return _take({**columns, "terminated": marked}, ~lost)


def shifted(*names: str) -> Edit:
    """These columns are one row late within each episode. The first row keeps its own values."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        row = np.arange(len(columns["step"]))
        before = np.where(columns["step"] == 0, row, row - 1)
        return {**columns, **{name: columns[name][before] for name in names}}

    return edit


def late_reward(columns: Columns, generator: np.random.Generator) -> Columns:
    """Rewards are one row late, and the first row of an episode has none."""
    found = shifted("reward")(columns, generator)
    return {**found, "reward": np.where(columns["step"] == 0, 0.0, found["reward"])}


def booked_at_the_end(columns: Columns, generator: np.random.Generator) -> Columns:
    """The last row of an episode holds the sum of its rewards, the other rows zero."""
    sums = np.bincount(columns["episode"], columns["reward"])[columns["episode"]]
    return {**columns, "reward": np.where(_last(columns), sums, 0.0)}


def rewards_by(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Edit:
    """The logged reward is a function of the reward and the episode's number."""
    return lambda columns, generator: {**columns, "reward": function(columns["reward"], columns["episode"])}


def more_columns(make: Callable[[Columns, np.random.Generator], np.ndarray]) -> Edit:
    """The observation has more columns, [row, column], that mean nothing."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        added = make(columns, generator)
        after = np.where(_last(columns)[:, None], 0.0, np.roll(added, -1, axis=0))
        return {
            **columns,
            "observation": np.hstack([columns["observation"], added]),
            "next_observation": np.hstack([columns["next_observation"], after]),
        }

    return edit


def one_outlier(columns: Columns, generator: np.random.Generator) -> np.ndarray:
    """A column of standard normal numbers, one of which is 10⁹."""
    values = generator.normal(size=(len(columns["step"]), 1))
    values[len(values) // 2] = 1e9
    return values


def _last(columns: Columns) -> np.ndarray:
    """True on the last row of each episode."""
    return np.append(columns["episode"][1:] != columns["episode"][:-1], True)


def _take(columns: Columns, chosen: np.ndarray) -> Columns:
    return {name: values[chosen] for name, values in columns.items()}
