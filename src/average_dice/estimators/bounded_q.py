"""The fixed point of TD on features, with the next values kept within what rewards allow.

    E[φ (φ − γ m φ′)ᵀ] θ = (1 − γ) E[φ r],      φ = φ(s, a),  φ′ = E_π[φ(s′, a)]

An unbounded solution may lie far outside the rewards. Where v(s′) = φ′ᵀθ meets a bound, the bound takes its place and
the row no longer bootstraps: a few solutions, each with the rows at the bound that the last one found. They may go
round in circles (with values near a bound and a discount near 1); then their mean is the best that is to be had. The
sums over rows are formed once and serve every ridge.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..problem import Problem
from .pair_features import LinearProblem, Rows, bounds, solve

MAX_SOLUTIONS = 8


@dataclass(frozen=True, eq=False)
class Solution:
    """θ, or the mean of the last few if they did not settle; of the last, its system and v(s′) within the bounds."""

    theta: Float[np.ndarray, " feature"]
    system: np.ndarray
    after: Rows


@dataclass(frozen=True, eq=False)
class BoundedEquations:
    """The equations of a log; `solve` them for a ridge."""

    linear: LinearProblem
    low: float
    high: float
    reward: Rows  # (1 − γ) r
    passed_on: Rows  # γ m
    gram: np.ndarray  # E[φφᵀ]
    cross: np.ndarray  # E[φ γ m φ′ᵀ]

    @staticmethod
    def of(problem: Problem, linear: LinearProblem) -> "BoundedEquations":
        low, high = bounds(problem)
        passed_on = problem.discount * ~problem.dataset.terminated
        num_rows = len(linear.logged)
        return BoundedEquations(
            linear,
            low,
            high,
            (1 - problem.discount) * problem.dataset.reward,
            passed_on,
            linear.logged.T @ linear.logged / num_rows,
            (linear.logged * (passed_on / num_rows)[:, None]).T @ linear.after,
        )

    def solve(self, ridge: float) -> Solution:
        """With penalty `ridge` on all but the constants."""
        logged, num_rows = self.linear.logged, len(self.reward)
        free = self.gram + self.linear.penalty(ridge) - self.cross
        at_bound, after = np.zeros(num_rows, bool), np.zeros(num_rows)
        thetas = []
        for _ in range(MAX_SOLUTIONS):
            held = (logged[at_bound] * (self.passed_on[at_bound] / num_rows)[:, None]).T @ self.linear.after[at_bound]
            right = logged.T @ (self.reward + self.passed_on * np.where(at_bound, after, 0.0)) / num_rows
            system = free + held
            thetas.append(solve(system, right))
            values = self.linear.after @ thetas[-1]
            before, at_bound = at_bound, (values <= self.low) | (values >= self.high)
            after = np.clip(values, self.low, self.high)
            if (at_bound == before).all():
                return Solution(thetas[-1], system, after)
        return Solution(np.mean(thetas[-MAX_SOLUTIONS // 2 :], axis=0), system, after)
