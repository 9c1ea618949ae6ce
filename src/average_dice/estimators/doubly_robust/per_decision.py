"""Doubly robust estimates: a critic, corrected by weighted temporal differences.

    per decision      E[v(s₀)] + (1/K) Σ_rows γᵗ ρ_{0:t} δ_t / c_t
    weighted          the same with ρ_{0:t} over its mean over episodes at every t
    marginalised      E[v(s₀)] + mean of w ρ δ / (1 − γ)            δ = (1 − γ) r + γ m v(s′) − q(s, a)

(Jiang & Li, 2016; Thomas & Brunskill, 2016; Kallus & Uehara, 2020.) If either the critic or the weights are right, so
is the result, up to the last truncation. c_t is the share of episodes not yet truncated at step t: where some are
truncated earlier than others, those that go on stand for them. After the last truncation the critic stands alone.
"""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators.base import ClosedForm, Critic, Estimator, Fit, LoggedValues, Refit
from average_dice.estimators.importance.importance_sampling import LogWeights, by_decision, by_decision_normalised
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.value.fitted_q import FittedQ
from average_dice.estimators.value_rules import NO_OVERLAP, Rows, rescaled, weight_diagnostics
from average_dice.problem import Problem
from average_dice.resampling import Draw


def logged_values(problem: Problem, critic: Critic) -> LoggedValues:
    """The critic on the rows of the log."""
    data = problem.dataset
    return critic.logged or LoggedValues(
        critic.q(data.observation, data.action),
        np.where(data.terminated, 0.0, critic.v(data.next_observation)),
        critic.v(problem.start_observation),
    )


def td_error(problem: Problem, values: LoggedValues) -> Rows:
    """δ = (1 − γ) r + γ m v(s′) − q(s, a), of every row."""
    return (1 - problem.discount) * problem.dataset.reward + problem.discount * values.after - values.q


def critic_of(fit: Fit, method: Estimator) -> Critic:
    """What the method says about states and actions."""
    if fit.critic is None:
        raise SettingError(f"{type(method).__name__} learns no values of states and actions: use FittedQ, for example.")
    return fit.critic


@dataclass(frozen=True)
class DoublyRobust(ClosedForm):
    """Products of ratios by decision, with any critic."""

    log_weights: LogWeights = by_decision
    critic: Estimator = FittedQ()

    @staticmethod
    def weighted() -> "DoublyRobust":
        """The weights are those of weighted per-decision importance sampling."""
        return DoublyRobust(by_decision_normalised)

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        refit_critic = self.critic.prepare(problem, key=key)

        def refit(draw: Draw) -> Fit:
            drawn, data = draw.problem, draw.problem.dataset
            log_weights = self.log_weights(drawn) + data.step * np.log(problem.discount)
            critic = critic_of(refit_critic(draw), self.critic)
            values = logged_values(drawn, critic)
            highest = float(log_weights.max())
            if highest == -np.inf:
                raise NotApplicable(NO_OVERLAP)
            relative = np.exp(log_weights - highest)
            correction = float(np.sum(relative * td_error(drawn, values))) / data.num_episodes
            direct = float(values.start.mean())
            value = direct + rescaled(correction, highest)
            if not np.isfinite(value):
                raise NotApplicable("the products of ratios exceed float64: π and the log hardly overlap")
            diagnostics = {**weight_diagnostics(relative), "direct": direct, "correction": value - direct}
            return Fit(value, critic=critic, diagnostics=diagnostics)

        return refit


@dataclass(frozen=True)
class MarginalisedDoublyRobust(ClosedForm):
    """Any method that weights rows, with any critic."""

    ratio: Estimator = AverageDICE()
    critic: Estimator = FittedQ()

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        refit_ratio, refit_critic = self.ratio.prepare(problem, key=key), self.critic.prepare(problem, key=key)

        def refit(draw: Draw) -> Fit:
            weighting = refit_ratio(draw)
            if weighting.weights is None:
                raise SettingError(f"{type(self.ratio).__name__} weights no rows: use AverageDICE, for example.")
            critic = critic_of(refit_critic(draw), self.critic)
            values = logged_values(draw.problem, critic)
            correction = float(np.mean(weighting.weights * td_error(draw.problem, values))) / (1 - problem.discount)
            direct = float(values.start.mean())
            return Fit(
                direct + correction,
                critic=critic,
                diagnostics={**weighting.diagnostics, "direct": direct, "correction": correction},
                notes=weighting.notes,
            )

        return refit
