"""The discounted return of the behaviour policy: what the log earned, uncorrected, and hard to beat."""

from dataclasses import dataclass

import jax
import numpy as np

from ..labels import log_uncensored
from ..problem import Problem
from .base import Estimator, Fit
from .weighting import NOTHING_BEYOND, is_cut


@dataclass(frozen=True)
class BehaviourReturn(Estimator):
    """Ĵ = (1 − γ) · the mean over episodes of Σ γᵗ r_t / c_t; nothing stands for what lies beyond the last cut.

    c_t is the share of episodes not yet truncated at step t: 1 where all are truncated at one length.
    """

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        data, discount = problem.dataset, problem.discount
        discounted = float(np.sum(discount**data.step * np.exp(-log_uncensored(problem)) * data.reward))
        notes = ("the behaviour policy's, not the target's", *((NOTHING_BEYOND,) if is_cut(problem) else ()))
        return Fit((1 - discount) * discounted / data.num_episodes, notes=notes)
