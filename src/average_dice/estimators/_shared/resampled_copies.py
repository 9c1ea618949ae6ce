"""The rows that each copy of a network trains on, if several copies train together: the whole log, or a resample.

The inputs of networks, their scales and the sampled actions of π are those of the whole log; resamples share them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.models.training import Sample
from average_dice.problem import Problem
from average_dice.resampling import Resample


@dataclass(frozen=True, eq=False)
class Copies:
    """The resample of each copy; `resampled` is False if all of them use the whole log."""

    resamples: list[Resample]
    resampled: bool

    @staticmethod
    def of(problem: Problem, number: int, resamples: Sequence[Resample] | None) -> "Copies":
        """One copy for each resample, or `number` copies of the whole log."""
        if resamples is None:
            return Copies([Resample.everything(problem)] * number, False)
        return Copies(list(resamples), True)

    def num_checkpoints(self, number: int) -> int:
        """The number of checkpoints. Resamples need only the last one, because their curves are not used."""
        return 1 if self.resampled else number

    @property
    def rows(self) -> Sample | None:
        """The transitions of each copy; None: all."""
        if not self.resampled:
            return None
        return Sample.of([np.arange(one.num_rows) if one.rows is None else one.rows for one in self.resamples])

    def starts(self, rows_each: int = 1) -> Sample | None:
        """The starts of each copy, in a group with `rows_each` rows for each start; None: all."""
        if not self.resampled:
            return None
        numbers = [np.arange(len(one.counts)) if one.chosen is None else one.chosen for one in self.resamples]
        return Sample.of([(one[:, None] * rows_each + np.arange(rows_each)).ravel() for one in numbers])


def mean_seen(values: Float[Array, "row *output"], seen: Sample | None) -> Float[Array, "*output"]:
    """The mean over the rows of a copy."""
    return jnp.mean(values, axis=0) if seen is None else seen.mean(values)
