"""The table: f(x) is the (weighted) mean of the targets over the rows with exactly this x."""

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


@dataclass(frozen=True)
class Table(RatioModel):
    """For inputs that repeat. Two rows are the same state if all their numbers are equal."""

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        return PreparedTable(regression).fit()

    def prepare(self, problem: Problem, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> PreparedModel:
        return PreparedTable(regression)


@dataclass(frozen=True, eq=False)
class PreparedTable(PreparedModel):
    """The states of the log are found once. A resample has only the states that it contains."""

    regression: Regression

    @cached_property
    def states(self) -> tuple[Float[np.ndarray, "state input"], Int[np.ndarray, " row"]]:
        """The different inputs, and which of them each row has."""
        states, index = np.unique(self.regression.inputs, axis=0, return_inverse=True)
        return states, index

    def fit(self) -> Fitted:
        return _fitted(*self.states, self.regression.targets, self.regression.weights)

    def refit(self, resamples: Sequence[Resampled]) -> list[Fitted]:
        states, index = self.states
        fits = []
        for one in resamples:
            seen, place = np.unique(one.resample.of_rows(index), return_inverse=True)
            weights = self.regression.weights
            weights = None if weights is None else one.resample.of_rows(weights)
            fits.append(_fitted(states[seen], place, one.regression.targets, weights))
        return fits


def _fitted(
    states: Float[np.ndarray, "state input"],
    index: Int[np.ndarray, " row"],
    targets: RowValues,
    weights: RowValues | None,
) -> Fitted:
    weighted = targets if weights is None else weights * targets
    means = np.bincount(index, weighted) / np.bincount(index, weights)

    def predict(inputs: Inputs) -> RowValues:
        both, place = np.unique(np.concatenate([states, inputs]), axis=0, return_inverse=True)
        known = np.full(len(both), -1)
        known[place[: len(states)]] = np.arange(len(states))
        found = known[place[len(states) :]]
        if (found < 0).any():
            raise SettingError(f"{inputs[(found < 0).argmax()]} is not in the table, because it is not in the log.")
        return means[found]

    return Fitted(means[index], predict, diagnostics={"num_states": float(len(states))})
