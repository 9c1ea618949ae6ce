"""Early stopping: of all the parameters that were looked at, those with the least error on episodes left out."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

Tree = Any  # a pytree of arrays, with a copy for each seed along their first axis


def left_out(episode: Int[np.ndarray, " row"], share: float) -> Bool[np.ndarray, " row"]:
    """Which rows are those of the episodes left out: a share of them, whole and evenly spread."""
    return np.floor((episode + 1) * share) > np.floor(episode * share)


@dataclass(eq=False)
class Best:
    """For each seed the parameters with the least loss so far; it gives up after `patience` looks without progress."""

    patience: int
    parameters: Tree = None
    losses: Float[np.ndarray, " seed"] = field(default_factory=lambda: np.empty(0))
    looks_since: int = 0

    def offer(self, parameters: Tree, losses: Float[np.ndarray, " seed"]) -> bool:
        """Takes what is better; returns whether no seed has got better for so long that it is time to stop."""
        if self.parameters is None:
            self.parameters, self.losses = parameters, losses
            return False
        better = losses < self.losses
        self.parameters = jax.tree.map(
            lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old), parameters, self.parameters
        )
        self.losses = np.where(better, losses, self.losses)
        self.looks_since = 0 if better.any() else self.looks_since + 1
        return self.looks_since >= self.patience
