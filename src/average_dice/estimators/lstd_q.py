"""LSTD-Q: the fixed point of off-policy TD on features, solved at once.

    E[φ(s,a) (φ(s,a) − γ m φ(s′,π))ᵀ] θ = (1 − γ) E[φ(s,a) r],       φ(s,π) = E_{a∼π}[φ(s,a)]

(Lagoudakis & Parr, 2003.) It needs π but not μ, and bootstraps beyond the cut: it estimates the whole of J.
"""

from dataclasses import dataclass

import jax

from ..problem import Problem
from .base import Estimator, Fit
from .pair_features import LinearProblem, bounds, solve


@dataclass(frozen=True)
class LSTDQ(Estimator):
    """On `num_features` Fourier features with penalty `ridge`; the values are kept within what rewards allow."""

    num_features: int = 200
    ridge: float = 1e-3

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        linear = LinearProblem.of(problem, self.num_features, key)
        num_rows = len(linear.logged)
        left = linear.logged.T @ (linear.logged - problem.discount * linear.after) / num_rows
        right = linear.logged.T @ problem.dataset.reward * (1 - problem.discount) / num_rows
        theta = solve(left + linear.penalty(self.ridge), right)
        critic = linear.critic(theta, *bounds(problem))
        return Fit(float(critic.v(problem.start_observation).mean()), critic=critic)
