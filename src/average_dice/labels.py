"""Labels: what the ratio of a state is learnt from.

A state at step t carries the label y_t = γᵗ ∏_{k<t} ρ_k. Its two factors are separate choices here, both in log space:

- the **product**, `plain` or `self_normalised`;
- the **discount weight** γᵗ, alone (`as_logged`) or with the mass beyond the cut put on the last steps (`HeldAtCut`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .errors import SettingError
from .problem import Problem

LogRows = Float[np.ndarray, " transition"]
LabelRule = Callable[[Problem], LogRows]
Completion = Callable[[Problem, LogRows], LogRows]  # (problem, log product) → log discount weight


def plain(problem: Problem) -> LogRows:
    """log ∏_{k<t} ρ_k, as in the paper: unbiased, with a second moment that grows with every step."""
    return problem.log_product


def self_normalised(problem: Problem) -> LogRows:
    """log of ∏_{k<t} ρ_k over its mean at that step, taken over the episodes.

    An episode that has terminated keeps its last product: E[∏_{k<min(t,T)} ρ_k] = 1 at every t, so dividing by the mean
    is consistent, and leaving the dead out would condition on survival. An episode that was cut before t says
    nothing about t and is left out, which presumes that the cut did not look at what happened.
    No label exceeds the number of episodes. Where no episode has any weight left, the label is 0.
    """
    data = problem.dataset
    horizon = int(data.lengths.max())
    dead = data.terminated[data.starts + data.lengths - 1]
    died_at, last_product = data.lengths[dead], problem.final_log_product[dead]

    living = _log_sums(problem.log_product, data.step, horizon + 1)
    dying = _log_sums(last_product, died_at, horizon + 1)
    log_sum = np.logaddexp(living, np.logaddexp.accumulate(dying))
    count = np.bincount(data.step, minlength=horizon + 1) + np.bincount(died_at, minlength=horizon + 1).cumsum()

    log_mean = (log_sum - np.log(np.maximum(count, 1)))[data.step]
    possible = np.isfinite(problem.log_product)
    return np.where(possible, problem.log_product - np.where(possible, log_mean, 0.0), -np.inf)


def as_logged(problem: Problem, log_product: LogRows) -> LogRows:
    """log γᵗ: nothing stands for what lies beyond a cut."""
    return problem.dataset.step * np.log(problem.discount)


@dataclass(frozen=True)
class HeldAtCut:
    """log of γᵗ, plus the mass beyond the cut put on the `num_steps` steps before it.

    What is cut after H steps would have gone on: weight γᴴ ∏_{k<H} ρ_k flows over the cut. It is put on the rows of the
    last L steps, all by the same factor e, as if the process went on as it was there, deaths included; e follows from
    the flow: what comes in, Σ_cut γᴴ ∏_{k<H} ρ_k, is what goes out, e Σ_rows ∏_{k≤t} ρ_k (1 − γm). Without
    termination and with even weights, e = γᴴ / ((1 − γ) L). Rows of episodes that died in these steps count: the
    survivors alone never die.
    """

    num_steps: int = 10

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise SettingError(f"the mass beyond the cut needs at least one step to stand on, not {self.num_steps}.")

    def __call__(self, problem: Problem, log_product: LogRows) -> LogRows:
        data, horizon = problem.dataset, int(problem.dataset.lengths.max())
        log_weight = log_product + problem.log_ratio
        last = data.starts + data.lengths - 1
        cut = last[~data.terminated[last]]
        inflow = _log_sums(log_weight[cut], data.step[cut] + 1, horizon + 1)
        outflow = _log_sums(log_weight + np.log(problem.flow), data.step, horizon)

        held = np.full(horizon, -np.inf)
        for cut_at in np.flatnonzero(np.isfinite(inflow)):
            steps = slice(max(0, cut_at - self.num_steps), cut_at)
            factor = cut_at * np.log(problem.discount) + inflow[cut_at] - np.logaddexp.reduce(outflow[steps])
            held[steps] = np.logaddexp(held[steps], factor)
        return np.logaddexp(as_logged(problem, log_product), held[data.step])


def _log_sums(logs: Float[np.ndarray, " item"], group: np.ndarray, num_groups: int) -> Float[np.ndarray, " group"]:
    """log Σ exp of the items of each group; −∞ for a group without weight."""
    highest = np.full(num_groups, -np.inf)
    np.maximum.at(highest, group, logs)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    sums = np.bincount(group, np.exp(logs - shift[group]), minlength=num_groups)
    with np.errstate(divide="ignore"):
        return np.log(sums) + shift
