"""The discounted return of the behaviour policy: what the log earned, uncorrected, and hard to beat."""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.estimators.base import Estimator, Fit
from average_dice.estimators.value_rules import NOTHING_BEYOND, is_truncated
from average_dice.labels import log_uncensored
from average_dice.problem import Problem


@dataclass(frozen=True)
class BehaviourReturn(Estimator):
    """Ĵ = (1 − γ) · the mean over episodes of Σ γᵗ r_t / c_t; nothing stands for what lies beyond the last cut.

    c_t is the share of episodes not yet truncated at step t: 1 where all are truncated at one length.
    """

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        data, discount = problem.dataset, problem.discount
        discounted = float(np.sum(discount**data.step * np.exp(-log_uncensored(problem)) * data.reward))
        notes = ("the behaviour policy's, not the target's", *((NOTHING_BEYOND,) if is_truncated(problem) else ()))
        return Fit((1 - discount) * discounted / data.num_episodes, notes=notes)
