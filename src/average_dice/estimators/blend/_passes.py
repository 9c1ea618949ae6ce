"""Passes over a log in blocks: sums of the blocks, computed in threads and added in their order."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from average_dice.blocked_problem import BlockedProblem
from average_dice.features.logged_state_actions import ACTIONS_SEED, features_of_rows
from average_dice.features.state_action import StateActionFeatures
from average_dice.problem import Problem
from average_dice.threads import carried

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class Block:
    """A block of the log: its number, the number of its first episode, and its problem."""

    number: int
    first: int
    problem: Problem

    def features(self, features: StateActionFeatures, with_step: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """φ(s, a), E_π[φ(s′, a)] and E_π[φ(s₀, a)].

        Continuous actions of π are sampled, the same ones in every pass.
        """
        seed = ACTIONS_SEED if self.number == 0 else (ACTIONS_SEED, self.number)
        return features_of_rows(self.problem, features, with_step, seed)


def blocks_of(problem: BlockedProblem) -> Iterator[Block]:
    """One pass over the blocks."""
    for number, (first, block) in enumerate(problem):
        yield Block(number, first, block)


def in_order(function: Callable[[Block], Part], problem: BlockedProblem) -> Iterator[Part]:
    """The function of each block, in order, with a thread for each core and few blocks in memory."""
    workers = os.cpu_count() or 1
    waiting: deque[Future[Part]] = deque()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers) as pool:
        for block in blocks_of(problem):
            waiting.append(pool.submit(carried(function), block))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
