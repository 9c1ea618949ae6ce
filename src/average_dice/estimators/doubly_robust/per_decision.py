"""Doubly robust estimates per decision: a critic, corrected by TD errors weighted by products of ratios.

    plain         E[v(s₀)] + (1/K) Σ_rows γᵗ ρ_{0:t} δ_t / c_t            δ = (1 − γ) r + γ m v(s′) − q(s, a)
    weighted      the same with ρ_{0:t} over its mean over episodes at every t

(Jiang & Li, 2016; Thomas & Brunskill, 2016.) If either the critic or the weights are right, so is the result, up to the
last truncation. c_t is the share of episodes not yet truncated at step t. After the last truncation only the critic
counts.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.ratio_fits import NO_OVERLAP, OVERFLOW, weight_diagnostics
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm, prepared_once
from average_dice.estimators.doubly_robust._td_errors import critic_of, cross_fitted, logged_values, td_errors
from average_dice.estimators.importance.importance_sampling import LogWeights, by_decision, by_decision_normalised
from average_dice.estimators.results import Fit
from average_dice.estimators.value.fitted_q import FittedQ
from average_dice.estimators.value_rules import rescaled
from average_dice.problem import Episodes, Problem
from average_dice.resampling import Resample


@dataclass(frozen=True)
class DoublyRobust(Estimator):
    """Doubly robust: a critic, corrected by TD errors weighted by products of importance ratios.

    `critic` is any method that learns q(s, a).
    """

    log_weights: LogWeights = by_decision
    critic: Estimator = FittedQ()

    @staticmethod
    def weighted() -> "DoublyRobust":
        """Weighted doubly robust: DR with the products divided by their mean over episodes at each step."""
        return DoublyRobust(by_decision_normalised)

    @property
    def trains(self) -> bool:
        return self.critic.trains

    def with_training(self, *, num_steps: int, num_checkpoints: int, **options: float) -> "Estimator":
        trained = self.critic.with_training(num_steps=num_steps, num_checkpoints=num_checkpoints, **options)
        return replace(self, critic=trained)

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        critic = prepared_once(self.critic, problem, key=key)

        def solve_for(resample: Resample, of_critic: Fit) -> Fit:
            resampled, data = resample.problem, resample.problem.dataset
            log_weights = self.log_weights(resampled) + resampled.log_discount
            values = logged_values(resampled, critic_of(of_critic, self.critic))
            highest = float(log_weights.max())
            if highest == -np.inf:
                raise NotApplicable(NO_OVERLAP)
            relative = np.exp(log_weights - highest)
            correction = float(np.sum(relative * td_errors(resampled, values))) / data.num_episodes
            direct = float(values.start.mean())
            value = direct + rescaled(correction, highest)
            if not np.isfinite(value):
                raise NotApplicable(OVERFLOW)
            # After a truncation the critic's own error counts, too, and only the bootstrap includes it.
            independent = self.log_weights is by_decision and not problem.is_truncated and resample.chosen is None
            return Fit(
                value,
                critic=of_critic.critic,
                episode_values=(lambda: self._by_episode(problem, critic)) if independent else None,
                diagnostics={**weight_diagnostics(relative), "direct": direct, "correction": value - direct},
            )

        return PreparedClosedForm(problem, solve_for, (critic,))

    def _by_episode(self, problem: Problem, critic: Prepared) -> Episodes:
        """ψ = v(s₀) + Σ_t γᵗ ρ_{0:t} δ_t of each episode."""
        data = problem.dataset
        weights = np.exp(by_decision(problem) + problem.log_discount)
        return cross_fitted(problem, critic, self.critic, weights * (data.num_transitions / data.num_episodes))
