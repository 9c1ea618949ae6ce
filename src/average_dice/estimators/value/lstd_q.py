"""LSTD-Q: the fixed point of off-policy TD on features, solved at once.

    E[φ(s,a) (φ(s,a) − γ m φ(s′,π))ᵀ] θ = (1 − γ) E[φ(s,a) r],       φ(s,π) = E_{a∼π}[φ(s,a)]

(Lagoudakis & Parr, 2003.) It needs π but not μ, and bootstraps beyond the cut: it estimates the whole of J.
"""

from dataclasses import dataclass

import jax

from average_dice.estimators._shared.linear_critic import CriticFeatures, bounds
from average_dice.estimators.base import ClosedForm, Fit, Refit
from average_dice.models.linear_systems import solve
from average_dice.problem import Problem
from average_dice.resampling import Draw, RowSums


@dataclass(frozen=True)
class LSTDQ(ClosedForm):
    """On `num_features` Fourier features with penalty `ridge`; the values are kept within what rewards allow."""

    revision = 2

    num_features: int = 200
    ridge: float = 1e-3

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        linear = CriticFeatures.of(problem, self.num_features, key)
        differences = RowSums(problem, linear.logged, linear.logged - problem.discount * linear.after)
        rewards = RowSums(problem, linear.logged, (1 - problem.discount) * problem.dataset.reward[:, None])
        low, high = bounds(problem)

        def refit(draw: Draw) -> Fit:
            theta = solve(differences.mean(draw) + linear.penalty(self.ridge), rewards.mean(draw)[:, 0])
            return linear.fit_of_values(theta, low, high, draw)

        return refit
