"""Refits: log μ of all rows, estimated again from other episodes. Each choice of episodes is estimated once.

Every method, reward and policy is refitted to the same bootstrap resamples, and so needs the same estimates.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float

from average_dice.behaviour.folded import FoldedLog, Rows
from average_dice.data.estimated import Chosen, LogProbs

MOST_BYTES = 64 * 2**20  # of kept estimates: 100 resamples of 80,000 rows
NUM_SPLITS = 4  # into halves: enough for the mean of their ratios, which varies by about 1 % from half to half
FEWEST_EPISODES = 10  # with fewer, a half says little about the whole


@dataclass(frozen=True, eq=False)
class Refits:
    """`fit` gives log μ of all rows from their weights.

    Kept are the estimates that came first, up to `most_bytes`. Resamples are used in the same order each time: if the
    oldest made room for the newest, none would be left when its turn comes again.
    """

    log: FoldedLog
    fit: Callable[[Rows], LogProbs]
    most_bytes: int = MOST_BYTES
    _kept: dict[bytes, LogProbs] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, episodes: Chosen) -> LogProbs:
        """log μ of all rows, from these episodes, which may repeat. Their order does not matter."""
        weights = self.log.weights_of(episodes)
        name = hashlib.blake2b(weights.tobytes(), digest_size=16).digest()
        if (known := self._kept.get(name)) is not None:
            return known
        found = self.fit(weights)
        found.flags.writeable = False
        if (len(self._kept) + 1) * found.nbytes <= self.most_bytes:  # threads may exceed it by one estimate each
            self._kept[name] = found
        return found

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
