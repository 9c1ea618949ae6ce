"""The parts of the bounded equations: solving with a matrix and its transpose, and rows that change sides."""

import jax
import numpy as np

from average_dice.estimators.bounded_q import System
from average_dice.estimators.pair_features import LinearProblem
from exact_mdps import early_termination


def test_a_system_is_solved_both_ways():
    generator = np.random.default_rng(0)
    matrix, right = generator.standard_normal((6, 6)), generator.standard_normal(6)
    np.testing.assert_allclose(matrix @ System(matrix).solve(right), right, rtol=1e-9)
    np.testing.assert_allclose(matrix.T @ System(matrix).solve_transposed(right), right, rtol=1e-9)


def test_a_singular_system_has_its_smallest_solution():
    """An action that no episode of a draw takes leaves rows and columns of zeros."""
    matrix = np.zeros((3, 3))
    matrix[:2, :2] = [[2.0, 1.0], [0.0, 1.0]]
    np.testing.assert_allclose(System(matrix).solve(np.array([4.0, 2.0, 0.0])), [1, 2, 0], atol=1e-12)
    np.testing.assert_allclose(System(matrix).solve_transposed(np.array([2.0, 2.0, 0.0])), [1, 1, 0], atol=1e-12)


def test_arrivals_are_added_block_by_block():
    linear = LinearProblem.of(early_termination().problem(20, seed=0), 6, jax.random.key(0))
    rows = np.arange(3, 90, 2)
    weight = np.random.default_rng(0).standard_normal(len(rows))
    start = np.random.default_rng(1).standard_normal((linear.features.size, linear.features.size))
    found = start.copy()
    linear.add_arrivals(found, rows, weight)
    expected = start + (linear.logged[rows] * weight[:, None]).T @ linear.after[rows]
    np.testing.assert_allclose(found, expected, atol=1e-12)
