"""Fitted Q evaluation on features: ridge regression after ridge regression, each on the targets of the last.

    q_{k+1} = argmin_q E[(q(s,a) − (1 − γ) r − γ m v̄_k(s′))²] + λ ‖θ‖²,      v̄_k = E_π[q_k] within what rewards allow

(Le, Voloshin & Yue, 2019.) Without the bound the iteration may diverge: regression and bootstrapping pull against each
other away from the data. It needs π but not μ, and estimates the whole of J.

Where the bound is not met, the limit is the solution of a linear system, that of LSTD-Q; where it is met, a constant
takes the place of v. A solution of these bounded equations is a fixed point of the iteration. Where they do not settle,
the iteration goes on from where they came to. Where no value meets its bound, the result is LSTD-Q's.

The bounds are those of the logged rewards, and 0 if an episode of the log terminated: a policy that would terminate
where the log never does is evaluated as if it went on.
"""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.estimators._shared.bounded_td import BoundedTD
from average_dice.estimators._shared.linear_critic import CriticFeatures
from average_dice.estimators.base import ClosedForm, Fit, Refit
from average_dice.models.linear_systems import LinearSystem
from average_dice.problem import Problem
from average_dice.resampling import Draw, RowSums

CONVERGED = 1e-5  # of the range of rewards; times 1 − γ, since as many changes of that size may follow as 1 / (1 − γ)


@dataclass(frozen=True)
class FittedQ(ClosedForm):
    """On `num_features` Fourier features with penalty `ridge`, until nothing moves."""

    revision = 2

    num_features: int = 200
    ridge: float = 1e-3
    max_iterations: int = 2_000

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        linear = CriticFeatures.of(problem, self.num_features, key)
        equations = BoundedTD.of(problem, linear)
        gram = RowSums(problem, linear.logged, linear.logged)
        low, high = equations.low, equations.high

        def refit(draw: Draw) -> Fit:
            solution = equations.solve([self.ridge], draw)[0]
            if not solution.unsettled.size:
                return linear.fit_of_values(solution.theta, low, high, draw, iterations=0.0)
            share = draw.counts[problem.episode_index] / draw.num_rows
            system = LinearSystem(gram.mean(draw) + linear.penalty(self.ridge))
            after, iteration, change = np.clip(solution.after, low, high), 0, np.inf
            small = CONVERGED * (high - low) * (1 - problem.discount)
            while change > small and iteration < self.max_iterations:
                theta = system.solve((share * (equations.reward + equations.passed_on * after)) @ linear.logged)
                last, after = after, np.clip(linear.after @ theta, low, high)
                iteration, change = iteration + 1, float(np.abs(after - last).max())
            return linear.fit_of_values(theta, low, high, draw, iterations=float(iteration))

        return refit
