"""The fixed point of TD on features, with the next values kept within what rewards allow.

    E[φ (φ − γ m φ′)ᵀ] θ = (1 − γ) E[φ r],      φ = φ(s, a),  φ′ = E_π[φ(s′, a)]

An unbounded solution may lie far outside the rewards. Where v(s′) = φ′ᵀθ meets a bound, the bound takes its place and
the row no longer bootstraps: a few solutions, each with the rows at the bound that the last one found. They may go
round in circles (with values near a bound and a discount near 1); then their mean is the best that is to be had. The
sums over rows are formed once and serve every ridge and every draw of episodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.estimators._shared.linear_critic import CriticFeatures, Rows, bounds
from average_dice.models.linear_systems import LinearSystem
from average_dice.problem import Problem
from average_dice.resampling import Draw, RowSums

MAX_SOLUTIONS = 8


@dataclass(frozen=True, eq=False)
class Solution:
    """θ of the last system, or the mean of the last few if they did not settle; v(s′) by it, before it is bounded.

    `unsettled`: those last few; none if the last one settled.
    """

    theta: Float[np.ndarray, " feature"]
    system: LinearSystem
    after: Rows
    unsettled: Float[np.ndarray, "feature solution"]


@dataclass(frozen=True, eq=False)
class BoundedTD:
    """The equations of a log; `solve` them on a draw of its episodes."""

    linear: CriticFeatures
    low: float
    high: float
    reward: Rows  # (1 − γ) r
    passed_on: Rows  # γ m
    differences: RowSums  # E[φ (φ − γ m φ′)ᵀ]
    earned: RowSums  # E[φ (1 − γ) r]
    weights: Rows  # how much each row counts in these means

    @staticmethod
    def of(problem: Problem, linear: CriticFeatures, weights: Rows | None = None) -> "BoundedTD":
        passed_on = problem.discount * ~problem.dataset.terminated
        reward = (1 - problem.discount) * problem.dataset.reward
        if weights is None:
            weights = np.ones(len(reward))
        weighted = weights[:, None] * linear.logged
        return BoundedTD(
            linear,
            *bounds(problem),
            reward,
            passed_on,
            RowSums(problem, weighted, linear.logged - passed_on[:, None] * linear.after),
            RowSums(problem, weighted, reward[:, None]),
            weights,
        )

    def solve(self, ridges: Sequence[float], draw: Draw) -> list[Solution]:
        """With each of the penalties on all but the constants."""
        linear = self.linear
        unit = self.unit(draw)
        times = self.weights * draw.counts[self.differences.problem.episode_index] * unit
        share = times * self.passed_on / draw.num_rows
        differences, earned = unit * self.differences.mean(draw), unit * self.earned.mean(draw)[:, 0]
        matrices = [differences + linear.penalty(ridge) for ridge in ridges]
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
            after[:, moving] = linear.after @ np.column_stack([thetas[one][-1] for one in moving])
            found = (after >= self.high).astype(np.int8) - (after <= self.low)
            changed = (found != held) & (share > 0)[:, None]
            moving = [one for one in moving if changed[:, one].any()]
            for one in moving:
                rows = np.flatnonzero(changed[:, one])
                before, now, weight = held[rows, one], found[rows, one], share[rows]
                linear.add_arrivals(matrices[one], rows, weight * (np.abs(now) - np.abs(before)))
                rights[one] += linear.logged[rows].T @ (weight * (self._bound(now) - self._bound(before)))
                held[rows, one] = now
            if not moving:
                break
        unsettled = {one: np.column_stack(thetas[one][-MAX_SOLUTIONS // 2 :]) for one in moving}
        for one, solutions in unsettled.items():
            thetas[one].append(solutions.mean(axis=1))
            after[:, one] = linear.after @ thetas[one][-1]
        none = np.empty((linear.features.size, 0))
        return [
            Solution(thetas[one][-1], systems[one], after[:, one], unsettled.get(one, none))
            for one in range(len(ridges))
        ]

    def unit(self, draw: Draw) -> float:
        """What makes the weights of a draw 1 on average, so that a ridge means the same on all of them."""
        return 1 / float(draw.of_rows(self.weights).mean())

    def _bound(self, held: np.ndarray) -> np.ndarray:
        return np.where(held > 0, self.high, np.where(held < 0, self.low, 0.0))
