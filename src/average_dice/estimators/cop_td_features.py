"""COP-TD on features: the flow of states through the log, solved at once.

    E_D[φ(s) w(s)] = γ E_D[m ρ φ(s′) w(s)] + (1 − γ) E[φ(s₀)],        w = φᵀθ

the discounted form (Gelada & Bellemare, 2019) of COP-TD (Hallak & Mannor, 2017). It holds on a truncated log, too: the
state after the cut is an arrival like any other. (As a regression of w(s_t) on γρ_{t−1}w(s_{t−1}) over the logged
states, a form often seen, it would treat the cut as termination.)
"""

from dataclasses import dataclass

import jax

from ..problem import Problem
from .base import Estimator, Fit
from .pair_features import solve
from .state_features import StateFeatures
from .weighting import ValueRule, fit_of_state_ratio, flow_normalised


@dataclass(frozen=True)
class COPTDFeatures(Estimator):
    """On `num_features` Fourier features of the state with penalty `ridge`."""

    num_features: int = 300
    ridge: float = 1e-3
    value: ValueRule = flow_normalised

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        states = StateFeatures.of(problem, self.num_features, key)
        arrivals = problem.discount * problem.ratio[:, None] * states.after
        left = (states.logged - arrivals).T @ states.logged / len(states.logged)
        right = (1 - problem.discount) * states.start.mean(axis=0)
        theta = solve(left + states.penalty(self.ridge), right)
        return fit_of_state_ratio(problem, states.logged @ theta, lambda rows: states(rows) @ theta, self.value)
