"""Marginalised importance sampling with a kernel loss (Liu, Li, Tang & Zhou, 2018): the ratio of states.

For the true ratio w the flow of the log balances against every test function f:

    L(w, f) = E_D[w(s) (f(s) − γ m ρ f(s′))] − (1 − γ) E[f(s₀)] = 0

The loss is max_f L(w, f)² over the unit ball of a reproducing kernel Hilbert space. With w and f on Fourier features of
the kernel it is the square of a vector that is linear in the coefficients of w: least squares, solved at once. ρ is
divided by its mean over the log, as for COP-TD.
"""

from dataclasses import dataclass

import jax

from average_dice.estimators._shared.kernel_loss import smallest_moments
from average_dice.estimators.base import ClosedForm, Fit, Refit
from average_dice.estimators.value_rules import ValueRule, fit_of_state_ratio, flow_normalised
from average_dice.features.logged_states import StateFeatures
from average_dice.problem import Problem
from average_dice.resampling import Draw, RowSums


@dataclass(frozen=True)
class KernelMIS(ClosedForm):
    """w and f on `num_features` Fourier features of the state, of the median-heuristic kernel; `ridge` penalises w."""

    revision = 2

    num_features: int = 300
    ridge: float = 1e-6
    value: ValueRule = flow_normalised

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        states = StateFeatures.of(problem, self.num_features, key)
        gram = RowSums(problem, states.logged, states.logged)
        arrivals = RowSums(problem, problem.discount * problem.ratio[:, None] * states.after, states.logged)

        def refit(draw: Draw) -> Fit:
            right = (1 - problem.discount) * draw.mean_over_episodes(states.start)
            moments = gram.mean(draw) - arrivals.mean(draw) / draw.problem.mean_ratio
            theta = smallest_moments(moments, right, states.penalty(self.ridge))
            ratio = draw.of_rows(states.logged @ theta)
            return fit_of_state_ratio(draw.problem, ratio, lambda rows: states(rows) @ theta, self.value)

        return refit
