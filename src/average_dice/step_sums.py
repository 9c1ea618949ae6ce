"""Sums over a log that depend on all episodes, in a form that can be merged.

One pass over blocks of whole episodes gives them. With them a block computes its products of ratios over their means
over all episodes, as if it were part of the whole log in memory:

    log mean_t = log (1/K) Σ (products of the episodes at t, and the last products of those that terminated before)

All sums of products are logarithms of sums, so that nothing overflows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, reduce

import numpy as np
from jaxtyping import Float, Int

from average_dice.problem import Problem

Counts = Int[np.ndarray, " step"]
Logs = Float[np.ndarray, " step"]


@dataclass(frozen=True, eq=False)
class StepSums:
    """At each step, how many episodes reach it, terminate there and are truncated there; and their products.

    `before`: log Σ ∏_{k<t} ρ_k. `going_on` and `stopping`: log Σ ∏_{k≤t} ρ_k over the rows that do not terminate and
    over those that do. `squares`: log Σ (∏_{k≤t} ρ_k)² over all.
    """

    reached: Counts
    terminated: Counts
    truncated: Counts
    before: Logs
    going_on: Logs
    stopping: Logs
    squares: Logs

    @staticmethod
    def of(problem: Problem, *, with_products: bool = True) -> "StepSums":
        """The sums of a log or of a block. Without products, all of them are 1."""
        data = problem.dataset
        step, horizon = data.step, int(data.lengths.max())
        last = data.starts + data.lengths - 1
        ended = data.terminated[last]
        before = problem.log_product if with_products else np.zeros(len(step))
        after = before + (problem.log_ratio if with_products else 0.0)
        stops = data.terminated

        def sums(logs: np.ndarray, rows: np.ndarray) -> Logs:
            return log_sums(logs[rows], step[rows], horizon)

        every = np.ones(len(step), bool)
        return StepSums(
            np.bincount(step, minlength=horizon),
            np.bincount(step[last[ended]], minlength=horizon),
            np.bincount(step[last[~ended]], minlength=horizon),
            sums(before, every),
            sums(after, ~stops),
            sums(after, stops),
            sums(2 * after, every),
        )

    def merge(self, other: "StepSums") -> "StepSums":
        """The sums of both blocks."""
        horizon = max(len(self.reached), len(other.reached))
        merged = []
        for one in fields(self):
            left, right = getattr(self, one.name), getattr(other, one.name)
            if left.dtype.kind == "i":
                merged.append(_padded(left, horizon, 0.0) + _padded(right, horizon, 0.0))
            else:
                merged.append(np.logaddexp(_padded(left, horizon, -np.inf), _padded(right, horizon, -np.inf)))
        return StepSums(*merged)

    @staticmethod
    def merged(every: Iterable["StepSums"]) -> "StepSums":
        """The sums of all blocks."""
        return reduce(StepSums.merge, every)

    @property
    def horizon(self) -> int:
        """The length of the longest episode."""
        return len(self.reached)

    @cached_property
    def num_episodes(self) -> int:
        """Of the whole log."""
        return int(self.reached[0])

    @cached_property
    def num_transitions(self) -> int:
        """Of the whole log."""
        return int(self.reached.sum())

    @cached_property
    def log_uncensored(self) -> Logs:
        """See `Problem.log_uncensored_at_step`."""
        survived = (self.reached - self.terminated)[:-1]
        return np.append(0.0, np.cumsum(np.log(survived - self.truncated[:-1]) - np.log(survived)))

    @cached_property
    def log_mean_before(self) -> Logs:
        """log of the mean of ∏_{k<t} ρ_k over episodes; terminated ones keep their last product."""
        return self._log_mean(self.before)

    @cached_property
    def log_mean(self) -> Logs:
        """The same with the action at t: ∏_{k≤t} ρ_k."""
        return self._log_mean(np.logaddexp(self.going_on, self.stopping))

    def _log_mean(self, running: Logs) -> Logs:
        ending = np.append(-np.inf, (self.stopping - self.log_uncensored)[:-1])
        log_sum = np.logaddexp(running - self.log_uncensored, np.logaddexp.accumulate(ending))
        return log_sum - np.log(self.num_episodes)

    @cached_property
    def effective_episodes(self) -> Float[np.ndarray, " step"]:
        """The effective sample size (Σ p)² / Σ p² of the products at each step; 0 where all are 0."""
        every = np.logaddexp(self.going_on, self.stopping)
        with np.errstate(invalid="ignore"):  # −∞ − (−∞)
            return np.nan_to_num(np.exp(2 * every - self.squares))

    def over_mean(self, log_product: np.ndarray, step: np.ndarray, log_mean: Logs) -> np.ndarray:
        """log of products over their mean; −∞ where the product is 0."""
        possible = np.isfinite(log_product)
        return np.where(possible, log_product - np.where(possible, log_mean[step], 0.0), -np.inf)


def _padded(values: np.ndarray, length: int, fill: float) -> np.ndarray:
    return np.concatenate([values, np.full(length - len(values), fill, values.dtype)])


def log_sums(logs: np.ndarray, group: np.ndarray, num_groups: int) -> Logs:
    """log Σ exp of the items of each group; −∞ for a group without weight."""
    highest = np.full(num_groups, -np.inf)
    np.maximum.at(highest, group, logs)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(group, np.exp(logs - shift[group]), minlength=num_groups)) + shift


def log_sum(logs: Float[np.ndarray, " item"]) -> float:
    """log Σ exp."""
    return float(log_sums(logs, np.zeros(len(logs), np.int64), 1)[0])
