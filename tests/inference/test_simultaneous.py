"""Simultaneous intervals: against the exact quantile of the studentised range, and against how often they hold."""

import numpy as np
import pytest
from scipy import stats

import average_dice as ad
from average_dice.inference.intervals import percentile, student_t
from average_dice.inference.simultaneous import simultaneous

MANY = 10**9  # episodes: no correction for few


def resampled_means(episodes, number, generator):
    """The means of the columns on bootstrap resamples of the rows."""
    num = len(episodes)
    return generator.multinomial(num, np.full(num, 1 / num), size=number) @ episodes / num


@pytest.mark.parametrize("num_policies", [2, 4, 10])
def test_the_critical_value_of_independent_normals_is_that_of_the_studentised_range(num_policies):
    """Tukey's: the range of p standard normals over √2 is the maximum of all |differences| over their deviation."""
    replicates = np.random.default_rng(0).standard_normal((100_000, num_policies))
    found = simultaneous(np.zeros(num_policies), replicates, 0.95, MANY)
    exact = stats.studentized_range.ppf(0.95, num_policies, np.inf) / np.sqrt(2)
    assert found.critical == pytest.approx(exact, rel=0.01)
    assert found.kind == "max-t of 100000 bootstrap resamples"


@pytest.mark.parametrize("num_episodes", [10, 30])
def test_for_few_episodes_it_is_at_least_that_of_the_studentised_range_and_hardly_more(num_episodes):
    """The exact quantile has a spread that all differences share; the correction one for each, which is safe."""
    shrunk = np.sqrt((num_episodes - 1) / num_episodes)
    replicates = shrunk * np.random.default_rng(0).standard_normal((100_000, 4))
    found = simultaneous(np.zeros(4), replicates, 0.95, num_episodes)
    exact = stats.studentized_range.ppf(0.95, 4, num_episodes - 1) / np.sqrt(2)
    assert exact < shrunk * found.critical < 1.06 * exact


def test_of_two_policies_it_is_the_plain_interval():
    """With many resamples of normal values: percentiles, and Student's t for few episodes."""
    generator = np.random.default_rng(1)
    episodes = generator.standard_normal((12, 2)) @ [[1.0, 0.3], [0.0, 0.8]] + [0.5, 0.2]
    gap = episodes[:, 0] - episodes[:, 1]
    normal = gap.mean() + generator.standard_normal(400_000) * gap.std() / np.sqrt(12)
    found = simultaneous(np.array([gap.mean(), 0.0]), np.column_stack([normal, np.zeros_like(normal)]), 0.95, 12)
    ends = found.lower[0, 1], found.upper[0, 1]
    assert ends == pytest.approx(percentile(normal, 0.95, 12), abs=0.01)
    assert ends == pytest.approx(student_t(gap, 0.95), abs=0.01)


@pytest.mark.parametrize("num_episodes", [15, 60])
def test_all_differences_of_correlated_values_are_covered_together(num_episodes):
    """Means of 3,000 logs with five correlated policies, of which two are nearly the same: 95 % hold in all pairs."""
    generator = np.random.default_rng(2)
    mixing = generator.standard_normal((4, 5))
    mixing = np.column_stack([mixing[:, :4], mixing[:, 0] + 0.01 * mixing[:, 4]])
    truth = np.array([0.0, 0.3, 0.3, -0.2, 0.0])
    wanted, together, alone, logs = truth[:, None] - truth, 0, 0, 3_000
    for _ in range(logs):
        episodes = generator.standard_normal((num_episodes, 4)) @ mixing + truth
        found = simultaneous(episodes.mean(axis=0), resampled_means(episodes, 100, generator), 0.95, num_episodes)
        missed = (found.lower > wanted) | (wanted > found.upper)
        together += not missed.any()
        alone += not missed[0, 1]
    assert together / logs == pytest.approx(0.95, abs=0.013)  # three standard errors
    assert alone / logs > 0.975  # each on its own is wider than a plain interval


def test_the_order_of_policies_and_constants_change_nothing():
    generator = np.random.default_rng(3)
    replicates = generator.standard_normal((200, 4)) @ generator.standard_normal((4, 4))
    values, order, constants = replicates.mean(axis=0), np.array([2, 0, 3, 1]), np.array([5.0, -3.0, 0.0, 1.0])
    found = simultaneous(values, replicates, 0.9, 40)
    other = simultaneous(values[order], replicates[:, order], 0.9, 40)
    assert other.critical == pytest.approx(found.critical)
    np.testing.assert_allclose(other.lower, found.lower[np.ix_(order, order)])
    moved = simultaneous(values + constants, replicates + constants, 0.9, 40)
    np.testing.assert_allclose(moved.upper, found.upper + constants[:, None] - constants, atol=1e-9)
    np.testing.assert_allclose(found.lower, -found.upper.T)
    common = simultaneous(values + 7, replicates + generator.standard_normal((200, 1)) + 7, 0.9, 40)
    np.testing.assert_allclose(common.lower, found.lower, atol=1e-9)  # what all policies share cancels


def test_few_resamples_use_the_inequality_of_sidak():
    replicates = np.random.default_rng(4).standard_normal((10, 3))
    found = simultaneous(np.zeros(3), replicates, 0.95, 50)
    share = 0.95 ** (1 / 3)
    assert found.critical == pytest.approx(stats.t.ppf((1 + share) / 2, 9) * np.sqrt(50 / 49))
    assert "Šidák" in found.kind


def test_which_policies_may_be_the_best():
    """The first is far below, the other two are within the noise of each other."""
    generator = np.random.default_rng(5)
    replicates = np.array([0.0, 1.0, 1.1]) + 0.1 * generator.standard_normal((300, 3))
    found = simultaneous(np.array([0.0, 1.0, 1.1]), replicates, 0.95, 100)
    assert found.not_excluded.tolist() == [False, True, True]


def test_two_policies_that_are_the_same_do_not_differ():
    """Their differences are rounding, which must neither be significant nor widen the other intervals."""
    generator = np.random.default_rng(6)
    one = generator.standard_normal((400, 1))
    same = np.column_stack([one, one + 1e-15 * generator.standard_normal((400, 1)), -one])
    found = simultaneous(np.array([0.0, 1e-16, 0.5]), same, 0.95, MANY)
    assert found.lower[0, 1] < 0 < found.upper[0, 1]
    alone = simultaneous(np.array([0.0, 0.5]), same[:, [0, 2]], 0.95, MANY)
    assert found.critical == pytest.approx(alone.critical, rel=1e-6)
    equal = simultaneous(np.ones(2), np.ones((50, 2)), 0.95, 10)
    assert equal.not_excluded.all()


def test_failed_resamples_are_left_out_and_too_few_are_refused():
    replicates = np.random.default_rng(7).standard_normal((100, 3))
    failed = np.vstack([replicates, [np.nan, 0.0, 0.0]])
    whole = simultaneous(np.zeros(3), replicates, 0.95, 30)
    np.testing.assert_array_equal(simultaneous(np.zeros(3), failed, 0.95, 30).lower, whole.lower)
    with pytest.raises(ad.SettingError, match="at least two"):
        simultaneous(np.zeros(3), failed[-2:], 0.95, 30)
