"""The discount correction of Che et al. (2023): Average-DICE where π = μ.

With every importance ratio 1 the label of a state at step t is γᵗ, and

    w(s) = c · E[γᵗ | s]  →  d_{μ,γ}(s) / d_μ(s),        Ĵ(μ) = (1 − γ) Σ w r / Σ w (1 − γm)

corrects averages over the logged states for the discount. Its value is that of the behaviour policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax

from average_dice.estimators.base import Estimator, Prepared
from average_dice.estimators.baseline.average_reward import OF_BEHAVIOUR
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.ratio.targets import ratio_on_state
from average_dice.estimators.results import Fit
from average_dice.labels import as_logged
from average_dice.problem import Problem
from average_dice.resampling import Resample


@dataclass(frozen=True)
class DiscountCorrection(Estimator):
    """The value of μ from logged states weighted by the discount: Average-DICE with all ratios 1.

    `ratio` regresses the label γᵗ on the state; it needs neither π nor μ.
    """

    ratio: AverageDICE = AverageDICE(completion=as_logged, regress=ratio_on_state)

    @property
    def trains(self) -> bool:
        return self.ratio.trains

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        on_policy = problem.with_single_action()
        return PreparedOnPolicy(on_policy, self.ratio.prepare(on_policy, key=key))


@dataclass(frozen=True, eq=False)
class PreparedOnPolicy(Prepared):
    """The ratio, prepared on the log with a single action."""

    on_policy: Problem
    ratio: Prepared

    def fit_log(self) -> Fit:
        return _of_behaviour(self.ratio.fit())

    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        own = [resample.on(self.on_policy) for resample in resamples]
        return [_of_behaviour(fit) for fit in self.ratio.refit(own)]


def _of_behaviour(fit: Fit) -> Fit:
    return replace(fit, notes=(OF_BEHAVIOUR, *fit.notes))
