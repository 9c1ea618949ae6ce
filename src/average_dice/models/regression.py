"""The one problem that every ratio model solves.

    min_f  ½ E[ω (f(x) − y)²]  +  (λ₁/2) ‖θ‖²  +  (λ₂/2) (E[a f(x)] − b)²

with expectations over the rows of the log: inputs x, targets y, weights ω of the rows (1 on average, and all 1 unless
given), mass coefficients a and their goal b. The last term says that the ratio must carry the right mass. λ₁ and λ₂
belong to the models, which may do without either.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float, Int

Inputs = Float[np.ndarray, "row input"]
Rows = Float[np.ndarray, " row"]


@dataclass(frozen=True, eq=False)
class Regression:
    """Inputs, targets, mass coefficients with their goal, and the episode of each row (for folds by whole episode).

    `weights`: how much the squared error of each row counts, up to a common factor; None if all count the same.
    """

    inputs: Inputs
    targets: Rows
    mass: Rows
    mass_goal: float
    episode: Int[np.ndarray, " row"]
    weights: Rows | None = None

    @cached_property
    def unit_weights(self) -> Rows:
        """The weights, 1 on average."""
        return np.ones(len(self.targets)) if self.weights is None else self.weights / self.weights.mean()


@dataclass(frozen=True, eq=False)
class History:
    """How training went: the value and the loss, on the whole log, after so many steps."""

    step: Int[np.ndarray, " record"]
    value: Float[np.ndarray, " record"]
    loss: Float[np.ndarray, " record"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted f: its values on the rows it was fitted to, f itself, and how it came about."""

    rows: Rows
    predict: Callable[[Inputs], Rows]
    history: History | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@runtime_checkable
class RatioModel(Protocol):
    """Anything that fits a `Regression`, once for each key.

    `value_of` turns f on the rows into the value it implies; models that train record it as they go.
    """

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]: ...
