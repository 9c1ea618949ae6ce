"""Other numbers for the actions of a log that has names for them: those of a policy's order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from average_dice.data.dataset import LoggedDataset
from average_dice.errors import DatasetError, did_you_mean


def with_actions(log: LoggedDataset, actions: Sequence[Any]) -> LoggedDataset:
    """The log with these names of actions, in this order; some may be new. Names of the log must be among them."""
    named = [str(one) for one in actions]
    if len(set(named)) < len(named):
        raise DatasetError("actions names an action twice. Name each once.")
    if absent := [one for one in log.names.actions if one not in named]:
        raise DatasetError(
            f"the log has the action {absent[0]!r}, which is not among the actions {', '.join(named)}."
            f"{did_you_mean(absent[0], named)} Name every action of the log."
        )
    if len(named) > len(log.names.actions) and not (log.action_mask is None and log.action_features is None):
        new = next(one for one in named if one not in log.names.actions)
        raise DatasetError(
            f"the log has action_mask or action features for {', '.join(log.names.actions)}, but not for {new}. Give "
            "--actions when you convert the table."
        )
    codes = np.array([named.index(one) for one in log.names.actions])
    order = np.argsort(codes)
    return replace(
        log,
        action=codes[log.action],
        names=replace(log.names, actions=tuple(named)),
        action_mask=None if log.action_mask is None else log.action_mask[:, order],
        action_features=None if log.action_features is None else log.action_features[order],
    )
