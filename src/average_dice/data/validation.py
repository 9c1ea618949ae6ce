"""What makes a log valid.

Each check looks at the columns, sorted by episode and step, and yields a sentence that names the first bad row, how
many more there are, and what to do. All sentences are reported at once, so that a log is mended in one go.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from average_dice.data.columns import Columns
from average_dice.errors import DatasetError

# next_observation is compared with the next row's observation up to what a round trip through float32 or through
# a text file with six digits loses.
SAME_OBSERVATION = 1e-5

# Beyond this a number is a marker for a missing one, not a measurement.
HUGE = 1e30

# A log-probability of a discrete action may exceed zero by what float32 loses in a log-softmax.
PROBABILITY_ROUNDING = 1e-6


def check(columns: Columns) -> None:
    """Raises a DatasetError with everything that is wrong."""
    problems = [problem for found in CHECKS for problem in found(columns)]
    if problems:
        raise DatasetError(*problems)


def steps_are_whole(columns: Columns) -> Iterator[str]:
    """Within an episode, steps run 0, 1, 2, … without a gap or a repeat."""
    episode, step = columns["episode"], columns["step"]
    first = _firsts(episode)
    yield from _report(
        columns,
        first & (step != 0),
        lambda row: (
            f"the episode starts at step {step[row]} instead of 0. Products of ratios need whole "
            "episodes: add the missing rows, or number steps from 0"
        ),
    )
    jump = np.append(0, np.diff(step))
    yield from _report(
        columns,
        ~first & (jump == 0),
        lambda row: "the row is there twice. Remove the repeat, or give separate episodes separate numbers",
    )
    yield from _report(
        columns,
        ~first & (jump > 1),
        lambda row: f"the step before is {step[row - 1]}. Add the missing rows, or leave the episode out",
    )


def episodes_end_once(columns: Columns) -> Iterator[str]:
    """Only the last row of an episode is terminated or truncated, and it is one of them."""
    terminated, truncated = columns["terminated"], columns["truncated"]
    last = _lasts(columns["episode"])
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        yield from _report(
            columns,
            ~last & flag,
            partial(_goes_on, name),
        )
    yield from _report(
        columns,
        last & ~terminated & ~truncated,
        lambda row: (
            "the episode ends here but is neither terminated nor truncated. Set terminated if the "
            "environment ended it, truncated if the log merely stops"
        ),
    )


def _goes_on(name: str, row: int) -> str:
    return f"the episode continues after {name}. Clear the flag, or start a new episode number on the next row"


def numbers_are_plausible(columns: Columns) -> Iterator[str]:
    """No NaN, no infinity, nothing huge. A target log-probability alone may be −∞: π never takes that action."""
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
            f"{found}: the behaviour policy gives the logged action probability zero, which cannot be. Mend the "
            "log-probabilities, or leave the column out if they are unknown"
        )
    return f"{found}. Fill in the true number, or leave the whole episode out"


def discrete_actions_are_possible(columns: Columns) -> Iterator[str]:
    """Discrete actions count from 0, and the logarithm of a probability is at most 0."""
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


def rows_are_chained(columns: Columns) -> Iterator[str]:
    """next_observation is the observation of the next row of the episode."""
    after, before = columns["next_observation"][:-1], columns["observation"][1:]
    with np.errstate(invalid="ignore", over="ignore"):  # infinities are reported elsewhere
        far = np.abs(after - before) > SAME_OBSERVATION * (1 + np.abs(before))
    step = columns["step"]
    joined = ~_lasts(columns["episode"])[:-1] & (np.diff(step) == 1)
    broken = np.append(far.any(axis=1) & joined, False)
    yield from _report(
        columns,
        broken,
        lambda row: (
            "next_observation is not the observation of the next row. Rows may be of another episode, or "
            "the environment was reset in between: mend the rows, or split the episode here"
        ),
    )


CHECKS: tuple[Callable[[Columns], Iterator[str]], ...] = (
    steps_are_whole,
    episodes_end_once,
    numbers_are_plausible,
    discrete_actions_are_possible,
    rows_are_chained,
)


def _firsts(episode: np.ndarray) -> np.ndarray:
    return np.append(True, episode[1:] != episode[:-1])


def _lasts(episode: np.ndarray) -> np.ndarray:
    return np.append(episode[1:] != episode[:-1], True)


def _report(columns: Columns, wrong: Any, say: Callable[[int], str]) -> Iterator[str]:
    """One sentence for the first wrong row, and the number of others like it."""
    if wrong.any():
        row = int(wrong.argmax())
        more = int(wrong.sum()) - 1
        others = f" ({more:,} more like it)" if more else ""
        yield f"episode {columns['episode'][row]}, step {columns['step'][row]}: {say(row)}.{others}"
