"""Fitted Q evaluation: the closed form is the limit of the iteration."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from average_dice.estimators import FittedQ
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.testing.exact_mdps import truncated

KEY = jax.random.key(0)


def test_fitted_q_is_the_limit_of_its_iteration():
    """From zero, regression after regression on targets within the bounds, on a log where the bounds are met."""
    mdp = replace(truncated(), reward=np.where(np.arange(10).reshape(5, 2) == 3, 1.0, 0.0))
    problem = mdp.problem(200, seed=0)
    data, (low, high) = problem.dataset, (0.0, 1.0)
    linear = LoggedStateActions.of(problem, 20, KEY)
    after = np.zeros(data.num_transitions)
    inverse = np.linalg.inv(linear.logged.T @ linear.logged / len(after) + linear.penalty(0.3))
    for _ in range(1_000):
        targets = 0.05 * data.reward + 0.95 * ~data.terminated * after
        theta = inverse @ linear.logged.T @ targets / len(after)
        after = np.clip(linear.after @ theta, low, high)
    expected = np.clip(linear.start @ theta, low, high).mean()
    assert FittedQ(20, 0.3).fit(problem, key=KEY).value == pytest.approx(expected, abs=1e-4)
