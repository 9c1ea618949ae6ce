"""Tables, for inputs that repeat: the mean of the targets over the rows with exactly this x, or drawn to that of all.

    f(x) = (Σ_{rows of x} ω y + m ȳ) / (Σ_{rows of x} ω + m)

with m = 0 for the plain table. With shrinkage, the strength m, in rows, is chosen on held-out episodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import SettingError
from average_dice.models.regression import (
    Fitted,
    Inputs,
    PreparedModel,
    RatioModel,
    Regression,
    Resampled,
    RowValues,
    ValueOf,
)
from average_dice.problem import Problem

PLAIN = (0.0,)
STRENGTHS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # from a plain table to a constant
NUM_FOLDS = 6  # of whole episodes


@dataclass(frozen=True)
class Table(RatioModel):
    """For inputs that repeat. Two rows are the same state if all their numbers are equal."""

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        return PreparedTable(regression, PLAIN).fit()

    def prepare(self, problem: Problem, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> PreparedModel:
        return PreparedTable(regression, PLAIN)


@dataclass(frozen=True)
class ShrunkTable(RatioModel):
    """A table with shrinkage. An input that is not in the log has the mean of all rows."""

    strengths: tuple[float, ...] = STRENGTHS

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        return PreparedTable(regression, self.strengths).fit()

    def prepare(self, problem: Problem, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> PreparedModel:
        return PreparedTable(regression, self.strengths)


@dataclass(frozen=True, eq=False)
class PreparedTable(PreparedModel):
    """Resamples share the states and the strength of the whole log."""

    regression: Regression
    strengths: tuple[float, ...]

    @cached_property
    def states(self) -> tuple[Float[np.ndarray, "state input"], Int[np.ndarray, " row"]]:
        """The different inputs, and which of them each row has."""
        states, index = np.unique(self.regression.inputs, axis=0, return_inverse=True)
        return states, index

    @cached_property
    def strength(self) -> float:
        """The strength with the least squared error on held-out episodes."""
        if len(self.strengths) == 1:
            return self.strengths[0]
        (states, index), regression = self.states, self.regression
        weights, targets = regression.unit_weights, regression.targets
        num_folds = min(NUM_FOLDS, int(regression.episode.max()) + 1)
        if num_folds < 2:
            return max(self.strengths)
        fold, errors = regression.episode % num_folds, np.zeros(len(self.strengths))
        for one in range(num_folds):
            kept, held = (fold != one), (fold == one)
            for place, strength in enumerate(self.strengths):
                means, _ = _shrunk(index[kept], targets[kept], weights[kept], len(states), strength)
                errors[place] += np.sum(weights[held] * (targets[held] - means[index[held]]) ** 2)
        return self.strengths[int(errors.argmin())]

    def fit(self) -> Fitted:
        return self._fitted(self.states[1], self.regression.targets, self.regression.unit_weights)

    def refit(self, resamples: Sequence[Resampled]) -> list[Fitted]:
        index, weights = self.states[1], self.regression.unit_weights
        return [
            self._fitted(one.resample.of_rows(index), one.regression.targets, one.resample.of_rows(weights))
            for one in resamples
        ]

    def _fitted(self, index: np.ndarray, targets: RowValues, weights: RowValues) -> Fitted:
        states, _ = self.states
        means, whole = _shrunk(index, targets, weights, len(states), self.strength)

        def predict(inputs: Inputs) -> RowValues:
            both, place = np.unique(np.concatenate([states, inputs]), axis=0, return_inverse=True)
            known = np.full(len(both), whole if self.strength > 0 else np.nan)
            known[place[: len(states)]] = means
            found = known[place[len(states) :]]
            if np.isnan(found).any():
                missing = inputs[int(np.isnan(found).argmax())]
                raise SettingError(f"{missing} is not in the table, because it is not in the log.")
            return found

        diagnostics = {"num_states": float(len(states))}
        if len(self.strengths) > 1:
            diagnostics["strength"] = self.strength
        return Fitted(means[index], predict, diagnostics=diagnostics)


def _shrunk(
    index: np.ndarray, targets: RowValues, weights: RowValues, num_states: int, strength: float
) -> tuple[Float[np.ndarray, " state"], float]:
    """The mean of each state, drawn to the mean of all rows; and that mean, which a state without rows has."""
    whole = float(weights @ targets / weights.sum())
    sums, sizes = np.bincount(index, weights * targets, num_states), np.bincount(index, weights, num_states)
    found = sizes + strength
    return np.divide(sums + strength * whole, found, out=np.full(num_states, whole), where=found > 0), whole
