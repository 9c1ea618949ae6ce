"""COP-TD on features: the flow of states through the log, solved at once.

    E_D[φ(s) w(s)] = γ E_D[m ρ φ(s′) w(s)] / E_D[ρ] + (1 − γ) E[φ(s₀)],        w = φᵀθ

the discounted form (Gelada & Bellemare, 2019) of COP-TD (Hallak & Mannor, 2017). It holds on a truncated log, too: the
state after the cut is an arrival like any other. E_D[ρ] tends to 1; without it, its noise would make or lose mass at
every step, and at a discount near 1 more than 1 − γ puts in. (As a regression of w(s_t) on γρ_{t−1}w(s_{t−1}) over the
logged states, a form often seen, it would treat the cut as termination.)
"""

from dataclasses import dataclass

import jax

from average_dice.estimators.base import ClosedForm, Fit, Refit
from average_dice.estimators.value_rules import ValueRule, fit_of_state_ratio, flow_normalised
from average_dice.features.logged_states import StateFeatures
from average_dice.models.linear_systems import solve
from average_dice.problem import Problem
from average_dice.resampling import Draw, RowSums


@dataclass(frozen=True)
class COPTDFeatures(ClosedForm):
    """On `num_features` Fourier features of the state with penalty `ridge`."""

    revision = 2

    num_features: int = 300
    ridge: float = 1e-3
    value: ValueRule = flow_normalised

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        states = StateFeatures.of(problem, self.num_features, key)
        gram = RowSums(problem, states.logged, states.logged)
        arrivals = RowSums(problem, problem.discount * problem.ratio[:, None] * states.after, states.logged)

        def refit(draw: Draw) -> Fit:
            right = (1 - problem.discount) * draw.mean_over_episodes(states.start)
            flow = gram.mean(draw) - arrivals.mean(draw) / draw.problem.mean_ratio
            theta = solve(flow + states.penalty(self.ridge), right)
            ratio = draw.of_rows(states.logged @ theta)
            return fit_of_state_ratio(draw.problem, ratio, lambda rows: states(rows) @ theta, self.value)

        return refit
