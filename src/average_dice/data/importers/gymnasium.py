"""Arrays that a loop over a Gymnasium environment has recorded: one environment, or several in lockstep."""

from typing import Any

import numpy as np

from average_dice.data.dataset import LoggedDataset
from average_dice.data.importers.rows import as_array, check_lengths, from_rows
from average_dice.errors import DatasetError, SettingError

# The values of gymnasium.vector.AutoresetMode.
NEXT_STEP, SAME_STEP, DISABLED = "NextStep", "SameStep", "Disabled"


def from_gymnasium(
    observations: Any,
    actions: Any,
    rewards: Any,
    terminations: Any,
    truncations: Any,
    *,
    next_observations: Any = None,
    behaviour_log_prob: Any = None,
    autoreset: Any = None,
) -> LoggedDataset:
    """A log from recorded steps, in order of time.

    Of one environment, arrays are `[step]` or `[step, …]`; of a vector environment `[step, environment]` or
    `[step, environment, …]`. Row t holds the observation that the policy saw, its action, and what `step` returned.

    - `observations` may have one row more than the others: the observation after the last step.
    - `next_observations`: what `step` returned. If None, the next row's observation. Where that belongs to another
      episode, a terminated row does not need it, and a truncated last row is left out (`metadata["left_out"]`).
    - `autoreset`: `envs.metadata["autoreset_mode"]` of a vector environment, which must be given for one:
      NEXT_STEP (the row after the end of an episode only resets, and is no transition: it is removed), SAME_STEP
      (`step` returns the first observation of the next episode; give `infos["final_obs"]` within `next_observations`,
      or the last row of a truncated episode is left out), or DISABLED (your loop resets).

    Observations that are single integers, as of a Discrete space, are declared categorical.

    >>> log = from_gymnasium(
    ...     observations=[[0.0], [1.0], [0.0], [1.0]], actions=[0, 1, 0], rewards=[0.0, 1.0, 0.0],
    ...     terminations=[False, True, False], truncations=[False, False, False])
    >>> log.num_episodes, log.next_observation[:, 0].tolist(), log.truncated.tolist()
    (2, [1.0, 1.0, 1.0], [False, False, True])
    """
    reward = as_array("rewards", rewards).astype(np.float64)
    if reward.ndim not in (1, 2):
        raise DatasetError(f"rewards must be [step] or [step, environment], but have shape {reward.shape}.")
    mode = _mode(autoreset, vector=reward.ndim == 2)
    columns: dict[str, Any] = {
        "rewards": reward,
        "observations": as_array("observations", observations),
        "actions": as_array("actions", actions),
        "terminations": as_array("terminations", terminations),
        "truncations": as_array("truncations", truncations),
    }
    for name, values in (("next_observations", next_observations), ("behaviour_log_prob", behaviour_log_prob)):
        if values is not None:
            columns[name] = as_array(name, values)
    final = None
    if len(columns["observations"]) == len(reward) + 1:
        final, columns["observations"] = columns["observations"][-1:], columns["observations"][:-1]
    check_lengths(columns)
    columns = {name: _by_environment(name, values, reward.shape) for name, values in columns.items()}
    observation = _vectors(columns["observations"])
    terminated, truncated = (_flags(name, columns[name]) for name in ("terminations", "truncations"))
    given = None if next_observations is None else _vectors(columns["next_observations"])
    if given is not None and given.shape != observation.shape:
        raise DatasetError(f"observations have {observation.shape[2]} numbers, next_observations {given.shape[2]}.")

    ends = terminated | truncated
    resets = _after_ends(ends) if mode == NEXT_STEP else np.zeros_like(ends)
    after, known = _from_next_row(observation, ends, mode)
    if final is not None:
        after[:, -1] = _vectors(_by_environment("observations", final, (1, *reward.shape[1:])))[:, 0]
        # After the end of several episodes it may be the first observation of the next one.
        known[:, -1] = ~ends[:, -1] | (mode == NEXT_STEP) | (mode == DISABLED) & (ends.sum(axis=1) == 1)
    if given is not None:
        known = np.ones_like(ends) if mode != SAME_STEP else _without_first_observations(given, after, ends)
        after = given
    truncated[:, -1] |= ~ends[:, -1]  # the recording stopped
    kept = ~resets
    log_prob = columns.get("behaviour_log_prob")
    return from_rows(
        observation=observation[kept],
        action=_actions(columns["actions"])[kept],
        reward=columns["rewards"][kept],
        terminated=terminated[kept],
        truncated=truncated[kept],
        next_observation=after[kept],
        known=known[kept],
        behaviour_log_prob=None if log_prob is None else log_prob[kept].astype(np.float64),
        metadata={"source": "Gymnasium"},
        categorical=(0,) if columns["observations"].dtype.kind in "iu" and columns["observations"].ndim == 2 else (),
    )


def _from_next_row(observation: np.ndarray, ends: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """The next row's observation, and where it is of the same episode.

    A row that only resets shows the last observation of the episode before it.
    """
    known = np.ones_like(ends) if mode == NEXT_STEP else ~ends
    known[:, -1] = False
    return np.roll(observation, -1, axis=1), known


def _without_first_observations(given: np.ndarray, after: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Where `next_observations` is of the same episode, and not the first observation of the next one.

    In the last row that cannot be seen: it is taken to be as in the other ends.
    """
    known = ~ends | (given != after).any(axis=2)
    seen = ends[:, :-1]
    known[:, -1] = ~ends[:, -1] | bool(seen.any() and known[:, :-1][seen].all())
    return known


def _mode(given: Any, vector: bool) -> str:
    if given is None:
        if vector:
            raise SettingError(
                "the arrays are of a vector environment: say what it does at the end of an episode, by "
                "autoreset=envs.metadata['autoreset_mode']. Rows that only reset would corrupt the log."
            )
        return DISABLED
    mode = getattr(given, "value", given)
    if mode not in (NEXT_STEP, SAME_STEP, DISABLED):
        raise SettingError(f"autoreset must be a gymnasium.vector.AutoresetMode, not {given!r}.")
    return str(mode)


def _by_environment(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """[environment, step, …], with one environment where there is no such axis."""
    if len(shape) == 1:
        return values[None]
    if values.ndim < 2 or values.shape[1] != shape[1]:
        raise DatasetError(f"{name} must be [step, environment, …] with {shape[1]} environments, not {values.shape}.")
    return np.swapaxes(values, 0, 1)


def _vectors(values: np.ndarray) -> np.ndarray:
    """[environment, step, number]."""
    return values.reshape(*values.shape[:2], -1).astype(np.float64)


def _flags(name: str, values: np.ndarray) -> np.ndarray:
    """[environment, step]."""
    if values.ndim != 2 or not np.isin(values, (0, 1)).all():
        raise DatasetError(f"{name} must be true or false (or 1 or 0) for each step.")
    return values.astype(bool)


def _actions(values: np.ndarray) -> np.ndarray:
    """[environment, step] integers, or [environment, step, number] floats."""
    return values if values.ndim == 2 else values.reshape(*values.shape[:2], -1)


def _after_ends(ends: np.ndarray) -> np.ndarray:
    """The rows that only reset: each follows the end of an episode. Flags on such rows mean nothing."""
    resets = np.zeros_like(ends)
    for step in range(1, ends.shape[1]):
        resets[:, step] = ends[:, step - 1] & ~resets[:, step - 1]
    return resets
