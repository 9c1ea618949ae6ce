"""COP-TD on features: the flow of states through the log, in closed form.

    E_D[φ(s) w(s)] = γ E_D[m ρ φ(s′) w(s)] / E_D[ρ] + (1 − γ) E[φ(s₀)],        w = φᵀθ

the discounted form (Gelada & Bellemare, 2019) of COP-TD (Hallak & Mannor, 2017). It holds on a truncated log, too: the
state after a truncation is an arrival like any other. (As a regression of w(s_t) on γρ_{t−1}w(s_{t−1}) over the logged
states, a common form, it would treat truncation as termination.)
"""

from dataclasses import dataclass

import jax

from average_dice.estimators._shared.state_flow import StateFlow
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import ValueRule, flow_normalised
from average_dice.linear_systems import solve
from average_dice.problem import Problem
from average_dice.resampling import Resample


@dataclass(frozen=True)
class COPTDFeatures(Estimator):
    """COP-TD on features: the ratio that balances the flow of states, in closed form.

    On `num_features` Fourier features of the state with penalty `ridge`.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    revision = 2

    num_features: int = 300
    ridge: float = 1e-3
    value: ValueRule = flow_normalised

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        flow = StateFlow.of(problem, self.num_features, key)

        def solve_for(resample: Resample) -> Fit:
            left, right = flow.equations(resample)
            return flow.fit(resample, solve(left + flow.states.penalty(self.ridge), right), self.value)

        return PreparedClosedForm(problem, solve_for)
