"""Fitted Q evaluation on features: ridge regression after ridge regression, each on the targets of the last.

    q_{k+1} = argmin_q E[(q(s,a) − (1 − γ) r − γ m v̄_k(s′))²] + λ ‖θ‖²,      v̄_k = E_π[q_k] within what rewards allow

(Le, Voloshin & Yue, 2019.) Without the bound the iteration may diverge: regression and bootstrapping pull against each
other away from the data. It needs π but not μ, and estimates the whole of J.

Where the bound is not met, the limit is the solution of a linear system, that of LSTD-Q; where it is met, a constant
takes the place of v. So a few solutions, each with the rows at the bound that the last one found, come close to the
limit, and the iteration itself goes the rest of the way. Where no value meets its bound, the result is LSTD-Q's.
"""

from dataclasses import dataclass

import jax
import numpy as np

from ..problem import Problem
from .base import Estimator, Fit
from .pair_features import LinearProblem, bounds, solve

CONVERGED = 1e-5  # of the range of rewards
MAX_SOLUTIONS = 8


@dataclass(frozen=True)
class FittedQ(Estimator):
    """On `num_features` Fourier features with penalty `ridge`, until nothing moves."""

    num_features: int = 200
    ridge: float = 1e-3
    max_iterations: int = 2_000

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        linear = LinearProblem.of(problem, self.num_features, key)
        low, high = bounds(problem)
        num_rows, penalty = len(linear.logged), linear.penalty(self.ridge)
        reward = (1 - problem.discount) * problem.dataset.reward
        passed_on = problem.discount * ~problem.dataset.terminated

        gram = linear.logged.T @ linear.logged / num_rows + penalty
        carried = passed_on[:, None] * linear.after
        cross = linear.logged.T @ carried / num_rows

        at_bound, bounded = np.zeros(num_rows, bool), np.zeros(num_rows)
        for _ in range(MAX_SOLUTIONS):
            replaced = linear.logged[at_bound].T @ carried[at_bound] / num_rows
            right = linear.logged.T @ (reward + passed_on * np.where(at_bound, bounded, 0.0)) / num_rows
            after = linear.after @ solve(gram - cross + replaced, right)
            before, at_bound = at_bound, (after <= low) | (after >= high)
            after = bounded = np.clip(after, low, high)
            if (at_bound == before).all():
                break

        from_targets = solve(gram, linear.logged.T / num_rows)
        iteration, change = 0, np.inf
        while change > CONVERGED * (high - low) and iteration < self.max_iterations:
            theta = from_targets @ (reward + passed_on * after)
            last, after = after, np.clip(linear.after @ theta, low, high)
            iteration, change = iteration + 1, float(np.abs(after - last).max())
        critic = linear.critic(theta, low, high)
        return Fit(
            float(critic.v(problem.start_observation).mean()),
            critic=critic,
            diagnostics={"iterations": float(iteration)},
        )
