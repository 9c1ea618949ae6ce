"""Early stopping: of all the parameters that were looked at, those with the least error on episodes left out."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.errors import SettingError

Tree = Any  # a pytree of arrays, with a copy for each seed along their first axis


def left_out(episode: Int[np.ndarray, " row"], share: float) -> Bool[np.ndarray, " row"]:
    """Which rows are those of the episodes left out: a share of them, whole and evenly spread; of two or more, one."""
    if not 0 <= share < 1:
        raise SettingError(f"the share of episodes left out must lie between 0 and 1, not {share}.")
    numbers, which = np.unique(episode, return_inverse=True)
    if share == 0 or len(numbers) < 2:
        return np.zeros(len(episode), bool)
    place = np.arange(len(numbers))
    out = np.floor((place + 1) * share) > np.floor(place * share)
    out[-1] |= not out.any()
    return out[which]


@dataclass(eq=False)
class Best:
    """For each seed the parameters with the least loss so far, until `patience` looks bring it no progress.

    What becomes of a seed does not depend on the others.
    """

    patience: int
    parameters: Tree = None
    losses: Float[np.ndarray, " seed"] = field(default_factory=lambda: np.empty(0))
    looks_since: Int[np.ndarray, " seed"] = field(default_factory=lambda: np.empty(0, np.int64))

    def offer(self, parameters: Tree, losses: Float[np.ndarray, " seed"]) -> bool:
        """Takes what is better; returns whether all seeds have given up."""
        if self.parameters is None:
            self.parameters, self.losses, self.looks_since = parameters, losses, np.zeros(len(losses), np.int64)
            return False
        better = (losses < self.losses) & (self.looks_since < self.patience)
        self.parameters = jax.tree.map(
            lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old), parameters, self.parameters
        )
        self.losses = np.where(better, losses, self.losses)
        self.looks_since = np.where(better, 0, self.looks_since + 1)
        return bool((self.looks_since >= self.patience).all())
