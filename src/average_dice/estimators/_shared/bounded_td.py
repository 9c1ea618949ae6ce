"""The fixed point of TD on features, with next values clipped to the bounds of the rewards.

    E[φ (φ − γ m φ′)ᵀ] θ = (1 − γ) E[φ r],      φ = φ(s, a),  φ′ = E_π[φ(s′, a)]

An unbounded solution may lie far outside the rewards. If v(s′) = φ′ᵀθ reaches a bound, it is replaced by the bound, and
the row no longer bootstraps. This takes a few solutions, each with the rows at a bound according to the one before.
They may cycle (with values near a bound and a discount near 1); then their mean is used. The sums over rows are
computed once for all ridges and resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.linear_systems import LinearSystem
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample, RowSums

MAX_SOLUTIONS = 8  # limits the cost: solutions that have not converged by then usually cycle


@dataclass(frozen=True, eq=False)
class Solution:
    """θ of the last system, or the mean of the last few if they did not converge; and its v(s′) before clipping.

    `unsettled`: the last few solutions; empty if they converged.
    """

    theta: Float[np.ndarray, " feature"]
    system: LinearSystem
    after: Rows
    unsettled: Float[np.ndarray, "feature solution"]


@dataclass(eq=False)
class _Case:
    """The equations of one resample and ridge, while they are solved."""

    matrix: Float[np.ndarray, "feature feature"]
    right: Float[np.ndarray, " feature"]
    share: Rows  # how much each row bootstraps
    unsettled: Float[np.ndarray, "feature solution"]
    thetas: list[np.ndarray] = field(default_factory=list)
    system: LinearSystem = field(init=False)


@dataclass(frozen=True, eq=False)
class BoundedTD:
    """The equations of a log; `solve` them on a resample of its episodes."""

    features: LoggedStateActions
    low: float
    high: float
    reward: Rows  # (1 − γ) r
    continues: Rows  # γ m
    differences: RowSums  # E[φ (φ − γ m φ′)ᵀ]
    earned: RowSums  # E[φ (1 − γ) r]
    weights: Rows  # how much each row counts in these means

    @staticmethod
    def of(problem: Problem, features: LoggedStateActions, weights: Rows | None = None) -> "BoundedTD":
        """The equations of a log, with `weights` of its rows, or equal weights."""
        continues = problem.discount * ~problem.dataset.terminated
        reward = problem.normaliser * problem.dataset.reward
        if weights is None:
            weights = np.ones(len(reward))
        logged = features.logged  # not copied where it would stay the same: memory counts
        weighted = logged if (weights == 1).all() else weights[:, None] * logged
        differences = logged - continues[:, None] * features.after if continues.any() else logged
        return BoundedTD(
            features,
            *problem.value_bounds,
            reward,
            continues,
            RowSums(problem, weighted, differences),
            RowSums(problem, weighted, reward[:, None]),
            weights,
        )

    def solve(self, ridges: Sequence[float], resamples: Sequence[Resample]) -> list[list[Solution]]:
        """For each resample, the solutions for all ridges, which do not penalise the constants.

        They are solved together, so that each round reads the features of the log once.
        """
        cases = [case for resample in resamples for case in self._cases(ridges, resample)]
        held = np.zeros(
            (len(self.reward), len(cases)), np.int8
        )  # v(s′) at the lower bound (−1), between (0), at the upper (1)
        after = np.empty(held.shape)
        moving = list(range(len(cases)))
        for _ in range(MAX_SOLUTIONS):
            for case in (cases[one] for one in moving):
                case.system = LinearSystem(case.matrix)
                case.thetas.append(case.system.solve(case.right))
            after[:, moving] = self.features.after @ np.column_stack([cases[one].thetas[-1] for one in moving])
            found = (after >= self.high).astype(np.int8) - (after <= self.low)
            moving = [one for one in moving if ((found[:, one] != held[:, one]) & (cases[one].share > 0)).any()]
            for one in moving:
                rows = np.flatnonzero((found[:, one] != held[:, one]) & (cases[one].share > 0))
                self._hold(cases[one], rows, held[rows, one], found[rows, one])
                held[rows, one] = found[rows, one]
            if not moving:
                break
        for one in moving:
            cases[one].unsettled = np.column_stack(cases[one].thetas[-MAX_SOLUTIONS // 2 :])
            cases[one].thetas.append(cases[one].unsettled.mean(axis=1))
            after[:, one] = self.features.after @ cases[one].thetas[-1]
        solutions = [
            Solution(case.thetas[-1], case.system, after[:, one], case.unsettled) for one, case in enumerate(cases)
        ]
        return [solutions[first : first + len(ridges)] for first in range(0, len(cases), len(ridges))]

    def _cases(self, ridges: Sequence[float], resample: Resample) -> list["_Case"]:
        unit = self.unit(resample)
        times = self.weights * resample.counts[self.differences.problem.episode_index] * unit
        share = times * self.continues / resample.num_rows
        differences, earned = unit * self.differences.mean(resample), unit * self.earned.mean(resample)[:, 0]
        none = np.empty((self.features.features.size, 0))
        return [_Case(differences + self.features.penalty(ridge), earned.copy(), share, none) for ridge in ridges]

    def _hold(self, case: "_Case", rows: np.ndarray, before: np.ndarray, now: np.ndarray) -> None:
        """Replaces v(s′) of these rows by the bound that it reached, or bootstraps again."""
        weight = case.share[rows]
        self.features.add_products(case.matrix, rows, weight * (np.abs(now) - np.abs(before)))
        case.right += self.features.logged_products(rows, weight * (self._bound(now) - self._bound(before)))

    def unit(self, resample: Resample) -> float:
        """The factor that makes the weights of a resample 1 on average, so that a ridge has the same effect on all."""
        return 1 / float(resample.of_rows(self.weights).mean())

    def _bound(self, held: np.ndarray) -> np.ndarray:
        return np.where(held > 0, self.high, np.where(held < 0, self.low, 0.0))
