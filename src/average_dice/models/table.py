"""The table: f(x) is the (weighted) mean of the targets over the rows with that very x."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import SettingError
from average_dice.models.regression import Fitted, Inputs, Regression, Rows
from average_dice.resampling import Draw


@dataclass(frozen=True)
class Table:
    """For inputs that repeat. Two rows are the same state if all their numbers are equal."""

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]:
        states, index = np.unique(regression.inputs, axis=0, return_inverse=True)
        return [self._fitted(states, index, regression.targets, regression.weights)] * len(keys)

    def prepare(self, regression: Regression) -> Callable[[Draw, Rows], Fitted]:
        """Fits to draws of the log's episodes, each with targets of its own."""
        states, index = np.unique(regression.inputs, axis=0, return_inverse=True)

        def refit(draw: Draw, targets: Rows) -> Fitted:
            seen, place = np.unique(draw.of_rows(index), return_inverse=True)
            weights = None if regression.weights is None else draw.of_rows(regression.weights)
            return self._fitted(states[seen], place, targets, weights)

        return refit

    def _fitted(
        self,
        states: Float[np.ndarray, "state input"],
        index: Int[np.ndarray, " row"],
        targets: Rows,
        weights: Rows | None,
    ) -> Fitted:
        """`index`: the state of each row."""
        weighted = targets if weights is None else weights * targets
        means = np.bincount(index, weighted) / np.bincount(index, weights)

        def predict(inputs: Inputs) -> Rows:
            both, place = np.unique(np.concatenate([states, inputs]), axis=0, return_inverse=True)
            known = np.full(len(both), -1)
            known[place[: len(states)]] = np.arange(len(states))
            found = known[place[len(states) :]]
            if (found < 0).any():
                raise SettingError(f"{inputs[(found < 0).argmax()]} is not in the table: the log never shows it.")
            return means[found]

        return Fitted(means[index], predict, diagnostics={"num_states": float(len(states))})
