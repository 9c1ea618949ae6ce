"""Data sets of d3rlpy: `MDPDataset`, `ReplayBuffer`, or a list of their episodes."""

from typing import Any

import numpy as np

from average_dice.data.dataset import LoggedDataset
from average_dice.data.importers.d4rl import as_actions
from average_dice.data.importers.rows import as_single, as_vectors, check_lengths, from_rows
from average_dice.errors import DatasetError

NEEDED = ("observations", "actions", "rewards", "terminated")


def from_d3rlpy(data: Any) -> LoggedDataset:
    """A log from a data set of d3rlpy, or from its episodes.

    An episode of d3rlpy has no observation after its last row. If it is not `terminated`, that row is left out, as
    d3rlpy does in training, and the episode is truncated one step earlier. d3rlpy does not store log μ(a|s).
    """
    episodes = list(getattr(data, "episodes", data))
    if not episodes:
        raise DatasetError("the data set has no episode.")
    if absent := [name for name in NEEDED if not hasattr(episodes[0], name)]:
        raise DatasetError(f"an episode of d3rlpy has {', '.join(absent)}, a {type(episodes[0]).__name__} has not.")
    kind = getattr(getattr(getattr(data, "dataset_info", None), "action_space", None), "name", None)
    parts = []
    for number, episode in enumerate(episodes):
        part = {
            "observations": _observations(episode.observations),
            "actions": as_actions(np.asarray(episode.actions, np.int64 if kind == "DISCRETE" else None)),
            "rewards": as_single("rewards", episode.rewards),
        }
        try:
            check_lengths(part)
        except DatasetError as error:
            raise DatasetError(f"episode {number}: {error}") from None
        parts.append(part)
    if empty := [number for number, part in enumerate(parts) if len(part["rewards"]) == 0]:
        raise DatasetError(f"episode {empty[0]} has no row. Remove it.")
    last = np.cumsum([len(part["rewards"]) for part in parts]) - 1
    ended = np.array([bool(episode.terminated) for episode in episodes])
    terminated, truncated = np.zeros((2, last[-1] + 1), bool)
    terminated[last], truncated[last] = ended, ~ended
    return from_rows(
        observation=np.concatenate([part["observations"] for part in parts]),
        action=np.concatenate([part["actions"] for part in parts]),
        reward=np.concatenate([part["rewards"] for part in parts]),
        terminated=terminated,
        truncated=truncated,
        metadata={"source": "d3rlpy"},
    )


def _observations(values: Any) -> np.ndarray:
    """One vector for each row, also where observations are a tuple of arrays."""
    if isinstance(values, list | tuple) and all(getattr(one, "ndim", 0) > 1 for one in values):
        return np.concatenate([as_vectors("observations", one) for one in values], axis=1)
    return as_vectors("observations", values)
