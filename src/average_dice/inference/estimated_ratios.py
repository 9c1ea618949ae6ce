"""How much the errors of estimated probabilities raise the mean of the importance ratio.

1 / μ̂ is convex in μ̂. So E[1 / μ̂] is above 1 / μ also where μ̂ is right on average, and the mean of ρ̂ = π / μ̂ is above 1
(Jensen). To second order the excess is E_π[Var(μ̂) / μ²], which is proportional to 1 / n for n episodes:

    m(n) = m(∞) + c / n      so      c / n = m(n/2) − m(n)      and      m(∞) = 2 m(n) − m(n/2)

m(n/2) comes from models that were fitted to random halves of the episodes (Quenouille, 1949: the jackknife by halves).
Errors of flexible models fall more slowly than 1 / n; then too little is taken off. A model that is wrong for another
reason, as one without the variables that drove the actions, is as wrong with half of the log: nothing is taken off.
Nothing is taken off either where the excess is so large that terms beyond the second order, its square, could hide a
deviation of 5 %, which the rule `mean-ratio` must find.

All rows share the errors of μ̂, so the spread between episodes does not contain them. The spread of m(n/2) between
halves does: a half has twice the variance of the whole, and the whole contains the half, so that the variance of their
difference is that of the whole.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.problem import Problem, Rows

LARGEST_EXCESS = 0.05**0.5  # its square is what the second order leaves out


@dataclass(frozen=True, eq=False)
class EstimatedRatios:
    """ρ of each row with μ from the whole log, and from each of several halves of it; None: μ was not estimated."""

    whole: Rows
    halves: Float[np.ndarray, "half transition"] | None = None

    @staticmethod
    def of(problem: Problem) -> "EstimatedRatios":
        """The ratios of a problem. `halves` is None, too, where estimates come with the log, or errors are large."""
        record = problem.dataset.estimated_behaviour
        log_probs = None if record is None or record.of_halves is None else record.of_halves()
        if log_probs is None:
            return EstimatedRatios(problem.ratio)
        found = EstimatedRatios(problem.ratio, np.exp(problem.target_log_prob - log_probs))
        return found if abs(found.excess or 0.0) <= LARGEST_EXCESS else EstimatedRatios(problem.ratio)

    @property
    def corrected(self) -> Rows:
        """ρ less the excess: 2 ρ(n) − ρ(n/2) of each row. It may be negative; only means of it have a meaning."""
        return self.whole if self.halves is None else 2 * self.whole - self.halves.mean(axis=0)

    @property
    def excess(self) -> float | None:
        """How much the errors of μ̂ raise the mean of ρ; None if it is not known."""
        return None if self.halves is None else float(self.halves.mean() - self.whole.mean())

    def shared_error(self, weights: Rows) -> float:
        """The standard error of Σ weights · ρ that is due to μ̂, which all rows share."""
        return 0.0 if self.halves is None else float((self.halves @ weights).std(ddof=1))
