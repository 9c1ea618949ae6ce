"""Linear systems: solved both ways, and never without an answer."""

import numpy as np
import pytest

from average_dice.errors import NotApplicable
from average_dice.linear_systems import LinearSystem, solve


def test_a_system_is_solved_both_ways():
    generator = np.random.default_rng(0)
    matrix, right = generator.standard_normal((6, 6)), generator.standard_normal(6)
    np.testing.assert_allclose(matrix @ LinearSystem(matrix).solve(right), right, rtol=1e-9)
    np.testing.assert_allclose(matrix.T @ LinearSystem(matrix).solve_transposed(right), right, rtol=1e-9)


def test_a_singular_system_has_its_smallest_solution():
    """An action that no episode of a draw takes leaves rows and columns of zeros."""
    matrix = np.zeros((3, 3))
    matrix[:2, :2] = [[2.0, 1.0], [0.0, 1.0]]
    np.testing.assert_allclose(LinearSystem(matrix).solve(np.array([4.0, 2.0, 0.0])), [1, 2, 0], atol=1e-12)
    np.testing.assert_allclose(LinearSystem(matrix).solve_transposed(np.array([2.0, 2.0, 0.0])), [1, 1, 0], atol=1e-12)


def test_a_matrix_of_zeros_has_the_solution_zero_for_zeros():
    np.testing.assert_array_equal(solve(np.zeros((3, 3)), np.zeros(3)), np.zeros(3))


def test_a_matrix_that_is_not_finite_is_said():
    with pytest.raises(NotApplicable, match="no finite solution"):
        LinearSystem(np.array([[1.0, np.nan], [0.0, 1.0]]))
