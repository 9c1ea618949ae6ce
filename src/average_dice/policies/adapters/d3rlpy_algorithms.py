"""Algorithms of d3rlpy: the action that `predict` gives for each observation."""

from typing import Any

import numpy as np

from average_dice import memory
from average_dice.data import LoggedDataset
from average_dice.policies.adapters.callables import actions_policy
from average_dice.policies.base import Observations, Policy
from average_dice.policies.unbound import UnboundPolicy

ROWS_AT_ONCE = 4_096


def from_d3rlpy(algorithm: Any, data: LoggedDataset | None) -> Policy:
    """A deterministic policy: d3rlpy's `predict` is greedy, also where it trains a stochastic policy."""
    source = type(algorithm).__name__
    if data is None:
        return UnboundPolicy(lambda data: from_d3rlpy(algorithm, data), source)

    def predict(observations: Observations) -> np.ndarray:
        some = memory.rows_at_once(ROWS_AT_ONCE)
        inputs = observations.astype(np.float32)
        return np.concatenate(
            [algorithm.predict(inputs[start : start + some]) for start in range(0, len(inputs), some)]
        )

    return actions_policy(predict, data, source)
