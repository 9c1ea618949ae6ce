"""Labels: the targets in the regression of the ratio on states.

A state at step t carries the label y_t = γᵗ ∏_{k<t} ρ_k. Its two factors are separate choices here, both in log space:

- the **product**, `plain` or `self_normalised`;
- the **discount weight** γᵗ, alone (`as_logged`) or with the weight after truncation put on the last steps
  (`HeldAtTruncation`). If episodes are truncated at different lengths, both are divided by the uncensored share.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from average_dice.errors import SettingError
from average_dice.problem import Problem, Rows, log_power
from average_dice.step_sums import log_sum, log_sums

LabelRule = Callable[[Problem], Rows]  # → log product
Completion = Callable[[Problem, Rows], Rows]  # (problem, log product) → log discount weight


def plain(problem: Problem) -> Rows:
    """log ∏_{k<t} ρ_k, as in the paper: unbiased, with a second moment that grows with every step."""
    return problem.log_product


def self_normalised(problem: Problem) -> Rows:
    """log of ∏_{k<t} ρ_k over its mean over episodes at that step. No label exceeds the number of episodes."""
    return over_mean_at_step(problem, problem.log_product)


def over_mean_at_step(problem: Problem, log_product: Rows) -> Rows:
    """log of the product over its mean at that step; the product with the action at t (∏_{k≤t}) or without (∏_{k<t}).

    An episode that has terminated keeps its last product: E[∏_{k<min(t,T)} ρ_k] = 1 at every t, so dividing by the mean
    is consistent. Leaving out terminated episodes would condition on survival. If episodes are truncated at different
    lengths, uncensored episodes are weighted up (see `Problem.log_uncensored_at_step`).
    If no episode has any weight at a step, its products are 0.
    """
    data = problem.dataset
    uncensored = problem.log_uncensored_at_step
    ended = data.terminated[data.starts + data.lengths - 1]
    end, last_product = data.lengths[ended], problem.final_log_product[ended]

    running = log_sums(log_product - uncensored[data.step], data.step, len(uncensored) + 1)
    ending = log_sums(last_product - uncensored[end - 1], end, len(uncensored) + 1)
    log_sum = np.logaddexp(running, np.logaddexp.accumulate(ending))

    log_mean = (log_sum - np.log(data.num_episodes))[data.step]
    possible = np.isfinite(log_product)
    return np.where(possible, log_product - np.where(possible, log_mean, 0.0), -np.inf)


def reversed_products(problem: Problem) -> Rows:
    """log ∏_{k≥t−1} ρ_k to the end of the episode, and 0 at t = 0, as in the authors' released code.

    It is not the product of the ratios *before* the state, so its mean is not the density ratio.
    """
    data = problem.dataset
    log_product = np.zeros(data.num_transitions)
    for start, length in zip(data.starts, data.lengths, strict=True):
        reversed_sum = np.cumsum(problem.log_ratio[start : start + length][::-1])[::-1]
        log_product[start + 1 : start + length] = reversed_sum[:-1]
    return log_product


def discount_alone(problem: Problem, log_product: Rows) -> Rows:
    """log of γᵗ, also where episodes are truncated at different lengths."""
    return problem.log_discount


def as_logged(problem: Problem, log_product: Rows) -> Rows:
    """log of γᵗ over the uncensored share. Rewards after the last truncation are ignored."""
    return problem.log_discount - problem.log_uncensored


@dataclass(frozen=True)
class HeldAtTruncation:
    """log of γᵗ, plus the weight after the (last) truncation put on the `num_steps` steps before it.

    An episode that is truncated after H steps would have continued with the weight γᴴ ∏_{k<H} ρ_k. That weight is put
    on the rows of the last L steps, with one factor e, as if the process continued as in these steps, with
    terminations.
    e follows from the flow: the inflow Σ_truncated γᴴ ∏_{k<H} ρ_k equals the outflow e Σ_rows ∏_{k≤t} ρ_k (1 − γm).
    Without termination and with even weights, e = γᴴ / ((1 − γ) L). Rows of episodes that terminated in these steps
    count too: without them, termination would be missing from the continuation.
    """

    num_steps: int = 10  # more steps average out noise, fewer are closer to the states after truncation

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise SettingError(f"HeldAtTruncation needs num_steps of at least 1, not {self.num_steps}.")

    def __call__(self, problem: Problem, log_product: Rows) -> Rows:
        data, horizon = problem.dataset, int(problem.dataset.lengths.max())
        log_weight = log_product + problem.log_ratio - problem.log_uncensored
        at_the_end = (data.step == horizon - 1) & ~data.terminated
        holding = data.step >= horizon - self.num_steps
        inflow = log_power(problem.discount, horizon) + log_sum(log_weight[at_the_end])
        with np.errstate(divide="ignore"):  # where γ = 1, only terminations leave the flow
            outflow = log_sum((log_weight + np.log(problem.flow))[holding])
        factor = inflow - outflow if np.isfinite(inflow) else -np.inf
        held = np.where(holding, factor - problem.log_uncensored, -np.inf)
        return np.logaddexp(as_logged(problem, log_product), held)
