"""Misleading observations: columns that mean nothing, and states numbered in no order."""

from dataclasses import replace

import numpy as np

from average_dice.testing.misleading.edits import more_columns, one_outlier
from average_dice.testing.misleading.finite_mdps import ordinary
from average_dice.testing.misleading.log import Columns, LogWithTruth, MisleadingLog, from_process, sample_log


def useless(columns: Columns, generator: np.random.Generator) -> np.ndarray:
    """A constant column, and thirty columns of noise."""
    num_rows = len(columns["step"])
    return np.hstack([np.full((num_rows, 1), 7.0), generator.normal(size=(num_rows, 30))])


def repeated(columns: Columns, generator: np.random.Generator) -> np.ndarray:
    """Two more copies of every column."""
    return np.hstack([columns["observation"]] * 2)


def as_numbers(seed: int) -> LogWithTruth:
    """Twelve states in no order as the numbers 0 to 11 of one column."""
    mdp = ordinary(6, num_states=12)
    numbers = np.append(np.arange(12), -1.0)[:, None]
    return sample_log(replace(mdp, reward=3 * mdp.reward, observations=numbers), 200, seed)


LOGS = (
    MisleadingLog(
        "outlier", "one useless column holds 10⁹ once", from_process(ordinary(6), 200, more_columns(one_outlier))
    ),
    MisleadingLog(
        "useless-columns",
        "a constant column, and thirty columns of noise",
        from_process(ordinary(6), 200, more_columns(useless)),
    ),
    MisleadingLog(
        "duplicated-columns",
        "every column is there three times",
        from_process(ordinary(6), 200, more_columns(repeated)),
    ),
    MisleadingLog("as-numbers", "twelve states in no order as one number", as_numbers),
)
