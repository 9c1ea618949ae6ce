"""Misleading logs: each has a policy, a discount and an exactly known value, and leads to a wrong estimate.

`LOGS` holds them by name. An estimator is *confidently wrong* on one if its verdict is "supported" while the truth lies
outside of the interval by more than half of its half-width. To add one, add it to the `LOGS` of the file of its kind.
"""

from average_dice.testing.misleading import (
    continuous_actions,
    hidden_states,
    little_data,
    observations,
    probabilities,
    rewards,
    selection,
    support,
)
from average_dice.testing.misleading.evaluating import Row, evaluate_log, is_confidently_wrong
from average_dice.testing.misleading.log import LogWithTruth, MisleadingLog

KINDS = (
    support,
    hidden_states,
    probabilities,
    selection,
    rewards,
    little_data,
    observations,
    continuous_actions,
)
LOGS = {log.name: log for kind in KINDS for log in kind.LOGS}

__all__ = ["LOGS", "LogWithTruth", "MisleadingLog", "Row", "evaluate_log", "is_confidently_wrong"]
