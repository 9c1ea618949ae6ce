"""The marginalised doubly robust estimate: a critic, corrected by TD errors weighted by the density ratio.

    E[v(s₀)] + mean of w ρ δ / (1 − γ)            δ = (1 − γ) r + γ m v(s′) − q(s, a)

(Kallus & Uehara, 2020.) If either the critic or the ratio is right, so is the result.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.errors import SettingError
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm, prepared_once
from average_dice.estimators.doubly_robust._td_errors import critic_of, cross_fitted, logged_values, td_errors
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.results import Fit
from average_dice.estimators.value.fitted_q import FittedQ
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample


@dataclass(frozen=True)
class MarginalisedDoublyRobust(Estimator):
    """Marginalised doubly robust: a critic, corrected by TD errors weighted by the ratio of Average-DICE.

    `ratio` is any method that weights rows, `critic` any method that learns q(s, a).
    """

    ratio: Estimator = AverageDICE()
    critic: Estimator = FittedQ()

    @property
    def trains(self) -> bool:
        return self.ratio.trains or self.critic.trains

    def with_training(self, *, num_steps: int, num_checkpoints: int, **options: float) -> "Estimator":
        parts = {name: part for name, part in (("ratio", self.ratio), ("critic", self.critic)) if part.trains}
        trained = {
            name: part.with_training(num_steps=num_steps, num_checkpoints=num_checkpoints, **options)
            for name, part in parts.items()
        }
        return replace(self, **trained) if trained else super().with_training(num_steps=0, num_checkpoints=0)

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        ratio, critic = (prepared_once(part, problem, key=key) for part in (self.ratio, self.critic))

        def solve_for(resample: Resample, weighting: Fit, of_critic: Fit) -> Fit:
            weights = self._weights(weighting)
            values = logged_values(resample.problem, critic_of(of_critic, self.critic))
            correction = float(np.mean(weights * td_errors(resample.problem, values))) / problem.normaliser
            direct = float(values.start.mean())

            def by_episode() -> np.ndarray:
                return cross_fitted(problem, critic, self.critic, weights / problem.normaliser)

            return Fit(
                direct + correction,
                critic=of_critic.critic,
                episode_values=by_episode if resample.chosen is None else None,
                diagnostics={**weighting.diagnostics, "direct": direct, "correction": correction},
                notes=weighting.notes,
            )

        return PreparedClosedForm(problem, solve_for, (ratio, critic))

    def _weights(self, weighting: Fit) -> Rows:
        if weighting.weights is None:
            raise SettingError(f"{type(self.ratio).__name__} has no weights of rows. Use AverageDICE, for example.")
        return weighting.weights
