"""ETD(0), linear: temporal differences weighted by emphasis, so that off-policy data cannot make them diverge.

    F_t = γ ρ_{t−1} F_{t−1} + 1,      E[F ρ φ(s) (φ(s) − γ m φ(s′))ᵀ] θ = (1 − γ) E[F ρ φ(s) r]

the fixed point of the updates of Sutton, Mahmood & White (2016), solved. It learns the value of states, needs π and
μ at the logged actions alone, and estimates the whole of J.
"""

from dataclasses import dataclass

import jax
import numpy as np

from ..errors import NotApplicable
from ..problem import Problem
from .base import Estimator, Fit
from .pair_features import bounds, solve
from .state_features import StateFeatures
from .weighting import NO_OVERLAP, Rows


@dataclass(frozen=True)
class EmphaticTD(Estimator):
    """On `num_features` Fourier features of the state with penalty `ridge`."""

    num_features: int = 300
    ridge: float = 1e-3

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        data = problem.dataset
        log_weight = log_emphasis(problem) + problem.log_ratio
        if not np.isfinite(log_weight).any():
            raise NotApplicable(NO_OVERLAP)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.mean()
        states = StateFeatures.of(problem, self.num_features, key)
        change = states.logged - problem.discount * states.after
        left = (weight[:, None] * states.logged).T @ change / len(weight) + states.penalty(self.ridge)
        right = states.logged.T @ (weight * data.reward) * (1 - problem.discount) / len(weight)
        theta = solve(left, right)
        if not np.isfinite(theta).all():
            raise NotApplicable("its linear system has no finite solution")
        return Fit(float(np.clip(states.start @ theta, *bounds(problem)).mean()))


def log_emphasis(problem: Problem) -> Rows:
    """log F_t, of every row."""
    emphasis = np.zeros(problem.dataset.num_transitions)
    arriving = np.log(problem.discount) + problem.log_ratio
    for start, length in zip(problem.dataset.starts, problem.dataset.lengths, strict=True):
        for row in range(start + 1, start + length):
            emphasis[row] = np.logaddexp(0.0, arriving[row - 1] + emphasis[row - 1])
    return emphasis
