"""The table: f(x) is the mean of the targets over the rows with that very x."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from ..errors import SettingError
from .regression import Fitted, Inputs, Regression, Rows


@dataclass(frozen=True)
class Table:
    """For inputs that repeat. Two rows are the same state if all their numbers are equal."""

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]:
        states, index = np.unique(regression.inputs, axis=0, return_inverse=True)
        means = np.bincount(index, regression.targets) / np.bincount(index)

        def predict(inputs: Inputs) -> Rows:
            both, place = np.unique(np.concatenate([states, inputs]), axis=0, return_inverse=True)
            known = np.full(len(both), -1)
            known[place[: len(states)]] = np.arange(len(states))
            found = known[place[len(states) :]]
            if (found < 0).any():
                raise SettingError(f"{inputs[(found < 0).argmax()]} is not in the table: the log never shows it.")
            return means[found]

        fitted = Fitted(means[index], predict, diagnostics={"num_states": float(len(states))})
        return [fitted] * len(keys)
