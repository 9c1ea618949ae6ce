"""The fixed point of TD on features, with the next values kept within what rewards allow.

    E[φ (φ − γ m φ′)ᵀ] θ = (1 − γ) E[φ r],      φ = φ(s, a),  φ′ = E_π[φ(s′, a)]

An unbounded solution may lie far outside the rewards. Where v(s′) = φ′ᵀθ reaches a bound, it is replaced by the bound,
and the row no longer bootstraps. This takes a few solutions, each with the rows at the bound that the last one found.
They may cycle (with values near a bound and a discount near 1); then their mean is used. The sums over rows are formed
once and serve every ridge and every resample.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.models.linear_systems import LinearSystem
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample, RowSums

MAX_SOLUTIONS = 8  # bounds the cost: solutions that have not converged by then usually cycle


@dataclass(frozen=True, eq=False)
class Solution:
    """θ of the last system, or the mean of the last few if they did not converge; v(s′) by it, before it is bounded.

    `unsettled`: those last few; none if the last one converged.
    """

    theta: Float[np.ndarray, " feature"]
    system: LinearSystem
    after: Rows
    unsettled: Float[np.ndarray, "feature solution"]


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
        """Those of a log; its rows count by their `weights`, or all the same."""
        continues = problem.discount * ~problem.dataset.terminated
        reward = (1 - problem.discount) * problem.dataset.reward
        if weights is None:
            weights = np.ones(len(reward))
        weighted = weights[:, None] * features.logged
        return BoundedTD(
            features,
            *problem.value_bounds,
            reward,
            continues,
            RowSums(problem, weighted, features.logged - continues[:, None] * features.after),
            RowSums(problem, weighted, reward[:, None]),
            weights,
        )

    def solve(self, ridges: Sequence[float], resample: Resample) -> list[Solution]:
        """With each of the penalties on all but the constants."""
        features = self.features
        unit = self.unit(resample)
        times = self.weights * resample.counts[self.differences.problem.episode_index] * unit
        share = times * self.continues / resample.num_rows
        differences, earned = unit * self.differences.mean(resample), unit * self.earned.mean(resample)[:, 0]
        matrices = [differences + features.penalty(ridge) for ridge in ridges]
        rights = [earned.copy() for _ in ridges]
        held = np.zeros((len(share), len(ridges)), np.int8)  # v(s′) at the lower bound (−1), free (0), at the upper (1)
        after = np.empty(held.shape)
        systems: dict[int, LinearSystem] = {}
        thetas: list[list[np.ndarray]] = [[] for _ in ridges]
        moving = list(range(len(ridges)))
        for _ in range(MAX_SOLUTIONS):
            for one in moving:
                systems[one] = LinearSystem(matrices[one])
                thetas[one].append(systems[one].solve(rights[one]))
            after[:, moving] = features.after @ np.column_stack([thetas[one][-1] for one in moving])
            found = (after >= self.high).astype(np.int8) - (after <= self.low)
            changed = (found != held) & (share > 0)[:, None]
            moving = [one for one in moving if changed[:, one].any()]
            for one in moving:
                rows = np.flatnonzero(changed[:, one])
                before, now, weight = held[rows, one], found[rows, one], share[rows]
                features.add_products(matrices[one], rows, weight * (np.abs(now) - np.abs(before)))
                rights[one] += features.logged[rows].T @ (weight * (self._bound(now) - self._bound(before)))
                held[rows, one] = now
            if not moving:
                break
        unsettled = {one: np.column_stack(thetas[one][-MAX_SOLUTIONS // 2 :]) for one in moving}
        for one, solutions in unsettled.items():
            thetas[one].append(solutions.mean(axis=1))
            after[:, one] = features.after @ thetas[one][-1]
        none = np.empty((features.features.size, 0))
        return [
            Solution(thetas[one][-1], systems[one], after[:, one], unsettled.get(one, none))
            for one in range(len(ridges))
        ]

    def unit(self, resample: Resample) -> float:
        """What makes the weights of a resample 1 on average, so that a ridge means the same on all of them."""
        return 1 / float(resample.of_rows(self.weights).mean())

    def _bound(self, held: np.ndarray) -> np.ndarray:
        return np.where(held > 0, self.high, np.where(held < 0, self.low, 0.0))
