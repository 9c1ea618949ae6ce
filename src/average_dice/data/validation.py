"""Checks of a log.

Each check reads the columns, sorted by episode and step, and yields a sentence that names the first bad row, the number
of other bad rows, and what to do. All sentences are reported together, so that a user can correct everything at once.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from average_dice.data.columns import Columns
from average_dice.data.names import EPISODE_NAME
from average_dice.errors import DatasetError

# Relative difference of next_observation from the observation of the next row that still counts as equal: a round trip
# through float32 or through a text file with six digits loses less.
SAME_OBSERVATION = 1e-5

# Larger numbers count as missing: no measurement is this large, but some programs write such a number for a gap.
HUGE = 1e30

# A log-probability of a discrete action may be above zero by this much: float32 rounds a log-softmax so.
PROBABILITY_ROUNDING = 1e-6


def check(columns: Columns) -> None:
    """Raises a `DatasetError` with every problem that is found."""
    problems = [problem for found in CHECKS for problem in found(columns)]
    if problems:
        raise DatasetError(*problems)


def steps_are_consecutive(columns: Columns) -> Iterator[str]:
    """Within an episode, steps run 0, 1, 2, … without a gap or a repeat."""
    episode, step = columns["episode"], columns["step"]
    first = _firsts(episode)
    yield from _report(
        columns,
        first & (step != 0),
        lambda row: (
            f"the episode starts at step {step[row]} instead of 0. Cumulative importance weights need whole "
            "episodes: add the missing rows, or number steps from 0"
        ),
    )
    jump = np.append(0, np.diff(step))
    yield from _report(
        columns,
        ~first & (jump == 0),
        lambda row: "the row occurs twice. Remove one of the two, or give different episodes different numbers",
    )
    yield from _report(
        columns,
        ~first & (jump > 1),
        lambda row: f"rows are missing: the row before has step {step[row - 1]}. Add them, or remove the episode",
    )


def episodes_end_once(columns: Columns) -> Iterator[str]:
    """The last row of an episode is terminated or truncated, and no other row is."""
    terminated, truncated = columns["terminated"], columns["truncated"]
    last = _lasts(columns["episode"])
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        yield from _report(
            columns,
            ~last & flag,
            partial(_continues, name),
        )
    yield from _report(
        columns,
        last & ~terminated & ~truncated,
        lambda row: (
            "the episode ends here but is neither terminated nor truncated. Set terminated if the "
            "environment ended it, truncated if only the recording stopped"
        ),
    )


def _continues(name: str, row: int) -> str:
    return f"the episode continues after {name}. Clear the flag, or start a new episode number on the next row"


def numbers_are_plausible(columns: Columns) -> Iterator[str]:
    """No NaN, no infinity, no huge number. Only a target log-probability may be −∞: π never takes that action."""
    for name in ("observation", "next_observation", "action", "reward", "behaviour_log_prob", "target_log_prob"):
        if name in columns:
            values = columns[name].reshape(len(columns["episode"]), -1)
            bad = ~(np.abs(values) < HUGE)
            if name == "target_log_prob":
                bad &= values != -np.inf
            yield from _report(columns, bad.any(axis=1), partial(_implausible, name, values, bad))


def _implausible(name: str, values: np.ndarray, bad: np.ndarray, row: int) -> str:
    column = int(bad[row].argmax())
    position = f"[{column}]" if values.shape[1] > 1 else ""
    found = f"{name}{position} is {values[row, column]:g}"
    if name == "behaviour_log_prob" and values[row, column] == -np.inf:
        return (
            f"{found}: the behaviour policy gives the logged action probability zero, which is impossible. Correct "
            "the log-probabilities, or remove the column if they are unknown"
        )
    return f"{found}. Fill in the true number, or remove the whole episode"


def discrete_actions_are_possible(columns: Columns) -> Iterator[str]:
    """Discrete actions are numbered from 0, and the logarithm of a probability is at most 0."""
    if columns["action"].ndim > 1:
        return
    yield from _report(
        columns,
        columns["action"] < 0,
        lambda row: f"action is {columns['action'][row]}. Number discrete actions 0, 1, 2, …",
    )
    for name in ("behaviour_log_prob", "target_log_prob"):
        if name in columns:
            yield from _report(columns, columns[name] > PROBABILITY_ROUNDING, partial(_too_likely, name, columns[name]))


def _too_likely(name: str, values: np.ndarray, row: int) -> str:
    return f"{name} is {values[row]:g}, above zero, for a discrete action. Give the logarithm of a probability"


def masks_allow_the_logged_actions(columns: Columns) -> Iterator[str]:
    """A mask is for discrete actions, allows at least one action in every row, and allows the logged one."""
    if "action_mask" not in columns:
        return
    action, mask = columns["action"], columns["action_mask"]
    width, some = mask.shape[1], mask.any(axis=1)
    if action.ndim > 1:
        first = np.arange(len(mask)) == 0
        yield from _report(
            columns,
            first,
            lambda row: (
                "action_mask is given, but actions are continuous. Remove the column, or number actions 0, 1, …"
            ),
        )
        return
    yield from _report(
        columns,
        ~some,
        lambda row: "action_mask allows no action. Allow the actions that were possible here, or remove the episode",
    )
    yield from _report(
        columns,
        some & (action >= width),
        lambda row: (
            f"action is {action[row]}, action_mask has actions 0 to {width - 1}. Give it a flag for every action"
        ),
    )
    known = np.flatnonzero(some & (action >= 0) & (action < width))  # the others are reported already
    forbidden = np.zeros(len(mask), bool)
    forbidden[known] = ~mask[known, action[known]]
    yield from _report(
        columns,
        forbidden,
        lambda row: f"action {action[row]} is logged, but action_mask forbids it. Correct the mask or the action",
    )


def rows_are_chained(columns: Columns) -> Iterator[str]:
    """next_observation is the observation of the next row of the episode."""
    after, before = columns["next_observation"][:-1], columns["observation"][1:]
    with np.errstate(invalid="ignore", over="ignore"):  # another check reports infinities
        far = np.abs(after - before) > SAME_OBSERVATION * (1 + np.abs(before))
    step = columns["step"]
    joined = ~_lasts(columns["episode"])[:-1] & (np.diff(step) == 1)
    broken = np.append(far.any(axis=1) & joined, False)
    yield from _report(
        columns,
        broken,
        lambda row: (
            "next_observation is not the observation of the next row. The rows may belong to different episodes, "
            "or the environment was reset in between. Correct the rows, or split the episode here"
        ),
    )


CHECKS: tuple[Callable[[Columns], Iterator[str]], ...] = (
    steps_are_consecutive,
    episodes_end_once,
    numbers_are_plausible,
    discrete_actions_are_possible,
    masks_allow_the_logged_actions,
    rows_are_chained,
)


def _firsts(episode: np.ndarray) -> np.ndarray:
    return np.append(True, episode[1:] != episode[:-1])


def _lasts(episode: np.ndarray) -> np.ndarray:
    return np.append(episode[1:] != episode[:-1], True)


def _report(columns: Columns, wrong: Any, say: Callable[[int], str]) -> Iterator[str]:
    """One sentence for the first bad row, with the number of others like it."""
    if wrong.any():
        row = int(wrong.argmax())
        more = int(wrong.sum()) - 1
        others = f" ({more:,} more like it)" if more else ""
        place = place_of(columns["episode"], columns["step"], columns.get(EPISODE_NAME), row)
        yield f"{place}: {say(row)}.{others}"


def place_of(episode: np.ndarray, step: np.ndarray, names: np.ndarray | None, row: int) -> str:
    """The episode, by its name if it has one, and the step of a row."""
    return f"episode {episode[row] if names is None else names[row]}, step {step[row]}"
