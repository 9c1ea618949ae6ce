"""Diagnostics of a log: numbers that show how far an estimate from it can be trusted, by any method."""

from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.data.model_words import in_words
from average_dice.data.names import EPISODE_NAME
from average_dice.errors import NotApplicable
from average_dice.estimators import AverageDICE, prepared_once
from average_dice.estimators.importance.importance_sampling import by_decision_normalised
from average_dice.inference import assumptions
from average_dice.inference.episode_weights import (
    beyond_truncation,
    effective_by_step,
    effective_number,
    episode_weights,
)
from average_dice.inference.estimated_ratios import EstimatedRatios
from average_dice.inference.flow_residual import flow_residual
from average_dice.inference.log_quality import largest_reward_share, repeated_episodes, unseen_actions
from average_dice.inference.near_actions import near_actions
from average_dice.inference.pareto import pareto_k
from average_dice.problem import Estimand, Problem

NUM_HEAVIEST = 5  # as many as fit into a line of the report


@dataclass(frozen=True)
class Heavy:
    """An episode by its number in the log, its share of all weight, and the user's own identifier, if there is one."""

    episode: int
    share: float
    name: str | None = None

    @property
    def shown(self) -> str:
        """What reports call the episode."""
        return str(self.episode) if self.name is None else self.name


@dataclass(frozen=True)
class Diagnostics:
    """None where the log or the policy lacks the inputs, or the number means nothing at this discount.

    - `mean_ratio`: of ρ over all rows, and how many standard errors (by episode) it lies from 1. `mean_ratio_excess`:
      how much of it is due to errors of estimated probabilities. The distance, `worst_step_ratio` and `balance` are
      those of ρ without it.
    - `worst_step`: the step whose mean of ρ lies the most standard errors from 1; that mean, and how many.
    - `overlap`: the mean of min(1, ρ), which is 1 minus the total variation distance of π and μ.
    - `unseen_actions`: the share of π's actions at logged states that the log never shows (discrete ones).
    - `near_actions`: for deterministic policies over continuous actions, the share of rows whose action is near π's, to
      the power of 1 / dimensions; `near_rows`: their effective number.
    - `followed_episodes`, `followed_rows`: where π never takes some logged actions, the number of episodes with none of
      these, and of rows.
    - `effective_episodes`: (Σ g)² / Σ g² of the weights of episodes; `by_step`: the same of the products at each step.
    - `pareto_k` of the weights of episodes; `heaviest`: the episodes with the largest; `weights`: all, as shares.
    - `balance`, `missing_mass`, `excess_mass`: how many standard errors E[ρ | s, t] is from 1, and how often in an
      episode, discounted, weight of π is lost or added by it.
    - `memory`, `truncation`, `trend`, `neighbours`: how many standard errors the log is from the assumptions:
      actions sampled with the recorded probabilities, truncation that does not depend on what happened, episodes that
      are identically distributed and independent (see `assumptions`).
    - `mass_found`: what the learnt ratio sums to before it is normalised; 1 is right.
    - `beyond_truncation`: the share of the discounted weight after truncations that hardly any episode passes.
    - `flow_residual`: violation of the flow equation by the learnt ratio on held-out episodes; 0 is right.
    - `reward_range`: the largest reward minus the least.
    - `largest_reward_share`: the largest share of one row in the variance of rewards.
    - `repeated_episodes`: the share of episodes that are copies.
    - `estimated_behaviour`: the model of the behaviour policy, if its probabilities were estimated, and
      `behaviour_in_words`: the same for people;
      `calibration_error`, `calibration_distance`: of predicted from observed frequencies of actions, on average and at
      most in standard errors.
    """

    reward_range: float
    largest_reward_share: float
    repeated_episodes: float
    unseen_actions: float | None
    beyond_truncation: float | None = None
    mean_ratio: float | None = None
    mean_ratio_distance: float | None = None
    mean_ratio_excess: float | None = None
    worst_step: int | None = None
    worst_step_ratio: float | None = None
    worst_step_distance: float | None = None
    overlap: float | None = None
    near_actions: float | None = None
    near_rows: float | None = None
    followed_episodes: int | None = None
    followed_rows: int | None = None
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
    estimated_behaviour: str | None = None
    behaviour_in_words: str | None = None
    calibration_error: float | None = None
    calibration_distance: float | None = None


def diagnose(problem: Problem, *, key: jax.Array) -> Diagnostics:
    """All diagnostics, from the log and the policy."""
    data = problem.dataset
    near = near_actions(problem)
    is_discounted = problem.estimand is Estimand.PER_STEP  # elsewhere no part of the value lies after a truncation
    record = data.estimated_behaviour
    of_log = Diagnostics(
        float(np.ptp(data.reward)),
        largest_reward_share(data.reward),
        repeated_episodes(data),
        unseen_actions(problem),
        beyond_truncation(problem, np.exp(-problem.log_uncensored)) if is_discounted else None,
        truncation=assumptions.truncation(data) if is_discounted else None,
        trend=assumptions.trend(problem),
        neighbours=assumptions.neighbours(problem),
        near_actions=None if near is None else near.share,
        near_rows=None if near is None else near.rows,
        estimated_behaviour=None if record is None else record.model,
        behaviour_in_words=None if record is None else in_words(record.model, data.is_discrete),
        calibration_error=None if record is None else record.calibration_error,
        calibration_distance=None if record is None else record.calibration_distance,
    )
    try:
        products = np.exp(by_decision_normalised(problem))
    except NotApplicable:
        return of_log
    weights = episode_weights(problem, products)
    shares = weights / weights.sum() if weights.any() else weights
    heaviest = np.argsort(-shares)[:NUM_HEAVIEST]
    names = data.extra.get(EPISODE_NAME)
    ratios = EstimatedRatios.of(problem)
    mean, distance = assumptions.mean_ratio(problem, ratios)
    step, step_ratio, step_distance = assumptions.worst_step(problem, ratios)
    balance = assumptions.balance(problem, ratios, key=key)
    follows = ~np.isneginf(problem.log_ratio)
    followed = None if follows.all() else int(np.isfinite(problem.final_log_product).sum())
    return replace(
        of_log,
        mean_ratio=mean,
        mean_ratio_distance=distance,
        mean_ratio_excess=ratios.excess,
        worst_step=step,
        worst_step_ratio=step_ratio,
        worst_step_distance=step_distance,
        balance=balance.distance,
        missing_mass=balance.missing,
        excess_mass=balance.excess,
        memory=None if data.is_one_step else assumptions.memory(problem),
        overlap=float(np.minimum(1.0, problem.ratio).mean()),
        followed_episodes=followed,
        followed_rows=None if followed is None else int(follows.sum()),
        effective_episodes=effective_number(weights),
        by_step=tuple(effective_by_step(problem, products)),
        pareto_k=pareto_k(weights),
        heaviest=tuple(
            Heavy(int(data.episode[row]), float(shares[one]), None if names is None else str(names[row]))
            for one, row in zip(heaviest, data.starts[heaviest], strict=True)
        ),
        weights=tuple(float(share) for share in np.sort(shares)[::-1]),
        mass_found=mass_found(problem, key),
        beyond_truncation=beyond_truncation(problem, products) if is_discounted else None,
        flow_residual=flow_residual(problem, key),
    )


def with_reward(found: Diagnostics, problem: Problem) -> Diagnostics:
    """The diagnostics of a problem, from those of the same problem with another reward."""
    data = problem.dataset
    return replace(
        found,
        reward_range=float(np.ptp(data.reward)),
        largest_reward_share=largest_reward_share(data.reward),
        repeated_episodes=repeated_episodes(data),
        truncation=assumptions.truncation(data) if problem.estimand is Estimand.PER_STEP else None,
        trend=assumptions.trend(problem),
        neighbours=assumptions.neighbours(problem),
    )


def mass_found(problem: Problem, key: jax.Array) -> float | None:
    """The mass of Average-DICE's ratio; shared with the recommended estimator if that has been prepared."""
    try:
        return float(prepared_once(AverageDICE(), problem, key=key).fit().diagnostics["flow_mass"])
    except NotApplicable:
        return None
