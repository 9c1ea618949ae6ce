"""ETD(0), linear: TD errors weighted by emphasis, so that off-policy data cannot make it diverge.

    F_t = γ ρ_{t−1} F_{t−1} + 1,      E[F ρ φ(s) (φ(s) − γ m φ(s′))ᵀ] θ = (1 − γ) E[F ρ φ(s) r]

the fixed point of the updates of Sutton, Mahmood & White (2016), in closed form. It learns the value of states, needs π
and μ at the logged actions only, and estimates all of J.
"""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.linear_critic import NO_SOLUTION
from average_dice.estimators._shared.ratio_fits import NO_OVERLAP
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.features.logged_states import LoggedStates
from average_dice.linear_systems import solve
from average_dice.problem import Problem, Rows, log_power
from average_dice.resampling import Resample, RowSums


@dataclass(frozen=True)
class EmphaticTD(Estimator):
    """Emphatic TD for v(s), in closed form.

    On `num_features` Fourier features of the state with penalty `ridge`.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    num_features: int = 300
    ridge: float = 1e-3

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        log_weight = log_emphasis(problem) + problem.log_ratio
        if not np.isfinite(log_weight).any():
            raise NotApplicable(NO_OVERLAP)
        weight = np.exp(log_weight - log_weight.max())
        states = LoggedStates.of(problem, self.num_features, key)
        change = states.logged - problem.discount * states.after
        weighted = weight[:, None] * states.logged
        differences = RowSums(problem, weighted, change)
        rewards = RowSums(problem, weighted, problem.dataset.reward[:, None])
        low, high = problem.value_bounds

        def solve_for(resample: Resample) -> Fit:
            mean_weight = float(resample.of_rows(weight).mean())
            if mean_weight == 0:
                raise NotApplicable(NO_OVERLAP)
            left = differences.mean(resample) / mean_weight + states.penalty(self.ridge)
            right = problem.normaliser * rewards.mean(resample)[:, 0] / mean_weight
            theta = solve(left, right)
            if not np.isfinite(theta).all():
                raise NotApplicable(NO_SOLUTION)
            return Fit(float(resample.mean_over_episodes(np.clip(states.start @ theta, low, high))))

        return PreparedClosedForm(problem, solve_for)


def log_emphasis(problem: Problem) -> Rows:
    """log F_t, of every row."""
    emphasis = np.zeros(problem.dataset.num_transitions)
    arriving = log_power(problem.discount, 1) + problem.log_ratio
    for start, length in zip(problem.dataset.starts, problem.dataset.lengths, strict=True):
        for row in range(start + 1, start + length):
            emphasis[row] = np.logaddexp(0.0, arriving[row - 1] + emphasis[row - 1])
    return emphasis
