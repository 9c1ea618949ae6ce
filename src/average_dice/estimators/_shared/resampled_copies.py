"""What each of the copies that train at once sees of the log: all of it, or a draw of its episodes.

Inputs of networks, their scales and the actions drawn from π are those of the whole log: draws share them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.models.training import Sample
from average_dice.problem import Problem
from average_dice.resampling import Draw


@dataclass(frozen=True, eq=False)
class Copies:
    """The draw of each copy; `drawn` is False where all of them see the whole log."""

    draws: list[Draw]
    drawn: bool

    @staticmethod
    def of(problem: Problem, number: int, draws: Sequence[Draw] | None) -> "Copies":
        if draws is None:
            return Copies([Draw.everything(problem)] * number, False)
        return Copies(list(draws), True)

    def looks(self, number: int) -> int:
        """How often to look at them as they train: nobody asks for the curves of draws."""
        return 1 if self.drawn else number

    @property
    def rows(self) -> Sample | None:
        """The transitions that each copy sees; None: all."""
        if not self.drawn:
            return None
        return Sample.of([np.arange(draw.num_rows) if draw.rows is None else draw.rows for draw in self.draws])

    def starts(self, rows_each: int = 1) -> Sample | None:
        """The starts that each copy sees, of a group that has so many rows for each start; None: all."""
        if not self.drawn:
            return None
        numbers = [np.arange(len(draw.counts)) if draw.chosen is None else draw.chosen for draw in self.draws]
        return Sample.of([(one[:, None] * rows_each + np.arange(rows_each)).ravel() for one in numbers])


def mean_seen(values: Float[Array, "row *output"], seen: Sample | None) -> Float[Array, "*output"]:
    """The mean over the rows that a copy sees."""
    return jnp.mean(values, axis=0) if seen is None else seen.mean(values)
