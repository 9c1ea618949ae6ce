"""A model fitted to some of the episodes, with its squared error on the others. This error needs no true value."""

from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.models.early_stopping import left_out
from average_dice.models.regression import Fitted, RatioModel, Regression, RowValues, ValueOf


@dataclass(frozen=True)
class HeldOut(RatioModel):
    """Fits `model` to all episodes but a `share` of them, evenly spread, and predicts all rows.

    `diagnostics["held_out_loss"]` is ½ E[(f − y)²] on the held-out rows. The choice of episodes does not depend
    on the key, so that candidates are compared on the same ones. Recorded values are those of the other episodes.
    """

    model: RatioModel
    share: float = 0.2

    @property
    def trains(self) -> bool:
        return self.model.trains

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        out = left_out(regression.episode, self.share)
        kept = Regression(
            regression.inputs[~out],
            regression.targets[~out],
            regression.mass[~out],
            regression.mass_goal,
            regression.episode[~out],
            None if regression.weights is None else regression.weights[~out],
        )

        def value_of_kept(f: RowValues) -> float:
            rows = np.zeros(len(out))
            rows[~out] = f * (len(out) / len(f))  # a mean over all rows is then a mean over those kept
            return value_of(rows)

        fitted = self.model.fit(kept, key=key, value_of=value_of_kept)
        rows = fitted.predict(regression.inputs)
        loss = 0.5 * float(np.mean((rows[out] - regression.targets[out]) ** 2))
        return replace(fitted, rows=rows, diagnostics={**fitted.diagnostics, "held_out_loss": loss})
