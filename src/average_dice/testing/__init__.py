"""Tests for your own estimator: exact MDPs, and the checks that every estimator must pass.

    from average_dice.testing import check_estimator

    check_estimator(MyEstimator())

raises an `AssertionError` that says which property failed, on which MDP, and by how much. `exact_mdps` has small MDPs
with exact answers for your own tests, `hard_cases` has checks for harder logs, `misleading` has logs that lead to a
wrong estimate. Nothing here needs pytest.
"""

from average_dice.testing.conformance import Case, check_case, check_estimator
from average_dice.testing.exact_mdps import ExactMDP

__all__ = ["Case", "ExactMDP", "check_case", "check_estimator"]
