"""The candidates of the blend: the estimate of each critic alone, corrected by products of ratios, or by the ratio.

    J_j = E[v(s₀)] + (1/K) Σ_{rows, t<j} γᵗ W_t δ_t          W_t = ρ_{0:t} over its mean over episodes
    J_w = E[v(s₀)] + mean of w ρ δ / (1 − γ)

with their errors by episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from average_dice.estimators._shared.ratio_fits import added_by_episode
from average_dice.estimators.blend._critics import ScoredCritic
from average_dice.estimators.importance.importance_sampling import by_decision_normalised
from average_dice.problem import Episodes, Problem, Rows

VALUES, PRODUCTS, RATIO = KINDS = ("values", "products", "ratio")


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimate by values alone, or corrected by products or by the ratio, with its errors by episode.

    `full`: corrected by products to the end of the log, or not corrected if there are no ratios.
    `unsettled`: the error of a critic that did not converge, which no episode explains.
    """

    kind: str
    full: bool
    value: float
    errors: Episodes
    unsettled: float


@dataclass(frozen=True, eq=False)
class Products:
    """W_t = ρ_{0:t} over its mean over episodes, on the rows; and the numbers of steps that it may correct."""

    weight: Rows  # γᵗ W_t
    noise: Rows  # γᵗ / √ESS_t
    remaining: float  # the share of the weight after the last truncation
    reaches: list[int]  # numbers of steps: powers of 2, and the last step with weight
    stage: Int[np.ndarray, " transition"]  # the first reach that includes the row

    @staticmethod
    def of(problem: Problem) -> "Products":
        """The products of a log."""
        step = problem.dataset.step
        products = np.exp(by_decision_normalised(problem))
        reach = int(step[products > 0].max()) + 1
        discounted = problem.discount**step
        squares, num_episodes = np.bincount(step, products**2), np.bincount(step)
        noise = np.sqrt(squares / num_episodes)[step] / problem.dataset.num_episodes
        reaches = [2**power for power in range(reach.bit_length()) if 2**power < reach] + [reach]
        last = (step == step.max()) & ~problem.dataset.terminated
        remaining = float(problem.discount ** (step.max() + 1) * products[last].sum()) / problem.dataset.num_episodes
        stage = np.searchsorted(reaches, step + 1)
        return Products(discounted * products, discounted * noise, remaining, reaches, stage)

    def by_reach(self, values: Rows, group: Int[np.ndarray, " transition"], num_groups: int) -> np.ndarray:
        """Sums of the values of each group over the steps within each reach: [reach, group]."""
        num_stages = len(self.reaches) + 1  # the last is after all of them
        sums = np.bincount(self.stage * num_groups + group, values, num_stages * num_groups)
        return np.cumsum(sums.reshape(num_stages, num_groups)[:-1], axis=0)


def candidates_of(problem: Problem, critics: list[ScoredCritic], ratios: Sequence[Rows]) -> list[Candidate]:
    """All candidates of all critics. `ratios`: the weights of rows by each ratio; without any, only the values."""
    products = Products.of(problem) if ratios else None
    return [candidate for critic in critics for candidate in _of_critic(problem, critic, ratios, products)]


def _of_critic(
    problem: Problem, critic: ScoredCritic, ratios: Sequence[Rows], products: Products | None
) -> list[Candidate]:
    num_episodes, discount = problem.dataset.num_episodes, problem.discount
    direct = float(critic.start.mean())
    starts = critic.start - direct
    own = critic.error - critic.error.mean()
    found = [Candidate(VALUES, products is None, direct, (starts + own) / num_episodes, critic.unsettled)]
    if products is None:
        return found

    one_group = np.zeros(len(critic.td_error), int)
    corrections = products.by_reach(products.weight * critic.td_error, one_group, 1)[:, 0] / num_episodes
    scatter = products.by_reach(products.noise * critic.td_error, problem.episode_index, num_episodes)
    for reach, correction, scattered in zip(products.reaches, corrections, scatter, strict=True):
        errors = scattered + (starts + discount**reach * own) / num_episodes
        full, left = reach == products.reaches[-1], discount**reach
        found.append(Candidate(PRODUCTS, full, direct + float(correction), errors, left * critic.unsettled))

    for weights in ratios:
        carried = added_by_episode(problem, weights * critic.td_error / problem.normaliser)
        errors = (starts + carried - carried.mean() + products.remaining * own) / num_episodes
        value = direct + float(carried.mean())
        found.append(Candidate(RATIO, False, value, errors, products.remaining * critic.unsettled))
    return found


def errors_of(candidates: list[Candidate], num_critics: int) -> np.ndarray:
    """Rows of errors: by episode, and one more source for each critic that did not converge."""
    by_episode = np.array([candidate.errors for candidate in candidates])
    unsettled = np.array([candidate.unsettled for candidate in candidates]).reshape(num_critics, -1)
    own = np.einsum("cn,cd->cnd", unsettled, np.eye(num_critics)).reshape(len(candidates), num_critics)
    return np.hstack([by_episode, own])
