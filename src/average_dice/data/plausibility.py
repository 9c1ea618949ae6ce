"""What is valid in a log, but is often a mistake."""

from collections.abc import Iterator

import numpy as np

from average_dice.data.dataset import LoggedDataset
from average_dice.data.understood import columns_of

GIANT = 20  # times the next largest reward
FEWEST_ROWS = 20  # fewer rows have no usual reward


def doubts(log: LoggedDataset) -> Iterator[str]:
    """Sentences without a full stop, each with what to check."""
    if log.num_episodes == 1:
        yield (
            "there is only one episode, so no interval can be computed. Log more, or check the column of episodes if "
            "there are several"
        )
    size = np.abs(log.reward)
    row = int(size.argmax())
    second = float(np.delete(size, row).max(initial=0.0))
    if log.num_transitions >= FEWEST_ROWS and second > 0 and size[row] > GIANT * second:
        yield (
            f"the reward at {log.place(row)} is {log.reward[row]:g}, and no other is beyond ±{second:g}. The value "
            "depends on this row: check it"
        )
    from_table = bool(columns_of(log.metadata))  # such a log has a note about its actions already
    if not from_table and not log.is_discrete and (log.action == np.round(log.action)).all():
        number = len(np.unique(log.action, axis=0))
        yield (
            f"actions are continuous, but all are whole numbers ({number:,} different). If these are choices, "
            "write them as integers 0, 1, 2, …, or declare the column of a table: --categorical COLUMN"
        )
    if log.categorical_advice is not None:
        yield log.categorical_advice
