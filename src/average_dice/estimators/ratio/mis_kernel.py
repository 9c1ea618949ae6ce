"""Marginalised importance sampling with a kernel loss (Liu, Li, Tang & Zhou, 2018): the ratio of states.

For the true ratio w the flow equation holds for every test function f:

    L(w, f) = E_D[w(s) (f(s) − γ m ρ f(s′))] − (1 − γ) E[f(s₀)] = 0

The loss is max_f L(w, f)² over the unit ball of a reproducing kernel Hilbert space. With w and f on Fourier features of
the kernel it is the square of a vector that is linear in the coefficients of w: least squares, in closed form. ρ is
divided by its mean over the log, as for COP-TD.
"""

from dataclasses import dataclass

import jax

from average_dice.estimators._shared.kernel_loss import smallest_moments
from average_dice.estimators._shared.state_flow import StateFlow
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import ValueRule, flow_normalised
from average_dice.problem import Problem
from average_dice.resampling import Resample


@dataclass(frozen=True)
class KernelMIS(Estimator):
    """Marginalised importance sampling with a kernel loss: the ratio of states, in closed form.

    w and f on `num_features` Fourier features of the state, of the median-heuristic kernel; `ridge` penalises w.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    revision = 2

    num_features: int = 300
    ridge: float = 1e-6
    value: ValueRule = flow_normalised

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        flow = StateFlow.of(problem, self.num_features, key)
        penalty = flow.states.penalty(self.ridge)

        def solve_for(resample: Resample) -> Fit:
            return flow.fit(resample, smallest_moments(*flow.equations(resample), penalty), self.value)

        return PreparedClosedForm(problem, solve_for)
