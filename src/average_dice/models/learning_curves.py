"""Learning curves: what a trained method notes as it goes, for every seed."""

from dataclasses import dataclass, field

import numpy as np
from jax.typing import ArrayLike

from average_dice.models.regression import History


@dataclass(eq=False)
class LearningCurves:
    """The value and the loss of every seed, at the steps looked at."""

    steps: list[int] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    losses: list[np.ndarray] = field(default_factory=list)

    def add(self, step: int, values: ArrayLike, losses: ArrayLike) -> None:
        self.steps.append(step)
        self.values.append(np.asarray(values, np.float64))
        self.losses.append(np.asarray(losses, np.float64))

    def forget_last(self) -> int:
        """Takes back what was noted last, and says at which step."""
        self.values.pop()
        self.losses.pop()
        return self.steps.pop()

    def of(self, seed: int) -> History:
        """The curves of one seed."""
        return History(
            np.array(self.steps),
            np.array([values[seed] for values in self.values]),
            np.array([losses[seed] for losses in self.losses]),
        )
