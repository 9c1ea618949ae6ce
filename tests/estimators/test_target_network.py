"""Slow copies: how far behind they are, and when to say so."""

import jax
import numpy as np
import pytest

from average_dice.estimators import COPTD, SRDICE, DeepTD
from average_dice.estimators._shared.target_network import doubts, soft_update
from average_dice.testing.exact_mdps import truncated


def test_the_copy_is_an_exponential_average():
    slow = {"w": np.zeros(3)}
    for _ in range(100):
        slow = soft_update(slow, {"w": np.ones(3)}, 0.01)
    np.testing.assert_allclose(slow["w"], 1 - 0.99**100)


def test_what_is_left_of_the_beginning_decides():
    """Targets γ q̄ soft_update at once: from 1, q̄ ← q̄ − τ (1 − γ) q̄ at every step, and a twentieth is little enough."""
    discount, rate, left, steps = 0.9, 0.05, 1.0, 0
    while left > 0.05:
        left -= rate * (left - discount * left)
        steps += 1
    assert doubts(int(1.01 * steps), rate, discount) == ()
    assert len(doubts(int(0.97 * steps), rate, discount)) == 1


@pytest.mark.parametrize("method", [DeepTD, COPTD, pytest.param(SRDICE, marks=pytest.mark.slow)])
def test_a_run_that_is_too_short_says_so(method):
    short = {"hidden": (4,), "num_steps": 2, "num_checkpoints": 1} | ({"encoder_steps": 1} if method is SRDICE else {})
    problem = truncated().problem(20, seed=0)
    fit = method(**short).fit(problem, key=jax.random.key(0))
    assert any("slow copy would need" in note for note in fit.notes)
