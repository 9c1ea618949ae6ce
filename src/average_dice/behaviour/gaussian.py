"""Models of continuous actions: a mean that is linear in features, and a spread for each dimension.

    a = φ(s)ᵀβ + σ z,      z of each dimension standard normal, or Student's t where tails are heavy

The spread and the tails are fitted to held-out residuals: those of the fitted rows are too small.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve

from average_dice.behaviour.folded import FoldedLog, Rows

LEAST_PENALTY = 1e-9  # makes the normal equations regular

Actions = Float[np.ndarray, "transition action"]


@dataclass(frozen=True)
class Gaussian:
    """Ridge regression of the action; `features` None for a constant mean."""

    features: Literal["linear", "fourier"] | None
    ridge: float = 0.0

    @property
    def name(self) -> str:
        """With its ridge."""
        return "constant" if self.features is None else f"{self.features} (ridge {self.ridge:g})"

    def predict(self, log: FoldedLog, weights: Rows) -> Actions:
        """The mean action of every row, from a regression that has not seen the row's fold."""
        phi = {None: log.linear[:, :1], "linear": log.linear, "fourier": log.fourier}[self.features]
        actions, found = log.data.action, np.empty_like(log.data.action)
        for _, train, rest in log.splits(weights):
            weighted = weights[train, None] * phi[train]
            penalty = np.full(phi.shape[1], self.ridge * weights[train].sum() + LEAST_PENALTY)
            penalty[0] = LEAST_PENALTY  # of the constant
            gram = weighted.T @ phi[train] + np.diag(penalty)
            found[rest] = phi[rest] @ solve(gram, weighted.T @ actions[train], assume_a="pos")
        return found
