"""Intervals: against their formulas, against scipy, and against how often they contain what they should."""

import numpy as np
import pytest
from scipy import stats

import average_dice as ad
from average_dice.inference.intervals import bias_corrected, empirical_bernstein, from_few, percentile, student_t
from average_dice.inference.pareto import pareto_k


def test_percentiles_leave_half_of_the_rest_on_each_side():
    low, high = percentile(np.arange(1.0, 1000.0), 0.95, 10**9)
    assert (low, high) == pytest.approx((25, 975))  # of 999, the 25th from either end
    assert percentile(np.arange(1.0, 40.0), 0.95, 10**9) == pytest.approx((1, 39))


def test_percentiles_of_few_episodes_are_wider():
    """Of K normal values the bootstrap's interval is then Student's t, up to the noise of the draws."""
    values = np.random.default_rng(0).standard_normal(12)
    draws = values.mean() + np.random.default_rng(1).standard_normal(400_000) * values.std() / np.sqrt(12)
    assert percentile(draws, 0.95, 12) == pytest.approx(student_t(values, 0.95), abs=0.01)


def test_student_t_is_that_of_scipy():
    values = np.random.default_rng(0).exponential(size=30)
    expected = stats.t.interval(0.9, 29, loc=values.mean(), scale=stats.sem(values))
    assert student_t(values, 0.9) == pytest.approx(expected)


def test_bias_correction_is_that_of_scipy():
    """scipy draws its own replicates; with many of them the ends agree to the noise of the draws."""
    values = np.random.default_rng(1).exponential(size=25) ** 2
    found = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(2))
    draws = np.random.default_rng(3).integers(0, 25, (20_000, 25))
    left_out = np.array([np.delete(values, one).mean() for one in range(25)])
    low, high = bias_corrected(values.mean(), values[draws].mean(axis=1), left_out, 0.95)
    width = found.confidence_interval.high - found.confidence_interval.low
    assert low == pytest.approx(found.confidence_interval.low, abs=0.02 * width)
    assert high == pytest.approx(found.confidence_interval.high, abs=0.02 * width)
    plain = percentile(values[draws].mean(axis=1), 0.95, 10**9)
    assert low > plain[0] + 0.02 * width
    assert high > plain[1] + 0.02 * width


def test_bias_correction_of_replicates_that_need_none_is_nothing():
    replicates = np.linspace(-1, 1, 2001)
    low, high = bias_corrected(0.0, replicates, np.array([-1.0, 0.0, 1.0]), 0.95)
    assert (low, high) == pytest.approx(percentile(replicates, 0.95, 10**9), abs=1e-6)


def test_bias_correction_where_every_replicate_lies_on_one_side():
    low, high = bias_corrected(5.0, np.linspace(0, 1, 100), np.ones(4), 0.95)
    assert 0 <= low <= high <= 1


def test_empirical_bernstein_by_hand():
    values = np.tile([0.0, 1.0], 200)
    log = np.log(4 / 0.05)
    reach = np.sqrt(2 * (100 / 399) * log / 400) + 7 * 1.5 * log / (3 * 399)
    assert empirical_bernstein(values, 0.95, 0.0, 1.5) == pytest.approx((0.5 - reach, 0.5 + reach))
    assert empirical_bernstein(values[:4], 0.95, 0.0, 1.5) == (0.0, 1.5)  # no further than the bounds
    with pytest.raises(ad.SettingError, match="lie outside"):
        empirical_bernstein(values, 0.95, 0.0, 0.5)


def test_empirical_bernstein_contains_the_mean_and_shrinks():
    generator = np.random.default_rng(0)
    contained, widths = 0, []
    for num in (50, 500, 5_000):
        for _ in range(200):
            low, high = empirical_bernstein((generator.random(num) < 0.1).astype(float), 0.95, 0.0, 1.0)
            contained += low <= 0.1 <= high
        widths.append(high - low)
    assert contained >= 0.95 * 600
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_few_replicates_give_a_wider_interval_than_their_spread():
    replicates = np.array([1.0, 2.0, 3.0])
    low, high = from_few(2.5, replicates, 0.95, 10**9)
    assert (low + high) / 2 == pytest.approx(2.5)
    assert (high - low) / 2 == pytest.approx(4.3027, abs=1e-3)
    low, high = from_few(2.5, replicates, 0.95, 2)  # one degree of freedom, √2 wider
    assert (high - low) / 2 == pytest.approx(12.706 * np.sqrt(2), abs=1e-2)


def test_one_episode_has_no_interval():
    with pytest.raises(ad.SettingError, match="at least two episodes"):
        percentile(np.ones(9), 0.95, 1)
    with pytest.raises(ad.SettingError, match="at least two episodes"):
        student_t(np.ones(1), 0.95)
    with pytest.raises(ad.SettingError, match="at least two episodes"):
        empirical_bernstein(np.ones(1), 0.95, 0.0, 1.0)


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.9])
def test_pareto_k_is_the_shape_of_the_tail(shape):
    generator = np.random.default_rng(0)
    weights = stats.genpareto.rvs(shape, size=20_000, random_state=generator)
    assert pareto_k(weights) == pytest.approx(shape, abs=0.15)
    assert pareto_k(weights * 1e-30) == pytest.approx(pareto_k(weights))


def test_pareto_k_of_light_and_of_few_weights():
    assert pareto_k(np.random.default_rng(0).random(10_000)) < 0
    assert pareto_k(np.ones(100)) == -np.inf
    assert np.isnan(pareto_k(np.arange(10.0)))
