"""Learning curves: the value and the loss of a method at the checkpoints of its training."""

from dataclasses import dataclass, field

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class History:
    """The value and the loss on the whole log, after each of these numbers of update steps."""

    step: Int[np.ndarray, " checkpoint"]
    value: Float[np.ndarray, " checkpoint"]
    loss: Float[np.ndarray, " checkpoint"]


@dataclass(eq=False)
class LearningCurves:
    """The value and the loss of every copy that trains, at each checkpoint."""

    steps: list[int] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    losses: list[np.ndarray] = field(default_factory=list)

    def add(self, step: int, values: ArrayLike, losses: ArrayLike) -> None:
        """One more checkpoint."""
        self.steps.append(step)
        self.values.append(np.asarray(values, np.float64))
        self.losses.append(np.asarray(losses, np.float64))

    def forget_last(self) -> int:
        """Removes the last checkpoint and returns its step."""
        self.values.pop()
        self.losses.pop()
        return self.steps.pop()

    def of(self, copy: int) -> History:
        """The curves of one copy."""
        return History(
            np.array(self.steps),
            np.array([values[copy] for values in self.values]),
            np.array([losses[copy] for losses in self.losses]),
        )
