"""The candidates of the blend: the estimate of each critic alone, corrected by products of ratios, or by the ratio.

    J_j = E[v(s₀)] + (1/K) Σ_{rows, t<j} γᵗ W_t δ_t          W_t = ρ_{0:t} over its mean over episodes
    J_w = E[v(s₀)] + mean of w ρ δ / (1 − γ)

with their errors by episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from average_dice.estimators._shared.ratio_fits import added_by_episode
from average_dice.estimators.blend._critics import ScoredCritic
from average_dice.estimators.importance.importance_sampling import by_decision_normalised
from average_dice.notes import Note, NoteCode
from average_dice.problem import Episodes, Problem, Rows

VALUES, PRODUCTS, RATIO = KINDS = ("values", "products", "ratio")


BY_CRITIC = Note(NoteCode.TRUNCATION_BY_CRITIC, "learnt values replace the rewards after truncation")
LEAST_ABOVE_ONE = 1e-3  # of ESS − 1, the degrees of freedom of the products at a step


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
    left: list[float]  # γʲ times the share of episodes that go on, after each of these numbers of steps; see `of`
    stage: Int[np.ndarray, " transition"]  # the first reach that includes the row

    @staticmethod
    def of(problem: Problem, *, strict: bool) -> "Products":
        """The products of a log. `strict`: with the factor ESS/(ESS − 1) of small samples in the variance.

        The share of episodes that go on is that of π, by the products, or that of the log if it is larger: the first is
        noise where few episodes have weight.
        """
        data, step = problem.dataset, problem.dataset.step
        products = np.exp(by_decision_normalised(problem))
        reach = int(step[products > 0].max()) + 1
        discounted = problem.discount**step
        sums, squares, num_episodes = np.bincount(step, products), np.bincount(step, products**2), np.bincount(step)
        effective = np.divide(sums**2, squares, out=np.zeros(len(sums)), where=squares > 0)
        noise = np.sqrt(squares / num_episodes) / data.num_episodes
        noise *= small_sample(effective) if strict else 1.0
        reaches = [2**power for power in range(reach.bit_length()) if 2**power < reach] + [reach]
        going_on = np.bincount(step, products * ~data.terminated) / data.num_episodes
        still = np.bincount(step, ~data.terminated) / data.num_episodes
        last = step.max() + 1
        return Products(
            discounted * products,
            discounted * noise[step],
            float(problem.discount**last * going_on[last - 1]),
            reaches,
            [float(problem.discount**one * max(going_on[one - 1], still[one - 1])) for one in reaches],
            np.searchsorted(reaches, step + 1),
        )

    def by_reach(self, values: Rows, group: Int[np.ndarray, " transition"], num_groups: int) -> np.ndarray:
        """Sums of the values of each group over the steps within each reach: [reach, group]."""
        num_stages = len(self.reaches) + 1  # the last is after all of them
        sums = np.bincount(self.stage * num_groups + group, values, num_stages * num_groups)
        return np.cumsum(sums.reshape(num_stages, num_groups)[:-1], axis=0)


def small_sample(effective: Float[np.ndarray, " step"]) -> Float[np.ndarray, " step"]:
    """√(ESS/(ESS − 1)), as n/(n − 1) in a variance: one effective episode shows nothing."""
    return np.sqrt(np.maximum(effective, 1.0) / np.maximum(effective - 1.0, LEAST_ABOVE_ONE))


def candidates_of(
    problem: Problem, critics: list[ScoredCritic], ratios: Sequence[Rows], *, strict: bool = False
) -> list[Candidate]:
    """All candidates of all critics. `ratios`: the weights of rows by each ratio; without any, only the values."""
    products = Products.of(problem, strict=strict) if ratios else None
    return [candidate for critic in critics for candidate in _of_critic(problem, critic, ratios, products)]


def _of_critic(
    problem: Problem, critic: ScoredCritic, ratios: Sequence[Rows], products: Products | None
) -> list[Candidate]:
    num_episodes = problem.dataset.num_episodes
    direct = float(critic.start.mean())
    starts = (critic.start - direct) / num_episodes
    own = (critic.error - critic.error.mean()) / num_episodes
    found = [Candidate(VALUES, products is None, direct, starts + own, critic.unsettled)]
    if products is None:
        return found

    one_group = np.zeros(len(critic.td_error), int)
    corrections = products.by_reach(products.weight * critic.td_error, one_group, 1)[:, 0] / num_episodes
    scatter = products.by_reach(products.noise * critic.td_error, problem.episode_index, num_episodes)
    for place, left in enumerate(products.left):
        full, value = place == len(products.reaches) - 1, direct + float(corrections[place])
        errors = starts + left * own + scatter[place]
        found.append(Candidate(PRODUCTS, full, value, errors, left * critic.unsettled))

    for weights in ratios:
        carried = added_by_episode(problem, weights * critic.td_error / problem.normaliser)
        value = direct + float(carried.mean())
        errors = starts + (carried - carried.mean()) / num_episodes + products.remaining * own
        found.append(Candidate(RATIO, False, value, errors, products.remaining * critic.unsettled))
    return found


def errors_of(candidates: list[Candidate], num_critics: int) -> np.ndarray:
    """Rows of errors: by episode, and one more source for each critic that did not converge."""
    by_episode = np.array([candidate.errors for candidate in candidates])
    unsettled = np.array([candidate.unsettled for candidate in candidates]).reshape(num_critics, -1)
    own = np.einsum("cn,cd->cnd", unsettled, np.eye(num_critics)).reshape(len(candidates), num_critics)
    return np.hstack([by_episode, own])


def shares_by_kind(kinds: Sequence[str], full: np.ndarray, values: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """The mean value of the candidates of each kind, and their share of the weight."""
    means, shares = {}, {}
    for kind in KINDS:
        of_kind = np.array([one == kind for one in kinds])
        if (shown := of_kind & (full | (kind != PRODUCTS))).any():
            means[f"by_{kind}"] = float(np.mean(values[shown]))
        shares[f"share_by_{kind}"] = float(weights[of_kind].sum())
    return means | shares
