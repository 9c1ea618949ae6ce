"""A model fitted to some of the episodes, with its squared error on the others: what can be known without the truth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.models.early_stopping import left_out
from average_dice.models.regression import Fitted, RatioModel, Regression, Rows


@dataclass(frozen=True)
class HeldOut:
    """Fits `model` to all episodes but a `share` of them, evenly spread, and predicts all rows.

    `diagnostics["held_out_loss"]` is ½ E[(f − y)²] on the rows left out. Which episodes these are does not depend on
    the key: candidates are compared on the same ones. Values on the way are by the episodes that are kept.
    """

    model: RatioModel
    share: float = 0.2

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]:
        out = left_out(regression.episode, self.share)
        kept = Regression(
            regression.inputs[~out],
            regression.targets[~out],
            regression.mass[~out],
            regression.mass_goal,
            regression.episode[~out],
            None if regression.weights is None else regression.weights[~out],
        )

        def value_of_kept(f: Rows) -> float:
            rows = np.zeros(len(out))
            rows[~out] = f * (len(out) / len(f))  # a mean over all rows is then one over those kept
            return value_of(rows)

        fits = self.model.fit(kept, keys=keys, value_of=value_of_kept)
        return [self._judged(fitted, regression, out) for fitted in fits]

    def _judged(self, fitted: Fitted, regression: Regression, out: np.ndarray) -> Fitted:
        rows = fitted.predict(regression.inputs)
        loss = 0.5 * float(np.mean((rows[out] - regression.targets[out]) ** 2))
        return replace(fitted, rows=rows, diagnostics={**fitted.diagnostics, "held_out_loss": loss})
