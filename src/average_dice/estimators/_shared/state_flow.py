"""The flow of states through the log, as linear equations on features of the state.

    E_D[φ(s) w(s)] − γ E_D[m ρ φ(s′) w(s)] / E_D[ρ] = (1 − γ) E[φ(s₀)],        w = φᵀθ

holds for the true ratio w. The mean ratio E_D[ρ] tends to 1. Without dividing by it, its noise would add or remove mass
at every step, and near a discount of 1 this would exceed the 1 − γ that enters.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from average_dice.estimators._shared.ratio_fits import fit_of_state_ratio
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import ValueRule
from average_dice.features.logged_states import LoggedStates
from average_dice.problem import Problem
from average_dice.resampling import Resample, RowSums


@dataclass(frozen=True, eq=False)
class StateFlow:
    """The sums over the rows of the log in the equations."""

    states: LoggedStates
    normaliser: float
    gram: RowSums  # E[φ φᵀ]
    arrivals: RowSums  # E[γ m ρ φ′ φᵀ]

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array) -> "StateFlow":
        """On `num_features` Fourier features of the state."""
        states = LoggedStates.of(problem, num_features, key)
        return StateFlow(
            states,
            problem.normaliser,
            RowSums(problem, states.logged, states.logged),
            RowSums(problem, problem.discount * problem.ratio[:, None] * states.after, states.logged),
        )

    def equations(
        self, resample: Resample
    ) -> tuple[Float[np.ndarray, "feature feature"], Float[np.ndarray, " feature"]]:
        """The matrix and the right-hand side."""
        right = self.normaliser * resample.mean_over_episodes(self.states.start)
        return self.gram.mean(resample) - self.arrivals.mean(resample) / resample.problem.mean_ratio, right

    def fit(self, resample: Resample, theta: Float[np.ndarray, " feature"], value: ValueRule) -> Fit:
        """The fit with the ratio φᵀθ."""
        ratio = resample.of_rows(self.states.logged @ theta)
        return fit_of_state_ratio(resample.problem, ratio, lambda rows: self.states(rows) @ theta, value)
