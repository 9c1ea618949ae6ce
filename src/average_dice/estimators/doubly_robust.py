"""Doubly robust estimates: a critic, corrected by weighted temporal differences.

    per decision      E[v(s₀)] + (1/K) Σ_rows γᵗ ρ_{0:t} δ_t
    weighted          the same with ρ_{0:t} over its mean over episodes at every t
    marginalised      E[v(s₀)] + mean of w ρ δ / (1 − γ)            δ = (1 − γ) r + γ m v(s′) − q(s, a)

(Jiang & Li, 2016; Thomas & Brunskill, 2016; Kallus & Uehara, 2020.) If either the critic or the weights are right, so
is the result. Rows before a cut bootstrap with v(s′): the critic stands for what lies beyond it.
"""

from dataclasses import dataclass

import jax
import numpy as np

from ..errors import NotApplicable, SettingError
from ..labels import over_mean_at_step
from ..problem import Problem
from .average_dice import AverageDICE
from .base import Critic, Estimator, Fit
from .fqe import FittedQ
from .importance_sampling import LogWeights, by_decision
from .weighting import NO_OVERLAP, Rows, rescaled, weight_diagnostics


def surprise(problem: Problem, critic: Critic) -> Rows:
    """δ = (1 − γ) r + γ m v(s′) − q(s, a), of every row."""
    data, discount = problem.dataset, problem.discount
    after = np.where(data.terminated, 0.0, critic.v(data.next_observation))
    return (1 - discount) * data.reward + discount * after - critic.q(data.observation, data.action)


def by_decision_over_mean(problem: Problem) -> Rows:
    """log of ρ_{0:t} over its mean over episodes at t."""
    return over_mean_at_step(problem, by_decision(problem))


def critic_of(method: Estimator, problem: Problem, key: jax.Array) -> Critic:
    """What the method says about states and actions."""
    found = method.fit(problem, key=key).critic
    if found is None:
        raise SettingError(f"{type(method).__name__} learns no values of states and actions: use FittedQ, for example.")
    return found


@dataclass(frozen=True)
class DoublyRobust(Estimator):
    """Products of ratios by decision, with any critic."""

    log_weights: LogWeights = by_decision
    critic: Estimator = FittedQ()

    @staticmethod
    def weighted() -> "DoublyRobust":
        """A cut, early or late, needs no standing in: the critic knows what lies beyond it."""
        return DoublyRobust(by_decision_over_mean)

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        data = problem.dataset
        log_weights = self.log_weights(problem) + data.step * np.log(problem.discount)
        critic = critic_of(self.critic, problem, key)
        highest = float(log_weights.max())
        if highest == -np.inf:
            raise NotApplicable(NO_OVERLAP)
        relative = np.exp(log_weights - highest)
        correction = float(np.sum(relative * surprise(problem, critic))) / data.num_episodes
        direct = float(critic.v(problem.start_observation).mean())
        value = direct + rescaled(correction, highest)
        if not np.isfinite(value):
            raise NotApplicable("the products of ratios exceed float64: π and the log hardly overlap")
        diagnostics = {**weight_diagnostics(relative), "direct": direct, "correction": value - direct}
        return Fit(value, critic=critic, diagnostics=diagnostics)


@dataclass(frozen=True)
class MarginalisedDoublyRobust(Estimator):
    """Any method that weights rows, with any critic."""

    ratio: Estimator = AverageDICE()
    critic: Estimator = FittedQ()

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        weighting = self.ratio.fit(problem, key=key)
        if weighting.weights is None:
            raise SettingError(f"{type(self.ratio).__name__} weights no rows: use AverageDICE, for example.")
        critic = critic_of(self.critic, problem, key)
        correction = float(np.mean(weighting.weights * surprise(problem, critic))) / (1 - problem.discount)
        direct = float(critic.v(problem.start_observation).mean())
        return Fit(
            direct + correction,
            critic=critic,
            diagnostics={**weighting.diagnostics, "direct": direct, "correction": correction},
            notes=weighting.notes,
        )
