"""Labels: what the ratio of a state is learnt from.

A state at step t carries the label y_t = γᵗ ∏_{k<t} ρ_k. Its two factors are separate choices here, both in log space:

- the **product**, `plain` or `self_normalised`;
- the **discount weight** γᵗ, alone (`as_logged`) or with the mass beyond the cut put on the last steps (`HeldAtTruncation`).
  Where episodes are cut at different lengths, both are divided by the share that is still watched.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.errors import SettingError
from average_dice.problem import Problem

LogRows = Float[np.ndarray, " transition"]
LabelRule = Callable[[Problem], LogRows]
Completion = Callable[[Problem, LogRows], LogRows]  # (problem, log product) → log discount weight


def plain(problem: Problem) -> LogRows:
    """log ∏_{k<t} ρ_k, as in the paper: unbiased, with a second moment that grows with every step."""
    return problem.log_product


def self_normalised(problem: Problem) -> LogRows:
    """log of ∏_{k<t} ρ_k over its mean at that step, taken over the episodes. No label exceeds their number."""
    return over_mean_at_step(problem, problem.log_product)


def over_mean_at_step(problem: Problem, log_product: LogRows) -> LogRows:
    """log of the product over its mean at that step; the product with the action at t (∏_{k≤t}) or without (∏_{k<t}).

    An episode that has terminated keeps its last product: E[∏_{k<min(t,T)} ρ_k] = 1 at every t, so dividing by the mean
    is consistent, and leaving the dead out would condition on survival. Where episodes are cut at different lengths,
    those still watched stand for those that are not (see `log_uncensored_at_step`).
    Where no episode has any weight left, the result is 0.
    """
    data = problem.dataset
    watched = log_uncensored_at_step(problem)
    dead = data.terminated[data.starts + data.lengths - 1]
    died_at, last_product = data.lengths[dead], problem.final_log_product[dead]

    living = _log_sums(log_product - watched[data.step], data.step, len(watched) + 1)
    dying = _log_sums(last_product - watched[died_at - 1], died_at, len(watched) + 1)
    log_sum = np.logaddexp(living, np.logaddexp.accumulate(dying))

    log_mean = (log_sum - np.log(data.num_episodes))[data.step]
    possible = np.isfinite(log_product)
    return np.where(possible, log_product - np.where(possible, log_mean, 0.0), -np.inf)


def log_uncensored_at_step(problem: Problem) -> Float[np.ndarray, " step"]:
    """log of the share of episodes not yet cut at each step, had none of them died: 0 where all are cut at one length.

    The estimate of Kaplan and Meier: of the episodes that came through step t alive, those cut right after it are
    lost and the others stand for them. It presumes that the cut did not look at what happened. Leaving out the cut ones
    alone would over-represent the dead, who are never cut.
    """
    data = problem.dataset
    horizon = int(data.lengths.max())
    last = data.starts + data.lengths - 1
    alive = np.bincount(data.step, minlength=horizon)
    deaths = np.bincount(data.step[last[data.terminated[last]]], minlength=horizon)
    cuts = np.bincount(data.step[last[~data.terminated[last]]], minlength=horizon)
    came_through = (alive - deaths)[:-1]  # each of them is cut after its step or is there at the next
    stayed = came_through - cuts[:-1]
    return np.append(0.0, np.cumsum(np.log(stayed) - np.log(came_through)))


def log_uncensored(problem: Problem) -> LogRows:
    """`log_uncensored_at_step` at the step of each row."""
    return log_uncensored_at_step(problem)[problem.dataset.step]


def as_logged(problem: Problem, log_product: LogRows) -> LogRows:
    """log of γᵗ over the share of episodes still watched: nothing stands for what lies beyond the last cut."""
    return problem.dataset.step * np.log(problem.discount) - log_uncensored(problem)


@dataclass(frozen=True)
class HeldAtTruncation:
    """log of γᵗ, plus the mass beyond the (last) cut put on the `num_steps` steps before it.

    What is cut after H steps would have gone on: weight γᴴ ∏_{k<H} ρ_k flows over the cut. It is put on the rows of the
    last L steps, all by the same factor e, as if the process went on as it was there, deaths included; e follows from
    the flow: what comes in, Σ_cut γᴴ ∏_{k<H} ρ_k, is what goes out, e Σ_rows ∏_{k≤t} ρ_k (1 − γm). Without termination
    and with even weights, e = γᴴ / ((1 − γ) L). Rows of episodes that died in these steps count: the survivors alone
    never die.
    """

    num_steps: int = 10

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise SettingError(f"the mass beyond the cut needs at least one step to stand on, not {self.num_steps}.")

    def __call__(self, problem: Problem, log_product: LogRows) -> LogRows:
        data, horizon = problem.dataset, int(problem.dataset.lengths.max())
        log_weight = log_product + problem.log_ratio - log_uncensored(problem)
        at_the_end = (data.step == horizon - 1) & ~data.terminated
        holding = data.step >= horizon - self.num_steps
        inflow = horizon * np.log(problem.discount) + _log_sum(log_weight[at_the_end])
        outflow = _log_sum((log_weight + np.log(problem.flow))[holding])
        factor = inflow - outflow if np.isfinite(inflow) else -np.inf
        held = np.where(holding, factor - log_uncensored(problem), -np.inf)
        return np.logaddexp(as_logged(problem, log_product), held)


def _log_sum(logs: Float[np.ndarray, " item"]) -> float:
    return float(_log_sums(logs, np.zeros(len(logs), np.int64), 1)[0])


def _log_sums(logs: Float[np.ndarray, " item"], group: np.ndarray, num_groups: int) -> Float[np.ndarray, " group"]:
    """log Σ exp of the items of each group; −∞ for a group without weight."""
    highest = np.full(num_groups, -np.inf)
    np.maximum.at(highest, group, logs)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    sums = np.bincount(group, np.exp(logs - shift[group]), minlength=num_groups)
    with np.errstate(divide="ignore"):
        return np.log(sums) + shift
