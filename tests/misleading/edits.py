"""What a log gets wrong, done to its columns: rows lost or copied, columns shifted, flags mistaken."""

from collections.abc import Callable

import numpy as np

from .worlds import Columns, Edit


def _last(columns: Columns) -> np.ndarray:
    """True on the last row of each episode."""
    return np.append(columns["episode"][1:] != columns["episode"][:-1], True)


def _take(columns: Columns, chosen: np.ndarray) -> Columns:
    return {name: values[chosen] for name, values in columns.items()}


def _lengths(columns: Columns) -> np.ndarray:
    """Of the episode of each row."""
    return np.bincount(columns["episode"])[columns["episode"]]


def never_terminated(columns: Columns, generator: np.random.Generator) -> Columns:
    return {**columns, "terminated": np.zeros_like(columns["terminated"])}


def always_terminated(columns: Columns, generator: np.random.Generator) -> Columns:
    return {**columns, "terminated": _last(columns)}


def copies(num: int, jitter: float) -> Edit:
    """Every episode so many times, its rewards off by a rounding error."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        count = columns["episode"].max() + 1
        parts = [{**columns, "episode": columns["episode"] + one * count} for one in range(num)]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in columns}
        joined["reward"] = joined["reward"] + jitter * generator.normal(size=len(joined["reward"]))
        return joined

    return edit


def windows(length: int, stride: int) -> Edit:
    """Overlapping pieces of long episodes, each as an episode."""

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
    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        return _take(columns, _lengths(columns) >= length)

    return edit


def without_last_row(columns: Columns, generator: np.random.Generator) -> Columns:
    """The row of a termination is lost, and the row before it is marked terminated in its place."""
    lost = columns["terminated"]
    marked = np.append(lost[1:], False) & ~_last(columns)
    return _take({**columns, "terminated": marked}, ~lost)


def shifted(name: str, *others: str) -> Edit:
    """A column, or several, one row too late within each episode; the first row repeats itself."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        before = np.where(columns["step"] == 0, np.arange(len(columns["step"])), np.arange(len(columns["step"])) - 1)
        return {**columns, **{one: columns[one][before] for one in (name, *others)}}

    return edit


def late_reward(columns: Columns, generator: np.random.Generator) -> Columns:
    found = shifted("reward")(columns, generator)
    return {**found, "reward": np.where(columns["step"] == 0, 0.0, found["reward"])}


def booked_at_the_end(columns: Columns, generator: np.random.Generator) -> Columns:
    sums = np.bincount(columns["episode"], columns["reward"])[columns["episode"]]
    return {**columns, "reward": np.where(_last(columns), sums, 0.0)}


def rewards_by(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Edit:
    """The reward as a function of reward and episode."""
    return lambda columns, generator: {**columns, "reward": function(columns["reward"], columns["episode"])}


def more_columns(draw: Callable[[Columns, np.random.Generator], np.ndarray]) -> Edit:
    """Columns of the observation that mean nothing: [row, column]."""

    def edit(columns: Columns, generator: np.random.Generator) -> Columns:
        added = draw(columns, generator)
        after = np.where(_last(columns)[:, None], 0.0, np.roll(added, -1, axis=0))
        return {
            **columns,
            "observation": np.hstack([columns["observation"], added]),
            "next_observation": np.hstack([columns["next_observation"], after]),
        }

    return edit


def one_outlier(columns: Columns, generator: np.random.Generator) -> np.ndarray:
    values = generator.normal(size=(len(columns["step"]), 1))
    values[len(values) // 2] = 1e9
    return values
