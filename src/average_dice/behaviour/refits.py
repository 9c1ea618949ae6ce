"""Refits: log μ of all rows, estimated again from other episodes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from average_dice.behaviour.folded import FoldedLog, Rows
from average_dice.data.estimated import Chosen, LogProbs

NUM_SPLITS = 4  # into halves: enough for the mean of their ratios, which varies by about 1 % from half to half
FEWEST_EPISODES = 10  # with fewer, a half says little about the whole


@dataclass(frozen=True, eq=False)
class Refits:
    """`fit` gives log μ of all rows from their weights."""

    log: FoldedLog
    fit: Callable[[Rows], LogProbs]

    def __call__(self, episodes: Chosen) -> LogProbs:
        """log μ of all rows, from these episodes, which may repeat. Their order does not matter."""
        return self.fit(self.log.weights_of(episodes))

    def of_halves(self) -> Float[np.ndarray, "half transition"] | None:
        """log μ of all rows from each of several random halves of the episodes; None if there are few episodes."""
        return self._of_halves

    @cached_property
    def _of_halves(self) -> Float[np.ndarray, "half transition"] | None:
        number = self.log.data.num_episodes
        if number < FEWEST_EPISODES:
            return None
        generator = np.random.default_rng((self.log.seed, 13))
        orders = [generator.permutation(number) for _ in range(NUM_SPLITS)]
        halves = [half for order in orders for half in np.array_split(order, 2)]
        return np.stack([self.fit(self.log.weights_of(half)) for half in halves])
