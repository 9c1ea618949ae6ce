"""A pass of the blend over a log in blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from average_dice.blocked_problem import BlockedProblem
from average_dice.features.logged_state_actions import ACTIONS_SEED, features_of_rows
from average_dice.features.state_action import StateActionFeatures
from average_dice.passes import Part
from average_dice.problem import Problem


@dataclass(frozen=True, eq=False)
class Block:
    """Some episodes of the log: the number of the first of them, and their problem.

    Random numbers of a block depend on the number of its first episode, so that they are the same in every pass.
    """

    first: int
    problem: Problem

    def features(self, features: StateActionFeatures, with_step: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """φ(s, a), E_π[φ(s′, a)] and E_π[φ(s₀, a)].

        Continuous actions of π are sampled, the same ones in every pass.
        """
        seed = ACTIONS_SEED if self.first == 0 else (ACTIONS_SEED, self.first)
        return features_of_rows(self.problem, features, with_step, seed)


def total(of: Callable[[Block], Part], merge: Callable[[Part, Part], Part], problem: BlockedProblem) -> Part:
    """One pass: `of` each block, merged in their order. A cluster gets both functions, so they can be sent."""
    return problem.total(partial(_of_block, of), merge)


def _of_block(of: Callable[[Block], Part], first: int, problem: Problem) -> Part:
    return of(Block(first, problem))
