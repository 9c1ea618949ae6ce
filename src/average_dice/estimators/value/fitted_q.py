"""Fitted Q evaluation on features: repeated ridge regression, each on targets from the one before.

    q_{k+1} = argmin_q E[(q(s,a) − (1 − γ) r − γ m v̄_k(s′))²] + λ ‖θ‖²,      v̄_k = E_π[q_k], clipped to the bounds

(Le, Voloshin & Yue, 2019.) Without the bounds the iteration may diverge, because bootstrapped values are extrapolated.
It needs π but not μ, and estimates all of J.

If no value reaches a bound, the limit is the solution of a linear system, that of LSTD-Q. If some do, the bound
replaces v there, and the limit solves the bounded equations. If these do not converge, the iteration starts from their
last solution.

The bounds are those of the logged rewards, and 0 if an episode of the log terminated. If the log has no termination, a
policy that would terminate is evaluated as if it continued.
"""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.estimators._shared.bounded_td import BoundedTD
from average_dice.estimators._shared.linear_critic import fit_of_critic
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.linear_systems import LinearSystem
from average_dice.problem import Problem
from average_dice.resampling import Resample, RowSums

# Relative to the range of values; times 1 − γ, since about 1 / (1 − γ) such changes may follow (at γ = 1, one a step).
CONVERGED = 1e-5


@dataclass(frozen=True)
class FittedQ(Estimator):
    """Fitted Q evaluation: repeated regression, with targets kept within what rewards allow.

    On `num_features` Fourier features with penalty `ridge`, until it converges or for `max_iterations`.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    revision = 2

    num_features: int = 200
    ridge: float = 1e-3
    max_iterations: int = 2_000  # limits the cost if the values do not converge

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        features = LoggedStateActions.of(problem, self.num_features, key)
        equations = BoundedTD.of(problem, features)
        gram = RowSums(problem, features.logged, features.logged)
        low, high = problem.value_bounds
        longest = int(problem.dataset.lengths.max())

        def solve_for(resample: Resample) -> Fit:
            ((solution,),) = equations.solve([self.ridge], [resample])
            if not solution.unsettled.size:
                return fit_of_critic(features, solution.theta, (low, high), resample, iterations=0.0)
            share = resample.counts[problem.episode_index] / resample.num_rows
            system = LinearSystem(gram.mean(resample) + features.penalty(self.ridge))
            after, iteration, change = np.clip(solution.after, low, high), 0, np.inf
            small = CONVERGED * (high - low) * (problem.normaliser if problem.discount < 1 else 1 / longest)
            while change > small and iteration < self.max_iterations:
                theta = system.solve((share * (equations.reward + equations.continues * after)) @ features.logged)
                last, after = after, np.clip(features.after @ theta, low, high)
                iteration, change = iteration + 1, float(np.abs(after - last).max())
            return fit_of_critic(features, theta, (low, high), resample, iterations=float(iteration))

        return PreparedClosedForm(problem, solve_for)
