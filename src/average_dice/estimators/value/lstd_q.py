"""LSTD-Q: the fixed point of off-policy TD on features, in closed form.

    E[φ(s,a) (φ(s,a) − γ m φ(s′,π))ᵀ] θ = (1 − γ) E[φ(s,a) r],       φ(s,π) = E_{a∼π}[φ(s,a)]

(Lagoudakis & Parr, 2003.) It needs π but not μ. It bootstraps after truncation, and so estimates all of J.
"""

from dataclasses import dataclass

import jax

from average_dice.estimators._shared.linear_critic import fit_of_critic
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.linear_systems import solve
from average_dice.problem import Problem
from average_dice.resampling import Resample, RowSums


@dataclass(frozen=True)
class LSTDQ(Estimator):
    """LSTD-Q: the fixed point of off-policy TD for q(s, a), in closed form.

    On `num_features` Fourier features with penalty `ridge`; values are clipped to the bounds of the rewards.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    revision = 2

    num_features: int = 200
    ridge: float = 1e-3

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        features = LoggedStateActions.of(problem, self.num_features, key)
        differences = RowSums(problem, features.logged, features.logged - problem.discount * features.after)
        rewards = RowSums(problem, features.logged, problem.normaliser * problem.dataset.reward[:, None])

        def solve_for(resample: Resample) -> Fit:
            theta = solve(differences.mean(resample) + features.penalty(self.ridge), rewards.mean(resample)[:, 0])
            return fit_of_critic(features, theta, problem.value_bounds, resample)

        return PreparedClosedForm(problem, solve_for)
