"""Importance sampling: rewards weighted by products of ratios, of whole episodes or up to each decision.

    IS       (1 − γ) (1/K) Σ_i ρ_{0:T−1} Σ_t γᵗ r_t
    PDIS     (1 − γ) (1/K) Σ_i Σ_t γᵗ ρ_{0:t} r_t
    WIS      IS with ρ_{0:T−1} divided by its mean over episodes
    WPDIS    PDIS with ρ_{0:t} divided by its mean over episodes at every t; terminated ones keep their last product

(Precup, Sutton & Singh, 2000.) If episodes are truncated at different lengths, the rows of step t are divided by the
share of episodes not yet truncated there, up to the last truncation. Rewards after it are ignored. If π = μ, all four
are the discounted return of the log.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.ratio_fits import (
    IGNORED,
    NO_EPISODE,
    NO_OVERLAP,
    OVERFLOW,
    added_by_episode,
    weight_diagnostics,
)
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import rescaled
from average_dice.labels import over_mean_at_step
from average_dice.problem import LOWEST_LOG_PRODUCT, Problem, Rows
from average_dice.resampling import Resample

LogWeights = Callable[[Problem], Rows]  # divided by the share of episodes not yet truncated


def by_episode(problem: Problem) -> Rows:
    """log ρ_{0:T−1} of the row's episode."""
    return problem.final_log_product[problem.episode_index] - problem.log_uncensored


def by_decision(problem: Problem) -> Rows:
    """log ρ_{0:t}, the action at t included."""
    return problem.log_product + problem.log_ratio - problem.log_uncensored


def by_episode_normalised(problem: Problem) -> Rows:
    """log of ρ_{0:T−1} over its mean over episodes."""
    highest = max(float(problem.final_log_product.max()), LOWEST_LOG_PRODUCT)
    mean = float(np.mean(np.exp(problem.final_log_product - highest)))
    if mean == 0:
        raise NotApplicable(NO_EPISODE)
    return by_episode(problem) - highest - np.log(mean)


def by_decision_normalised(problem: Problem) -> Rows:
    """log of ρ_{0:t} over its mean over episodes at t."""
    return over_mean_at_step(problem, problem.log_product + problem.log_ratio) - problem.log_uncensored


@dataclass(frozen=True)
class ImportanceSampling(Estimator):
    """Ĵ = (1 − γ) (1/K) Σ_rows γᵗ W r, with log W given by `log_weights`; the constructors make the four."""

    log_weights: LogWeights

    @staticmethod
    def plain() -> "ImportanceSampling":
        """IS: every episode weighted by its product of importance ratios."""
        return ImportanceSampling(by_episode)

    @staticmethod
    def per_decision() -> "ImportanceSampling":
        """Per-decision IS: every reward weighted by the product of importance ratios up to it."""
        return ImportanceSampling(by_decision)

    @staticmethod
    def weighted() -> "ImportanceSampling":
        """Weighted IS: IS with the weights divided by their mean over episodes."""
        return ImportanceSampling(by_episode_normalised)

    @staticmethod
    def weighted_per_decision() -> "ImportanceSampling":
        """Weighted per-decision IS: PDIS with the weights divided by their mean over episodes at each step."""
        return ImportanceSampling(by_decision_normalised)

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        return PreparedClosedForm(problem, self._solve)

    def _solve(self, resample: Resample) -> Fit:
        problem, data = resample.problem, resample.problem.dataset
        log_weights = np.log(problem.scale) + problem.log_discount + self.log_weights(problem)
        highest = float(log_weights.max())
        if highest == -np.inf:
            raise NotApplicable(NO_EPISODE if self.log_weights is by_episode else NO_OVERLAP)
        relative = np.exp(log_weights - highest)
        value = rescaled(float(np.mean(relative * data.reward)), highest)
        if not np.isfinite(value):
            raise NotApplicable(OVERFLOW)
        weights = rescaled(relative, highest)
        independent = self.log_weights in (by_episode, by_decision)  # normalised by a mean, episodes are dependent
        return Fit(
            value,
            weights=weights,
            episode_values=(lambda: added_by_episode(problem, weights * data.reward)) if independent else None,
            diagnostics={**weight_diagnostics(relative), "effective_episodes": problem.effective_episodes},
            notes=(IGNORED,) if problem.misses_rewards else (),
        )
