"""The discounted return of the behaviour policy, without correction.

    Ĵ = (1 − γ) · mean over episodes of Σ γᵗ r_t / c_t

c_t is the share of episodes not yet truncated at step t: 1 if all are truncated at one length. Rewards after the
last truncation are ignored. Where γ = 1, the factor 1 − γ is 1.
"""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.baseline.average_reward import NOT_OF_TARGET, OF_BEHAVIOUR
from average_dice.estimators.results import Fit
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem
from average_dice.resampling import Resample

TO_TRUNCATION = Note(NoteCode.TRUNCATION_IGNORED, "rewards up to truncation only")


@dataclass(frozen=True)
class BehaviourReturn(Estimator):
    """The discounted return of the logged episodes: what μ earns."""

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        return PreparedClosedForm(problem, _solve)


def _solve(resample: Resample) -> Fit:
    problem, discount = resample.problem, resample.problem.discount
    data = problem.dataset
    uncensored = np.exp(-problem.log_uncensored)
    discounted = float(np.sum(discount**data.step * uncensored * data.reward))
    return Fit(
        problem.normaliser * discounted / data.num_episodes,
        episode_values=lambda: problem.by_episode(problem.normaliser * discount**data.step * uncensored * data.reward),
        notes=(NOT_OF_TARGET, TO_TRUNCATION) if problem.misses_rewards else (OF_BEHAVIOUR,),
    )
