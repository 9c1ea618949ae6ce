"""The network's loss where its minimum is known."""

import jax
import numpy as np
import pytest

from average_dice.models import MLPRegression, Regression


@pytest.mark.parametrize("scale", [5.0, 0.5])
def test_where_labels_vanish_the_regulariser_makes_a_flat_ratio(scale):
    """½ f² + ½ λ₂ (c f − 1)² is least at c f = λ₂ c² / (1 + λ₂ c²)."""
    inputs = np.random.default_rng(0).standard_normal((400, 3))
    nothing = Regression(inputs, np.zeros(400), np.full(400, scale), 1.0, np.repeat(np.arange(40), 10))
    model = MLPRegression(hidden=(16,), ridge=0.0, mass_weight=0.5, num_steps=3_000)
    fitted = model.fit(nothing, key=jax.random.key(0), value_of=np.mean)
    assert np.mean(scale * fitted.rows) == pytest.approx(0.5 * scale**2 / (1 + 0.5 * scale**2), abs=0.02)
    assert np.std(scale * fitted.rows) < 0.15
