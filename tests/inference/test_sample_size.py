"""Numbers of episodes: against textbook formulas, and against how often the ranges hold."""

import numpy as np
import pytest

from average_dice.inference.intervals import student_t
from average_dice.inference.sample_size import (
    MOST_EPISODES,
    episodes_for,
    exponent,
    freedom_of_spread,
    half_width,
    spread_ends,
)


def test_at_the_size_of_the_pilot_it_is_the_interval_of_student():
    values = np.random.default_rng(0).standard_normal(40)
    lower, upper = student_t(values, 0.9)
    error = values.std(ddof=1) / np.sqrt(40)
    assert half_width(error, 40, 40, 0.9) == pytest.approx((upper - lower) / 2)


def test_the_number_is_the_smallest_that_is_enough():
    found = episodes_for(0.05, 0.09, 200, 0.95)
    assert half_width(0.09, 200, found, 0.95) <= 0.05 < half_width(0.09, 200, found - 1, 0.95)
    assert found == pytest.approx((1.96 * 0.09 / 0.05) ** 2 * 200, rel=0.01)
    assert episodes_for(1e-9, 1.0, 200, 0.95) is None
    assert episodes_for(0.0, 1.0, 200, 0.95) is None
    assert episodes_for(1e9, 1.0, 200, 0.95) == 2 < MOST_EPISODES


def test_with_power_it_is_the_formula_of_the_textbook():
    found = episodes_for(0.1, 0.2, 100, 0.95, power=0.8)
    assert found == pytest.approx(100 * ((1.95996 + 0.84162) * 0.2 / 0.1) ** 2, rel=0.01)
    generator = np.random.default_rng(1)
    significant = 0
    for _ in range(2_000):  # an episode's spread is 0.2 √100
        lower, _ = student_t(0.1 + 2.0 * generator.standard_normal(found), 0.95)
        significant += lower > 0
    assert significant / 2_000 == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_the_range_of_the_standard_error_contains_the_truth(draw):
    """Bootstrap of means of 60 episodes with 100 resamples: 95 % for normal values, nearly so for skewed ones."""
    generator, covered, logs = np.random.default_rng(2), 0, 1_000
    for _ in range(logs):
        values = getattr(generator, {"normal": "standard_normal", "exponential": "standard_exponential"}[draw])(60)
        resampled = generator.multinomial(60, np.full(60, 1 / 60), size=100) @ values / 60
        left_out = (values.sum() - values) / 59
        error = resampled.std(ddof=1) * np.sqrt(60 / 59)
        low, high = spread_ends(error, freedom_of_spread(100, 60, left_out), 0.95)
        covered += low <= 1 / np.sqrt(60) <= high
    assert covered / logs == pytest.approx(0.95, abs=0.025 if draw == "normal" else 0.06)


def test_heavy_tails_leave_fewer_degrees_of_freedom():
    normal, heavy = np.random.default_rng(3).standard_normal(50), np.r_[np.zeros(49), 1.0]
    assert freedom_of_spread(100, 200) == pytest.approx(1 / (1 / 99 + 1 / 199))
    assert freedom_of_spread(100, 200, heavy) < 0.1 * freedom_of_spread(100, 200, normal)


def test_the_exponent_of_a_power_law_is_found_with_its_uncertainty():
    assert exponent([25, 50, 100], [2.0, np.sqrt(2), 1.0], [50] * 3, 0.95).value == pytest.approx(0.5)
    assert exponent([25, 50, 100], [1.0, 1.0, 1.0], [50] * 3, 0.95).value == pytest.approx(0.0)
    assert not exponent([25, 50, 100], [1.0, 1.0, 1.0], [50] * 3, 0.95).is_square_root
    generator, covered = np.random.default_rng(4), 0
    for _ in range(2_000):
        errors = [size**-0.5 * generator.standard_normal(50).std(ddof=1) for size in (25, 50, 100)]
        covered += exponent([25, 50, 100], errors, [50] * 3, 0.95).is_square_root
    assert covered / 2_000 == pytest.approx(0.95, abs=0.02)
