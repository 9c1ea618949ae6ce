"""Early stopping: keeps the parameters of the checkpoint with the least error on held-out episodes."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.errors import SettingError

Tree = Any  # a pytree of arrays, one copy after the other along their first axis


def left_out(episode: Int[np.ndarray, " row"], share: float) -> Bool[np.ndarray, " row"]:
    """Which rows are held out: those of a share of the episodes, evenly spread; at least one of two or more."""
    if not 0 <= share < 1:
        raise SettingError(f"the held-out share of episodes must lie between 0 and 1, not {share}.")
    numbers, which = np.unique(episode, return_inverse=True)
    if share == 0 or len(numbers) < 2:
        return np.zeros(len(episode), bool)
    place = np.arange(len(numbers))
    out = np.floor((place + 1) * share) > np.floor(place * share)
    out[-1] |= not out.any()
    return out[which]


@dataclass(eq=False)
class Best:
    """For each copy the parameters with the least loss so far, until `patience` checkpoints without progress.

    A copy does not depend on the others.
    """

    patience: int
    parameters: Tree = None
    losses: Float[np.ndarray, " copy"] = field(default_factory=lambda: np.empty(0))
    checkpoints_since: Int[np.ndarray, " copy"] = field(default_factory=lambda: np.empty(0, np.int64))

    def offer(self, parameters: Tree, losses: Float[np.ndarray, " copy"]) -> bool:
        """Keeps the parameters of each copy that improved. Returns whether all copies have stopped."""
        if self.parameters is None:
            self.parameters, self.losses, self.checkpoints_since = parameters, losses, np.zeros(len(losses), np.int64)
            return False
        better = (losses < self.losses) & (self.checkpoints_since < self.patience)
        self.parameters = jax.tree.map(
            lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old), parameters, self.parameters
        )
        self.losses = np.where(better, losses, self.losses)
        self.checkpoints_since = np.where(better, 0, self.checkpoints_since + 1)
        return bool((self.checkpoints_since >= self.patience).all())
