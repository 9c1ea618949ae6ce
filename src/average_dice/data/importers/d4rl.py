"""Data in the style of D4RL: arrays by name, in a dictionary or an HDF5 file, with `terminals` and `timeouts`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from average_dice.data.dataset import LoggedDataset
from average_dice.data.importers import hdf5
from average_dice.data.importers.rows import as_array, as_flags, as_single, as_vectors, check_lengths, from_rows
from average_dice.data.validation import SAME_OBSERVATION
from average_dice.errors import DatasetError, SettingError

NEEDED = ("observations", "actions", "rewards", "terminals")
OPTIONAL = ("next_observations", "timeouts")
LOG_PROBS = ("behaviour_log_prob", "infos/action_log_probs", "action_log_probs")  # the first that is there


def from_d4rl(
    data: Mapping[str, Any] | str | Path, *, max_steps: int | None = None, extra: Sequence[str] = ()
) -> LoggedDataset:
    """A log from D4RL's arrays: a dictionary, or an HDF5 file.

    - `observations`, `actions`, `rewards`: one row for each step, all episodes one after the other.
    - `terminals`: the environment ended the episode. `timeouts`: a time limit did; that is truncation, never
      termination.
    - `next_observations`: if absent, the observation of the next row. Where an episode ends by a time limit, that is
      not known: its last row is left out, and it is truncated one step earlier (`metadata["left_out"]` counts).
    - `infos/action_log_probs`, or `behaviour_log_prob`: log μ(a|s) of the logged action, if present.

    - `extra`: names of other arrays to keep, one number for each step, such as `costs`.

    Without `timeouts`, episodes that do not terminate end where `next_observations` is not the observation of the next
    row, as in the output of `d4rl.qlearning_dataset`, or after `max_steps`, the time limit of the environment.

    >>> log = from_d4rl({
    ...     "observations": [[0.0], [1.0], [0.0], [1.0], [2.0]], "actions": [0, 1, 0, 0, 1],
    ...     "rewards": [0.0, 1.0, 0.0, 0.0, 5.0], "terminals": [0, 1, 0, 0, 0], "timeouts": [0, 0, 0, 0, 1]})
    >>> log.num_transitions, log.terminated.tolist(), log.truncated.tolist()
    (4, [False, True, False, False], [False, False, False, True])
    """
    if max_steps is not None and max_steps < 1:
        raise SettingError(f"max_steps must be at least 1, not {max_steps}.")
    given = _of_file(Path(data), extra) if isinstance(data, str | Path) else _of_mapping(data, extra)
    if absent := [name for name in (*NEEDED, *extra) if name not in given]:
        raise DatasetError(f"missing: {', '.join(absent)}. Data of D4RL has {', '.join(NEEDED)}.")
    observation, action = as_vectors("observations", given["observations"]), as_actions(given["actions"])
    reward, terminated = as_single("rewards", given["rewards"]), as_flags("terminals", given["terminals"])
    truncated, after, log_prob = None, None, None
    if "timeouts" in given:
        truncated = as_flags("timeouts", given["timeouts"])
    if "next_observations" in given:
        after = as_vectors("next_observations", given["next_observations"])
    if name := next((name for name in LOG_PROBS if name in given), None):
        log_prob = as_single(name, given[name])
    others = {name: as_single(name, given[name]) for name in extra}
    columns = {"observations": observation, "actions": action, "rewards": reward, "terminals": terminated, **others}
    check_lengths(columns | {"timeouts": truncated, "next_observations": after, "log-probabilities": log_prob})
    if after is not None and after.shape != observation.shape:
        raise DatasetError(
            f"observations are {observation.shape}, next_observations {after.shape}: give the same size."
        )
    if truncated is None:
        truncated = _resets(observation, after, terminated, max_steps)
    if max_steps is not None:
        truncated = _limited(terminated, truncated, max_steps)
    return from_rows(
        observation=observation,
        action=action,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        next_observation=after,
        behaviour_log_prob=log_prob,
        metadata={"source": "D4RL", **({"file": Path(data).name} if isinstance(data, str | Path) else {})},
        extra=others,
    )


def as_actions(values: Any) -> np.ndarray:
    """Integers are discrete actions, also in a list each; floats are continuous."""
    array = as_array("actions", values)
    if array.dtype.kind in "iu" and array.size == len(array):
        return array.reshape(-1)
    return array if array.ndim == 1 else array.reshape(len(array), -1)


def _of_mapping(data: Mapping[str, Any], extra: Sequence[str]) -> dict[str, Any]:
    """The known arrays, from a flat dictionary or from one with a dictionary under `infos`."""
    if not isinstance(data, Mapping):
        raise DatasetError(f"give a dictionary of arrays or the path of an HDF5 file, not a {type(data).__name__}.")
    inner = data.get("infos")
    flat = {**data, **({f"infos/{name}": one for name, one in inner.items()} if isinstance(inner, Mapping) else {})}
    return {name: flat[name] for name in (*NEEDED, *OPTIONAL, *LOG_PROBS, *extra) if flat.get(name) is not None}


def _of_file(path: Path, extra: Sequence[str]) -> dict[str, Any]:
    with hdf5.opened(path) as file:
        found = {name: hdf5.array(file, name) for name in (*NEEDED, *OPTIONAL, *LOG_PROBS, *extra)}
        present = {name: values for name, values in found.items() if values is not None}
        if not present:
            raise DatasetError(f"none of {', '.join(NEEDED)} is in the file. {_advice(file)}")
    return present


def _advice(file: Any) -> str:
    if "episode_0" in file:
        return "It looks like a file of Minari: give its folder to from_minari."
    if "observations_0" in file:
        return "It looks like a file of d3rlpy: load it with d3rlpy, and give the buffer to from_d3rlpy."
    return "Rename its arrays."


def _resets(
    observation: np.ndarray, next_observation: np.ndarray | None, terminated: np.ndarray, max_steps: int | None
) -> Bool[np.ndarray, " row"]:
    """Where episodes end that do not terminate, without `timeouts`."""
    ends = np.zeros(len(terminated), bool)
    if next_observation is not None:
        after, before = next_observation[:-1], observation[1:]
        apart = (np.abs(after - before) > SAME_OBSERVATION * (1 + np.abs(before))).any(axis=1)
        ends[:-1] = apart & ~terminated[:-1]
    elif max_steps is None:
        raise DatasetError(
            "there are neither timeouts nor next_observations, so ends by a time limit cannot be seen. Give max_steps, "
            "the time limit of the environment; if it has none, give timeouts that are all false."
        )
    return ends


def _limited(terminated: np.ndarray, truncated: np.ndarray, max_steps: int) -> Bool[np.ndarray, " row"]:
    """The flags, with one more wherever an episode has reached the limit."""
    truncated, step = truncated.copy(), 0
    for row in range(len(terminated)):
        step += 1
        truncated[row] |= step == max_steps and not terminated[row]
        step = 0 if terminated[row] or truncated[row] else step
    return truncated
