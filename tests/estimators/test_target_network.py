"""Target networks: how far they lag behind, and when a training is too short for them."""

import jax
import numpy as np
import pytest

from average_dice.estimators import COPTD, SRDICE, DeepTD
from average_dice.estimators._shared.target_network import short_training, soft_update
from average_dice.notes import NoteCode
from average_dice.testing.exact_mdps import truncated


def test_the_target_network_is_an_exponential_average():
    target = {"w": np.zeros(3)}
    for _ in range(100):
        target = soft_update(target, {"w": np.ones(3)}, 0.01)
    np.testing.assert_allclose(target["w"], 1 - 0.99**100)


def test_what_is_left_of_the_beginning_decides():
    """Targets γ q̄ fitted at once: from 1, q̄ ← q̄ − τ (1 − γ) q̄ at every step, and a twentieth is little enough."""
    discount, rate, left, steps = 0.9, 0.05, 1.0, 0
    while left > 0.05:
        left -= rate * (left - discount * left)
        steps += 1
    assert short_training(int(1.01 * steps), rate, discount) == ()
    assert len(short_training(int(0.97 * steps), rate, discount)) == 1


@pytest.mark.parametrize("method", [DeepTD, COPTD, pytest.param(SRDICE, marks=pytest.mark.slow)])
def test_a_run_that_is_too_short_says_so(method):
    short = {"hidden": (4,), "num_steps": 2, "num_checkpoints": 1} | ({"encoder_steps": 1} if method is SRDICE else {})
    problem = truncated().problem(20, seed=0)
    fit = method(**short).fit(problem, key=jax.random.key(0))
    assert NoteCode.SHORT_TRAINING in {note.code for note in fit.notes}
