"""The bounded equations: rows that change sides, weights of rows, and solutions that do not settle."""

from dataclasses import replace

import jax
import numpy as np

from average_dice.estimators._shared.bounded_td import BoundedTD
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.resampling import Resample
from average_dice.testing.exact_mdps import early_termination, truncated


def test_products_are_added_block_by_block():
    linear = LoggedStateActions.of(early_termination().problem(20, seed=0), 6, jax.random.key(0))
    rows = np.arange(3, 90, 2)
    weight = np.random.default_rng(0).standard_normal(len(rows))
    start = np.random.default_rng(1).standard_normal((linear.features.size, linear.features.size))
    found = start.copy()
    linear.add_products(found, rows, weight)
    expected = start + (linear.logged[rows] * weight[:, None]).T @ linear.after[rows]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_rows_with_weight_two_count_like_rows_that_are_there_twice():
    """Episodes resampled twice against episodes whose rows have weight two."""
    problem = truncated().problem(20, seed=0)
    linear = LoggedStateActions.of(problem, 6, jax.random.key(0))
    often = np.where(np.arange(20) < 7, 2, 1)
    weighted = BoundedTD.of(problem, linear, often[problem.episode_index].astype(float))
    resampled = Resample.of(problem, np.repeat(np.arange(20), often))
    ((by_weight,),) = weighted.solve([1e-3], [Resample.everything(problem)])
    ((by_copies,),) = BoundedTD.of(problem, linear).solve([1e-3], [resampled])
    np.testing.assert_allclose(by_weight.theta, by_copies.theta, rtol=1e-6)


def test_a_settled_solution_is_a_fixed_point_within_the_bounds():
    """θ solves the regression on its own targets, where some values meet a bound and others do not."""
    problem = truncated().problem(100, seed=0)
    linear = LoggedStateActions.of(problem, 20, jax.random.key(0))
    free = BoundedTD.of(problem, linear)
    ((unbounded,),) = free.solve([0.3], [Resample.everything(problem)])
    low = float(np.median(unbounded.after[~problem.dataset.terminated]))
    equations = replace(free, low=low)
    ((found,),) = equations.solve([0.3], [Resample.everything(problem)])
    assert found.unsettled.size == 0
    assert 0.05 < np.mean(found.after < low) < 0.95
    target = equations.reward + equations.continues * np.clip(found.after, low, equations.high)
    gram = linear.logged.T @ linear.logged / len(target) + linear.penalty(0.3)
    np.testing.assert_allclose(gram @ found.theta, linear.logged.T @ target / len(target), atol=1e-9)
