"""The problem that every ratio model solves, and the contract of a model.

    min_f  ½ E[ω (f(x) − y)²]  +  (λ₁/2) ‖θ‖²  +  (λ₂/2) (E[a f(x)] − b)²

with expectations over the rows of the log: inputs x, targets y, weights ω of the rows (1 on average, and all 1 unless
given), mass coefficients a and their goal b. The last term pulls the mass of the ratio to its known value. λ₁ and λ₂
are settings of the models, which may use neither.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.models.learning_curves import History
from average_dice.notes import Note
from average_dice.problem import Problem
from average_dice.resampling import Resample

Inputs = Float[np.ndarray, "row input"]
RowValues = Float[np.ndarray, " row"]
ValueOf = Callable[[RowValues], float]  # from f on the rows to the value that it implies


@dataclass(frozen=True, eq=False)
class Regression:
    """Inputs, targets, mass coefficients with their goal, and the episode of each row (for folds by whole episode).

    `weights` of the squared errors of rows, up to a common factor; None if they are equal.
    """

    inputs: Inputs
    targets: RowValues
    mass: RowValues
    mass_goal: float
    episode: Int[np.ndarray, " row"]
    weights: RowValues | None = None

    @cached_property
    def unit_weights(self) -> RowValues:
        """The weights, 1 on average."""
        return np.ones(len(self.targets)) if self.weights is None else self.weights / self.weights.mean()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted f: its values on the rows it was fitted to, f itself, and how it was fitted."""

    rows: RowValues
    predict: Callable[[Inputs], RowValues]
    history: History | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class Resampled:
    """The regression of a resample of the log, and the value that f implies on it."""

    resample: Resample
    regression: Regression
    value_of: ValueOf


class PreparedModel(ABC):
    """A model that has computed, for one log, everything that its resamples share."""

    @abstractmethod
    def fit(self) -> Fitted:
        """f of the whole log."""

    @abstractmethod
    def refit(self, resamples: Sequence[Resampled]) -> list[Fitted]:
        """f of each resample."""


class RatioModel(ABC):
    """A form of the ratio. A new model implements `fit`; every method can then use it.

    Override `prepare` if resamples can share work, and `trains` if the model is trained by gradient steps.
    `value_of` turns f on the rows into the value it implies; models that train record it at checkpoints.
    """

    @property
    def trains(self) -> bool:
        """Whether it is trained by gradient steps, which takes time."""
        return False

    @abstractmethod
    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        """f; the same key gives the same f to the last digit."""

    def fit_seeds(self, regression: Regression, *, keys: Sequence[jax.Array], value_of: ValueOf) -> list[Fitted]:
        """One fit for each key. Models that train override this and train them all at once."""
        return [self.fit(regression, key=key, value_of=value_of) for key in keys]

    def prepare(self, problem: Problem, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> PreparedModel:
        """Prepares for the log and its resamples. Unless overridden, each resample is fitted from the start."""
        return FittedAnew(self, regression, key, value_of)


@dataclass(frozen=True, eq=False)
class FittedAnew(PreparedModel):
    """A model whose resamples share nothing."""

    model: RatioModel
    regression: Regression
    key: jax.Array
    value_of: ValueOf

    def fit(self) -> Fitted:
        return self.model.fit(self.regression, key=self.key, value_of=self.value_of)

    def refit(self, resamples: Sequence[Resampled]) -> list[Fitted]:
        return [self.model.fit(one.regression, key=self.key, value_of=one.value_of) for one in resamples]
