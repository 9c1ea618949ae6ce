"""Minimax weight learning with a kernel loss (Uehara, Huang & Jiang, 2020): the ratio of states and actions.

For the true ratio ζ the flow equation holds for every test function f of state and action:

    L(ζ, f) = E_D[ζ(s,a) (f(s,a) − γ m f(s′,π))] − (1 − γ) E[f(s₀,π)] = 0,      f(s,π) = E_{a∼π}[f(s,a)]

The loss is max_f L(ζ, f)² over the unit ball of a reproducing kernel Hilbert space, in closed form on Fourier features.
It needs π but not μ.
"""

from dataclasses import dataclass

import jax

from average_dice.estimators._shared.kernel_loss import smallest_moments
from average_dice.estimators._shared.ratio_fits import fit_of_pair_ratio
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import PairRule, flow_normalised_pairs
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.problem import Problem
from average_dice.resampling import Resample, RowSums


@dataclass(frozen=True)
class KernelMWL(Estimator):
    """Minimax weight learning with a kernel loss: the ratio of states and actions, in closed form.

    ζ and f on `num_features` Fourier features of pairs, of the median-heuristic kernel; `ridge` penalises ζ.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    revision = 2

    num_features: int = 200
    ridge: float = 1e-6
    value: PairRule = flow_normalised_pairs

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        pairs = LoggedStateActions.of(problem, self.num_features, key)
        tests = pairs.logged - problem.discount * pairs.after
        moments = RowSums(problem, tests, pairs.logged)

        def solve_for(resample: Resample) -> Fit:
            right = problem.normaliser * resample.mean_over_episodes(pairs.start)
            theta = smallest_moments(moments.mean(resample), right, pairs.penalty(self.ridge))
            return fit_of_pair_ratio(
                resample.problem,
                resample.of_rows(pairs.logged @ theta),
                lambda observations, actions: pairs.at(observations, actions) @ theta,
                self.value,
            )

        return PreparedClosedForm(problem, solve_for)
