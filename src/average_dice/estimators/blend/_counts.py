"""How often each episode counts in each bootstrap resample."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from average_dice.estimators.blend._passes import Block


@dataclass(frozen=True)
class PoissonCounts:
    """Poisson with mean 1, for a log of any size: the same for the same seed and blocks, whatever the policy."""

    number: int
    seed: int

    def of(self, block: Block) -> Float[np.ndarray, "resample episode"]:
        generator = np.random.default_rng((self.seed, 7, block.first))
        return generator.poisson(1.0, (self.number, block.problem.dataset.num_episodes)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class GivenCounts:
    """Those of given resamples."""

    every: Int[np.ndarray, "resample episode"]

    @staticmethod
    def of_resamples(chosen: Sequence[np.ndarray], num_episodes: int) -> "GivenCounts":
        """From the episodes of each resample."""
        return GivenCounts(np.array([np.bincount(one, minlength=num_episodes).astype(np.int16) for one in chosen]))

    def of(self, block: Block) -> Float[np.ndarray, "resample episode"]:
        last = block.first + block.problem.dataset.num_episodes
        return self.every[:, block.first : last].astype(np.float64)


Counts = PoissonCounts | GivenCounts  # how often each episode counts in each bootstrap resample
NO_RESAMPLES = PoissonCounts(0, 0)
