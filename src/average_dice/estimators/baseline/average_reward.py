"""The average reward of the log: what μ earns per step, undiscounted and uncorrected."""

from dataclasses import dataclass

import jax

from average_dice.estimators.base import Estimator, Fit
from average_dice.problem import Problem


@dataclass(frozen=True)
class AverageReward(Estimator):
    """Ĵ = mean of r over all rows."""

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        return Fit(float(problem.dataset.reward.mean()), notes=("the behaviour policy's, not the target's",))
