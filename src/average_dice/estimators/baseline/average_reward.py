"""The average reward of the log: what μ earns per step, undiscounted and uncorrected.

Ĵ = mean of r over all rows
"""

from dataclasses import dataclass

import jax

from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem
from average_dice.resampling import Resample

OF_BEHAVIOUR = Note(NoteCode.BEHAVIOUR_VALUE, "the value of the behaviour policy, not of the target policy")


@dataclass(frozen=True)
class AverageReward(Estimator):
    """The mean reward of the log: what μ earns per step, undiscounted."""

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        return PreparedClosedForm(problem, _solve)


def _solve(resample: Resample) -> Fit:
    return Fit(float(resample.problem.dataset.reward.mean()), notes=(OF_BEHAVIOUR,))
