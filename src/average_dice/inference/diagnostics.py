"""What the log can carry: numbers that say how far an estimate from it is to be trusted, whatever the method.

An episode's weight is what a reward of 1 at every step would earn through it, with self-normalised products W:

    g = (1 − γ) Σ_t γᵗ W_t / c_t      W_t = ρ_{0:t} over its mean over episodes

so that steps which hardly count at this discount do not count here either. c_t is the share of episodes that are not
yet cut at step t (1 where all are cut at one length): who is still watched stands for who is not.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float

from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable
from average_dice.estimators.importance.importance_sampling import by_decision_normalised
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.value_rules import Rows, flow_mass
from average_dice.features.scaling import mean_and_std
from average_dice.inference import assumptions
from average_dice.inference.pareto import pareto_k
from average_dice.labels import log_uncensored
from average_dice.problem import Problem
from average_dice.randomness import generator_from

NUM_HEAVIEST = 5
FEWEST_AT_STEP = 10  # episodes
SURE = 5.0  # standard errors
FURTHEST = 1e3
Episodes = Float[np.ndarray, " episode"]


@dataclass(frozen=True)
class Heavy:
    """An episode by its number in the log, and its share of all weight."""

    episode: int
    share: float


@dataclass(frozen=True)
class Diagnostics:
    """None where the log or the policy does not say.

    - `mean_ratio`: of ρ over all rows, and how many standard errors (by episode) it lies from 1, where it belongs.
    - `worst_step`: the step whose mean of ρ lies the most standard errors from 1; that mean, and how many.
    - `overlap`: the mean of min(1, ρ), 1 if π acts as the log does and 0 if never: 1 minus the distance of the two.
    - `unseen_actions`: the share of π's actions at logged states that the log never shows (discrete ones).
    - `effective_episodes`: (Σ g)² / Σ g² of the weights of episodes; `by_step`: of the products at each step.
    - `pareto_k` of the weights of episodes; `heaviest`: which of them carry most; `weights`: all of them, as shares.
    - `balance`, `missing_mass`, `excess_mass`: how many standard errors E[ρ | s, t] is from 1, and how
      often in an episode, discounted, π's weight is lost or made thereby.
    - `memory`, `truncation`, `trend`, `neighbours`: how many standard errors the log is from what it is taken for:
      actions drawn with the recorded probabilities, truncation that does not look at what happened, episodes that are
      alike and independent (see `assumptions`).
    - `mass_found`: what the learnt ratio sums to before it is normalised; 1 is right.
    - `beyond_truncation`: the share of the discounted weight that flows over a cut beyond which hardly any episode goes on.
    - `flow_residual`: how far the flow of the learnt ratio is from balance on episodes left out; 0 is right.
    - `reward_range`: the largest reward minus the least.
    - `largest_reward_share`: what one row adds to the variance of rewards; `repeated_episodes`: a share of all.
    """

    reward_range: float
    largest_reward_share: float
    repeated_episodes: float
    unseen_actions: float | None
    beyond_truncation: float | None = None
    mean_ratio: float | None = None
    mean_ratio_distance: float | None = None
    worst_step: int | None = None
    worst_step_ratio: float | None = None
    worst_step_distance: float | None = None
    overlap: float | None = None
    effective_episodes: float | None = None
    by_step: tuple[float, ...] = ()
    pareto_k: float | None = None
    heaviest: tuple[Heavy, ...] = ()
    weights: tuple[float, ...] = ()
    balance: float | None = None
    missing_mass: float | None = None
    excess_mass: float | None = None
    memory: float | None = None
    truncation: float | None = None
    trend: float | None = None
    neighbours: float | None = None
    mass_found: float | None = None
    flow_residual: float | None = None


def diagnose(problem: Problem, *, key: jax.Array) -> Diagnostics:
    """All of it, from the log and the policy alone."""
    data = problem.dataset
    of_log = Diagnostics(
        float(np.ptp(data.reward)),
        largest_reward_share(data.reward),
        repeated_episodes(data),
        unseen_actions(problem),
        beyond_truncation(problem, np.exp(-log_uncensored(problem))),
        truncation=assumptions.truncation(data),
        trend=assumptions.trend(problem),
        neighbours=assumptions.neighbours(problem),
    )
    try:
        products = np.exp(by_decision_normalised(problem))
    except NotApplicable:
        return of_log
    weights = episode_weights(problem, products)
    shares = weights / weights.sum() if weights.any() else weights
    heaviest = np.argsort(-shares)[:NUM_HEAVIEST]
    mean, distance = mean_ratio(problem)
    step, step_ratio, step_distance = worst_step(problem)
    balance = assumptions.balance(problem, key=key)
    return replace(
        of_log,
        mean_ratio=mean,
        mean_ratio_distance=distance,
        worst_step=step,
        worst_step_ratio=step_ratio,
        worst_step_distance=step_distance,
        balance=balance.distance,
        missing_mass=balance.missing,
        excess_mass=balance.excess,
        memory=assumptions.memory(problem),
        overlap=float(np.minimum(1.0, problem.ratio).mean()),
        effective_episodes=effective_number(weights),
        by_step=tuple(effective_by_step(problem, products)),
        pareto_k=pareto_k(weights),
        heaviest=tuple(Heavy(int(data.episode[data.starts[one]]), float(shares[one])) for one in heaviest),
        weights=tuple(float(share) for share in np.sort(shares)[::-1]),
        mass_found=mass_found(problem, key),
        beyond_truncation=beyond_truncation(problem, products),
        flow_residual=flow_residual(problem, key),
    )


def mean_ratio(problem: Problem) -> tuple[float, float]:
    """The mean of ρ over rows, and its distance from 1 in standard errors: E_μ[ρ | s] = 1 at every state."""
    data = problem.dataset
    apart = np.bincount(problem.episode_index, problem.ratio - 1, data.num_episodes)
    return float(problem.ratio.mean()), _distance(apart, 0.0)


def worst_step(problem: Problem) -> tuple[int, float, float]:
    """Of the steps that count, γᵗ > 1/10, the one whose mean of ρ lies the most standard errors from 1.

    What μ never does at some step, and π does, takes that much off the mean there, and may vanish in the mean over all.
    The error is taken from the spread of all rows if that of the step is less: at some step of many an action that is
    rare, and that π likes, is missing by chance, and no ratio there says how rare it is.
    """
    data = problem.dataset
    spread = float(problem.ratio.std())
    last = min(int(np.log(0.1) / np.log(problem.discount)), int(data.lengths.max()) - 1)
    found = []
    for step in range(last + 1):
        ratio = problem.ratio[data.step == step]
        if len(ratio) >= FEWEST_AT_STEP:
            found.append((step, float(ratio.mean()), _distance(ratio - 1, spread)))
    return max(found, key=lambda one: one[2], default=(0, 1.0, 0.0))


def _distance(apart: Float[np.ndarray, " episode"], least_spread: float) -> float:
    """Of the mean from 0, in standard errors; without any spread, as far as it gets."""
    if len(apart) < 2 or not apart.any():
        return 0.0
    error = max(float(apart.std(ddof=1)), least_spread) / np.sqrt(len(apart))
    return min(abs(float(apart.mean())) / max(error, 1e-300), FURTHEST)


def episode_weights(problem: Problem, products: Rows) -> Episodes:
    """g of each episode."""
    discounted = problem.discount**problem.dataset.step * products
    return (1 - problem.discount) * np.bincount(problem.episode_index, discounted, problem.dataset.num_episodes)


def effective_number(weights: np.ndarray) -> float:
    """(Σ w)² / Σ w²."""
    square = float(weights @ weights)
    return float(weights.sum()) ** 2 / square if square > 0 else 0.0


def effective_by_step(problem: Problem, products: Rows) -> list[float]:
    """The effective number of the episodes that are there at each step."""
    step = problem.dataset.step
    sums, squares = np.bincount(step, products), np.bincount(step, products**2)
    return [float(number) for number in np.divide(sums**2, squares, out=np.zeros(len(sums)), where=squares > 0)]


def beyond_truncation(problem: Problem, products: Rows) -> float:
    """Σ_cut γᵀ W / K: 0 where every episode terminated, γᴴ where all are cut after H steps.

    What lies beyond a cut is seen in the episodes that go on, if they are more than a few: such cuts do not count.
    """
    data = problem.dataset
    last = data.starts + data.lengths - 1
    going_on = data.num_episodes - np.searchsorted(np.sort(data.lengths), data.lengths, side="right")
    unseen = ~data.terminated[last] & (going_on < FEWEST_AT_STEP)
    over = problem.discount ** data.lengths[unseen] * products[last[unseen]]
    return float(over.sum()) / data.num_episodes


def unseen_actions(problem: Problem) -> float | None:
    """The share of π's discrete actions, at the logged states, that stand nowhere in the log."""
    data = problem.dataset
    if not data.is_discrete:
        return None
    try:
        actions, weights = problem.target_actions(data.observation, num_draws=1, generator=np.random.default_rng(0))
    except NotApplicable:
        return None
    return float(np.sum(weights * ~np.isin(actions, data.action)) / len(weights))


def mass_found(problem: Problem, key: jax.Array) -> float | None:
    try:
        return float(AverageDICE().fit(problem, key=key).diagnostics["flow_mass"])
    except NotApplicable:
        return None


def flow_residual(problem: Problem, key: jax.Array) -> float | None:
    """How far the flow E[w (f(s) − γ m ρ f(s′))] is from the starts (1 − γ) E[f(s₀)], over 1 − γ, chance taken off.

    f are the observations, standardised: the starts would have to lie so many standard deviations elsewhere. w, a
    function of state and step, is learnt from one half of the episodes and judged on the other, both ways.
    """
    data = problem.dataset
    if data.num_episodes < 4:
        return None
    method = AverageDICE()
    half = generator_from(key).permutation(data.num_episodes) % 2
    squares = []
    for one in (0, 1):
        here = Problem(data.select_episodes(np.flatnonzero(half != one)), problem.policy, problem.discount)
        there = Problem(data.select_episodes(np.flatnonzero(half == one)), problem.policy, problem.discount)
        try:
            (learnt,) = method.model.fit(method.task(here).regression, keys=[key], value_of=lambda f: float("nan"))
            task = method.task(there)
        except NotApplicable:
            return None
        apart = _apart_from_starts(there, task.row_scale * learnt.predict(task.regression.inputs))
        squares.append(apart.mean(axis=0) ** 2 - apart.var(axis=0, ddof=1) / len(apart))
    return float(np.sqrt(max(np.mean(squares), 0.0)))


def _apart_from_starts(problem: Problem, ratio: Rows) -> Float[np.ndarray, "episode test"]:
    """What each episode adds to the difference between flow and starts."""
    data, discount = problem.dataset, problem.discount
    mean, std = mean_and_std(data.observation)
    logged, after = (data.observation - mean) / std, (data.next_observation - mean) / std
    passed_on = discount * np.where(data.terminated, 0.0, problem.ratio)
    ratio = ratio / float(np.mean(ratio * flow_mass(problem)))
    rows = ratio[:, None] * (logged - passed_on[:, None] * after)
    sums = np.stack([np.bincount(problem.episode_index, column, data.num_episodes) for column in rows.T], axis=1)
    return sums * (data.num_episodes / data.num_transitions) / (1 - discount) - logged[data.starts]


def largest_reward_share(reward: Rows) -> float:
    """What the row furthest from the mean adds to the variance of rewards."""
    squares = (reward - reward.mean()) ** 2
    return float(squares.max() / squares.sum()) if squares.any() else 0.0


def repeated_episodes(data: LoggedDataset) -> float:
    """The share of episodes that are the same as an earlier one, row for row, and too unlikely to be so by chance.

    Where states come again in other episodes, short episodes come twice by themselves: with μ known, only those are
    counted that μ would hardly act out twice in a log of this size, and without it none.
    """
    columns = np.column_stack(
        [data.observation, data.action.reshape(len(data.step), -1), data.reward, data.next_observation]
    )
    contents = [
        columns[start : start + length].tobytes() for start, length in zip(data.starts, data.lengths, strict=True)
    ]
    first = {content: one for one, content in reversed(list(enumerate(contents)))}
    repeated = np.array([first[content] != one for one, content in enumerate(contents)])
    if _share_of_states_met_again(data.select_episodes(np.flatnonzero(~repeated))) < 0.1:
        return float(repeated.mean())
    if data.behaviour_log_prob is None or not data.is_discrete:
        return 0.0
    td_error = -np.bincount(np.cumsum(data.step == 0) - 1, data.behaviour_log_prob)
    return float(np.mean(repeated & (td_error > 2 * np.log(data.num_episodes) + 3)))


def _share_of_states_met_again(data: LoggedDataset) -> float:
    """The share of rows whose observation stands in another episode, too."""
    _, state = np.unique(data.observation, axis=0, return_inverse=True)
    episode = np.cumsum(data.step == 0) - 1
    visits = np.unique(np.column_stack([state.ravel(), episode]), axis=0)
    return float(np.mean(np.bincount(visits[:, 0])[state.ravel()] > 1))
