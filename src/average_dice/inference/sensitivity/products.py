"""Bounds by products of importance ratios: self-normalised per-decision importance sampling with uncertain ratios.

With the factors λ = μ/b of `deviation`, the true products are ρ_{0:t} λ_0 … λ_t. Their mean over episodes is 1 at
every step, whatever was not recorded, so weights are divided by their mean, as in the estimator `wpdis`. What was not
recorded may be anything: a trait of the whole episode, a cause of single steps, or a recorded μ that is wrong.

At Γ = 1 both forms are `wpdis`. For episodes of one step they are the same, the bounds of Zhao, Small & Bhattacharya
(2019).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable, SettingError
from average_dice.inference.sensitivity.deviation import Deviation
from average_dice.inference.sensitivity.forms import Bounds, Gammas, Side
from average_dice.inference.sensitivity.weighted_means import largest_mean
from average_dice.labels import over_mean_at_step
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample

NO_WEIGHT = "no logged episode has an action that the policy would take"
PROGRAM = "the exact optimum over self-normalised weights; it does not use that they average to 1 within each state"


@dataclass(frozen=True)
class EveryStep:
    """Every step may be affected: the product up to step t lies between ρ_{0:t} ∏ low and ρ_{0:t} ∏ high.

    Conservative for more than one step. Products are free within their bounds instead of being products of factors
    that average to 1, and each step has its own worst case.
    """

    deviation: Deviation
    one_step: bool = False  # of the log: then nothing is relaxed

    @property
    def name(self) -> str:
        """The name in tables."""
        return "one step" if self.one_step else "every step"

    @property
    def assumption(self) -> str:
        """What may have been unrecorded."""
        return "Anything unrecorded may have changed the logged actions" + (
            "." if self.one_step else ", at every step."
        )

    @property
    def sharpness(self) -> str:
        """Whether the bounds could be narrower under the same assumption."""
        if self.one_step:
            return PROGRAM
        return "a relaxation: each step has its own worst case, and products are free within their bounds"

    def on(self, resample: Resample) -> Bounds:
        """The bounds by these episodes."""
        problem = resample.problem
        data = problem.dataset
        log_weight = _log_weight(problem)
        rows_at = _rows_by_step(problem)

        def bounds(gammas: Gammas, side: Side) -> Float[np.ndarray, " gamma"]:
            low, high = (_up_to(problem, factors) for factors in self.deviation(_log_behaviour(problem), gammas))
            found = np.zeros(len(gammas))
            ended = np.full((2, len(gammas)), -np.inf)  # log sums of the weights of terminated episodes; they earn 0
            for step, rows in enumerate(rows_at):
                if (discounted := problem.normaliser * problem.discount**step) == 0:
                    break
                logs = np.stack([part[:, rows] + log_weight[rows] for part in (low, high)])
                items = np.concatenate([logs, ended[:, :, None]], axis=2)
                highest = items[1].max(axis=1)
                known = np.isfinite(highest)
                masses = np.exp(items - np.where(known, highest, 0.0)[:, None])
                rewards = np.append(side * data.reward[rows], 0.0)
                found += discounted * np.where(known, largest_mean(rewards, masses[0], masses[1]), 0.0)
                last = rows[data.terminated[rows]]
                if len(last):
                    ending = np.stack([part[:, last] + log_weight[last] for part in (low, high)])
                    ended = np.logaddexp(ended, np.logaddexp.reduce(ending, axis=2))
            return side * found

        return bounds


@dataclass(frozen=True)
class OneStep:
    """A single step may be affected (Namkoong, Keramati, Yadlowsky & Brunskill, 2020): `step`, or the worst of all.

    The factor λ of that step multiplies all later weights of the episode, and the optimum is exact given the recorded
    weights of the other steps. Weights of later steps are not normalised again, so the bounds of `EveryStep`, which
    hold for a single step, too, can be narrower: where they are, they count.
    """

    deviation: Deviation
    step: int | None = None

    @property
    def name(self) -> str:
        """The name in tables."""
        return "a single step" if self.step is None else f"step {self.step}"

    @property
    def assumption(self) -> str:
        """What may have been unrecorded."""
        which = "a single step, the worst of all" if self.step is None else f"step {self.step} only"
        return f"Anything unrecorded may have changed the logged actions at {which}."

    @property
    def sharpness(self) -> str:
        """Whether the bounds could be narrower under the same assumption."""
        return "the exact optimum over weights that are normalised at that step, given those of the other steps"

    def on(self, resample: Resample) -> Bounds:
        """The bounds by these episodes."""
        problem = resample.problem
        data, number = problem.dataset, problem.dataset.num_episodes
        every = EveryStep(self.deviation).on(resample)
        normalised = over_mean_at_step(problem, problem.log_product + problem.log_ratio) - problem.log_uncensored
        weight = np.exp(normalised)
        earned = problem.normaliser * np.exp(problem.log_discount) * weight * data.reward
        onwards = _from_here(problem, earned)
        rows_at = _rows_by_step(problem)
        if self.step is not None and not 0 <= self.step < len(rows_at):
            raise SettingError(f"no episode reaches step {self.step}; the last is step {len(rows_at) - 1}.")
        before = np.cumsum([0.0, *(earned[rows].sum() / number for rows in rows_at)])
        steps = range(len(rows_at)) if self.step is None else [self.step]

        def bounds(gammas: Gammas, side: Side) -> Float[np.ndarray, " gamma"]:
            low, high = self.deviation(_log_behaviour(problem), gammas)
            found = np.full(len(gammas), side * before[-1])
            for step in steps:
                rows = rows_at[step][weight[rows_at[step]] > 0]
                ended = np.full((len(gammas), 1), max(number - weight[rows_at[step]].sum(), 0.0))
                if not len(rows):
                    continue
                least, most = (np.hstack([weight[rows] * np.exp(part[:, rows]), ended]) for part in (low, high))
                values = np.append(side * onwards[rows] / weight[rows], 0.0)
                found = np.maximum(found, side * before[step] + largest_mean(values, least, most))
            return side * np.minimum(found, side * every(gammas, side))

        return bounds


def _log_behaviour(problem: Problem) -> Rows:
    assert problem.dataset.behaviour_log_prob is not None  # there are importance ratios
    return problem.dataset.behaviour_log_prob


def _log_weight(problem: Problem) -> Rows:
    """log ρ_{0:t}, over the share of episodes not yet truncated at t."""
    found = problem.log_product + problem.log_ratio - problem.log_uncensored
    if np.isneginf(found[problem.dataset.starts]).all():
        raise NotApplicable(NO_WEIGHT)
    return found


def _rows_by_step(problem: Problem) -> list[Int[np.ndarray, " row"]]:
    """The rows of step 0, of step 1, …"""
    order = np.argsort(problem.dataset.step, kind="stable")
    return np.split(order, np.cumsum(np.bincount(problem.dataset.step))[:-1])


def _up_to(problem: Problem, logs: Float[np.ndarray, "gamma transition"]) -> Float[np.ndarray, "gamma transition"]:
    """Sums over the steps of the episode up to each row, itself included."""
    data = problem.dataset
    sums = np.cumsum(logs, axis=1)
    before = sums[:, data.starts] - logs[:, data.starts]
    return sums - np.repeat(before, data.lengths, axis=1)


def _from_here(problem: Problem, rows: Rows) -> Rows:
    """Sums over the steps of the episode from each row on, itself included."""
    found = np.empty_like(rows)
    for start, length in zip(problem.dataset.starts, problem.dataset.lengths, strict=True):
        found[start : start + length] = np.cumsum(rows[start : start + length][::-1])[::-1]
    return found
