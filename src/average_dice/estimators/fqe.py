"""Fitted Q evaluation on features: ridge regression after ridge regression, each on the targets of the last.

    q_{k+1} = argmin_q E[(q(s,a) − (1 − γ) r − γ m v̄_k(s′))²] + λ ‖θ‖²,      v̄_k = E_π[q_k] within what rewards allow

(Le, Voloshin & Yue, 2019.) Without the bound the iteration may diverge: regression and bootstrapping pull against each
other away from the data. It needs π but not μ, and estimates the whole of J.
"""

from dataclasses import dataclass

import jax
import numpy as np

from ..problem import Problem
from .base import Estimator, Fit
from .lstd_q import fixed_point
from .pair_features import LinearProblem, bounds, solve

CONVERGED = 1e-6  # of the range of rewards


@dataclass(frozen=True)
class FittedQ(Estimator):
    """On `num_features` Fourier features with penalty `ridge`, from the fixed point of LSTD-Q until nothing moves."""

    num_features: int = 300
    ridge: float = 1e-3
    max_iterations: int = 2_000

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        linear = LinearProblem.of(problem, self.num_features, key)
        low, high = bounds(problem)
        num_rows = len(linear.logged)
        gram = linear.logged.T @ linear.logged / num_rows + linear.penalty(self.ridge)
        from_targets = solve(gram, linear.logged.T / num_rows)
        reward = (1 - problem.discount) * problem.dataset.reward
        alive = ~problem.dataset.terminated
        theta = fixed_point(linear, problem, self.ridge)
        after = np.clip(np.nan_to_num(linear.after @ theta), low, high)
        iteration = 0
        while iteration < self.max_iterations:
            iteration += 1
            theta = from_targets @ (reward + problem.discount * alive * after)
            before, after = after, np.clip(linear.after @ theta, low, high)
            if np.abs(after - before).max() <= CONVERGED * (high - low):
                break
        critic = linear.critic(theta, low, high)
        return Fit(
            float(critic.v(problem.start_observation).mean()),
            critic=critic,
            diagnostics={"iterations": float(iteration)},
        )
