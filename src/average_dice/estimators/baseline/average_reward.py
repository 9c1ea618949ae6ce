"""The average reward of the log: what μ earns per step, undiscounted and uncorrected.

Ĵ = mean of r over all rows

Where episodes terminate, the value counts zeros after the termination, and this mean does not: it is on another scale.
With a discount of 0 the value is the first reward alone. In a log of one-step episodes this mean is the value of μ.
"""

from dataclasses import dataclass

import jax

from average_dice.errors import NotApplicable
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.notes import Note, NoteCode
from average_dice.problem import Estimand, Problem
from average_dice.resampling import Resample

OF_BEHAVIOUR = Note(NoteCode.BEHAVIOUR_VALUE, "the value of the behaviour policy, not of the target policy")
NOT_OF_TARGET = Note(NoteCode.BEHAVIOUR_VALUE, "of the behaviour policy, not of the target policy")
UNDISCOUNTED = Note(NoteCode.BEHAVIOUR_VALUE, "what the behaviour policy earns per step, without the discount")
PER_LOGGED_STEP = Note(NoteCode.OTHER_SCALE, "a reward per logged step, not on the scale of the value")
ALL_STEPS = Note(NoteCode.OTHER_SCALE, "the mean reward of all logged steps, not of the first")


@dataclass(frozen=True)
class AverageReward(Estimator):
    """The mean reward of the log: what μ earns per step, undiscounted."""

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        if problem.estimand is Estimand.TOTAL:
            raise NotApplicable("the value is a total, and the average reward is a mean")
        return PreparedClosedForm(problem, _solve)


def _solve(resample: Resample) -> Fit:
    data = resample.problem.dataset
    off_scale = _off_scale(resample.problem)
    return Fit(
        float(data.reward.mean()),
        episode_values=(lambda: data.reward) if data.is_one_step else None,
        notes=(OF_BEHAVIOUR if data.is_one_step else UNDISCOUNTED,)
        if off_scale is None
        else (NOT_OF_TARGET, off_scale),
    )


def _off_scale(problem: Problem) -> Note | None:
    """Why the mean reward must not be compared with values; None where it may."""
    if problem.estimand is Estimand.ONE_STEP:
        return None if problem.dataset.is_one_step else ALL_STEPS
    return PER_LOGGED_STEP if problem.dataset.terminated.any() else None
