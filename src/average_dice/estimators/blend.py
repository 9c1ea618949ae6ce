"""The recommended estimator: doubly robust estimates of every reach, blended by what the log says about their errors.

A critic q with δ = (1 − γ) r + γ m v(s′) − q(s, a) gives, for every j, the estimate that trusts products of ratios for
j steps and the critic from there on, and one more with the weights of Average-DICE:

    J_j = E[v(s₀)] + (1/K) Σ_{rows, t<j} γᵗ W_t δ_t          W_t = ρ_{0:t} over its mean over episodes
    J_w = E[v(s₀)] + mean of w ρ δ / (1 − γ)

j = 0 is fitted Q, j = ∞ is weighted DR. There is a critic for each of several ridges on each of several draws of
features. No single one of all these is best on every log: products collapse where π and μ differ, ridges bias, critics
extrapolate. How far each can be trusted is estimated from episodes:

- the starts and the critic: v(s₀) + γʲ ζδ, where ζ = φᵀA⁻ᵀE[φ(s₀)] is how the solution θ = A⁻¹b answers to a row. The
  factor γʲ because the ratios have mended the first j steps.
- the products: γᵗ δ_t / √ESS_t summed over t < j, where ESS_t is the effective number of episodes at step t. The size
  of δ is taken from all episodes: the weighted ones alone would show no spread when only one of them is left.

`combine` does the rest. Its reference is the mean of the estimates that are corrected as far as the log goes. What it
says of its own error is in sample, the least among many, and too small: use it to compare, not as an interval.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from ..errors import NotApplicable
from ..problem import Problem
from ..resampling import Draw
from .average_dice import AverageDICE
from .base import ClosedForm, Critic, Fit, Refit
from .bounded_q import BoundedEquations, Solution
from .combination import combine
from .doubly_robust import by_decision_over_mean
from .pair_features import LinearProblem, bounds
from .weighting import Rows, added_by_episode, is_cut

Episodes = Float[np.ndarray, " episode"]


@dataclass(frozen=True, eq=False)
class LinearCritic:
    """A critic's values at the starts, its δ on the rows, and its own sampling error by episode."""

    start: Episodes
    surprise: Rows
    error: Episodes


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimate by "values" alone, corrected by "products" or by the "ratio", with its errors by episode.

    `full`: corrected by products as far as the log goes, or by nothing if there is nothing to correct by.
    """

    kind: str
    full: bool
    value: float
    errors: Episodes


@dataclass(frozen=True)
class Blend(ClosedForm):
    """Critics on `num_draws` draws of `num_features` Fourier features, with each of the `ridges`.

    `ratio` gives the weights of rows. `overlap`: how many standard errors apart two estimates may be by chance.
    Without a policy object there are no critics, and the answer is that of `ratio`; without μ there are no ratios, and
    the critics stand alone.
    """

    num_features: int = 200
    num_draws: int = 2
    ridges: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    ratio: AverageDICE = AverageDICE()
    overlap: float = 2.0

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        with threadpool_limits(1, "blas"):  # threads that wait for each other cost more than they bring
            return super().fit(problem, key=key)

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        try:
            learn = self._critics(problem, key)
        except NotApplicable as reason:
            return self._by_ratios_alone(problem, key, str(reason))
        try:
            refit_ratio, missing = self.ratio.prepare(problem, key=key), None
        except NotApplicable as reason:
            refit_ratio, missing = None, str(reason)

        def refit(draw: Draw) -> Fit:
            critics, mean_critic = learn(draw)
            weighting = None if refit_ratio is None else refit_ratio(draw)
            return self._blend(draw.problem, critics, mean_critic, weighting, missing)

        return refit

    def _by_ratios_alone(self, problem: Problem, key: jax.Array, reason: str) -> Refit:
        refit_ratio = self.ratio.prepare(problem, key=key)

        def refit(draw: Draw) -> Fit:
            alone = refit_ratio(draw)
            return replace(alone, notes=(*alone.notes, f"by ratios alone: {reason}"))

        return refit

    def _blend(
        self,
        problem: Problem,
        critics: list[LinearCritic],
        mean_critic: Critic,
        weighting: Fit | None,
        missing: str | None,
    ) -> Fit:
        candidates = _candidates(problem, critics, None if weighting is None else weighting.weights)
        full = np.array([candidate.full for candidate in candidates])
        values = np.array([candidate.value for candidate in candidates])
        errors = np.array([candidate.errors for candidate in candidates])
        found = combine(values, errors, full / full.sum(), overlap=self.overlap)
        shares = {
            f"share_by_{kind}": float(found.weights[[candidate.kind == kind for candidate in candidates]].sum())
            for kind in ("values", "products", "ratio")
        }
        families = {
            f"by_{kind}": float(np.mean(of_kind))
            for kind in ("values", "products", "ratio")
            if (of_kind := [one.value for one in candidates if one.kind == kind and (one.full or kind != "products")])
        }
        if weighting is None:
            notes = [f"by values alone: {missing}"]
        else:
            notes = [note for note in weighting.notes if note not in self.ratio.choices(problem)]
            notes += ["beyond the cut the critics stand for the rest"] if is_cut(problem) else []
        return Fit(
            float(np.clip(found.value, *bounds(problem))),
            ratio_function=None if weighting is None else weighting.ratio_function,
            critic=mean_critic,
            diagnostics={
                "in_sample_error": found.standard_error,
                "reference": float(values[full].mean()),
                **families,
                **shares,
                **({} if weighting is None else {"effective_episodes": problem.effective_episodes}),
            },
            notes=tuple(notes),
        )

    def _critics(self, problem: Problem, key: jax.Array) -> Callable[[Draw], tuple[list[LinearCritic], Critic]]:
        """All critics of a draw; and the mean over ridges on the first features, to be asked about any state."""
        linears = [
            LinearProblem.of(problem, self.num_features, jax.random.fold_in(key, draw))
            for draw in range(self.num_draws)
        ]
        equations = [BoundedEquations.of(problem, linear) for linear in linears]

        def learn(draw: Draw) -> tuple[list[LinearCritic], Critic]:
            solutions = [one.solve(self.ridges, draw) for one in equations]
            critics = [
                critic
                for one, solved in zip(equations, solutions, strict=True)
                for critic in _linear_critics(one, solved, draw)
            ]
            mean = np.mean([solution.theta for solution in solutions[0]], axis=0)
            return critics, linears[0].critic(mean, equations[0].low, equations[0].high)

        return learn


def _linear_critics(equations: BoundedEquations, solutions: list[Solution], draw: Draw) -> list[LinearCritic]:
    linear, low, high = equations.linear, equations.low, equations.high
    thetas = np.column_stack([solution.theta for solution in solutions])
    after = np.column_stack([solution.after for solution in solutions])
    start = linear.start @ thetas
    moves = (start > low) & (start < high)  # at a bound nothing answers
    pulls = linear.start.T @ (moves * draw.counts[:, None]) / draw.counts.sum()
    answers = [solution.system.solve_transposed(pull) for solution, pull in zip(solutions, pulls.T, strict=True)]
    on_rows = linear.logged @ np.column_stack([thetas, *answers])
    logged, answer = on_rows[:, : len(solutions)], on_rows[:, len(solutions) :]
    target = equations.reward[:, None] + equations.passed_on[:, None] * np.clip(after, low, high)
    surprise = draw.of_rows(target - np.clip(logged, low, high))
    error = draw.of_rows(answer * (target - logged))
    start = draw.of_episodes(np.clip(start, low, high))
    return [
        LinearCritic(start[:, one], surprise[:, one], added_by_episode(draw.problem, error[:, one]))
        for one in range(len(solutions))
    ]


def _candidates(problem: Problem, critics: list[LinearCritic], weights: Rows | None) -> list[Candidate]:
    """Every estimate that the critics take part in; their values alone where there are no `weights` of rows."""
    products = None if weights is None else Products.of(problem)
    return [candidate for critic in critics for candidate in _of_critic(problem, critic, weights, products)]


@dataclass(frozen=True, eq=False)
class Products:
    """W_t = ρ_{0:t} over its mean over episodes, on the rows; and how far corrections by it may reach."""

    weight: Rows  # γᵗ W_t
    noise: Rows  # γᵗ / √ESS_t
    reaches: list[int]
    stage: Int[np.ndarray, " transition"]  # the first reach that includes the row

    @staticmethod
    def of(problem: Problem) -> "Products":
        step = problem.dataset.step
        products = np.exp(by_decision_over_mean(problem))
        reach = int(step[products > 0].max()) + 1
        discounted = problem.discount**step
        squares, num_alive = np.bincount(step, products**2), np.bincount(step)
        noise = np.sqrt(squares / num_alive)[step] / problem.dataset.num_episodes
        reaches = [2**power for power in range(reach.bit_length()) if 2**power < reach] + [reach]
        return Products(discounted * products, discounted * noise, reaches, np.searchsorted(reaches, step + 1))

    def by_reach(self, values: Rows, group: Int[np.ndarray, " transition"], num_groups: int) -> np.ndarray:
        """Sums of the values of each group over the steps within each reach: [reach, group]."""
        num_stages = len(self.reaches) + 1  # the last is beyond all of them
        sums = np.bincount(self.stage * num_groups + group, values, num_stages * num_groups)
        return np.cumsum(sums.reshape(num_stages, num_groups)[:-1], axis=0)


def _of_critic(
    problem: Problem, critic: LinearCritic, weights: Rows | None, products: Products | None
) -> list[Candidate]:
    num_episodes, discount = problem.dataset.num_episodes, problem.discount
    direct = float(critic.start.mean())
    starts = critic.start - direct
    own = critic.error - critic.error.mean()
    found = [Candidate("values", products is None, direct, (starts + own) / num_episodes)]
    if weights is None or products is None:
        return found

    everyone = np.zeros(len(critic.surprise), int)
    corrections = products.by_reach(products.weight * critic.surprise, everyone, 1)[:, 0] / num_episodes
    scatter = products.by_reach(products.noise * critic.surprise, problem.episode_index, num_episodes)
    for reach, correction, scattered in zip(products.reaches, corrections, scatter, strict=True):
        errors = scattered + (starts + discount**reach * own) / num_episodes
        found.append(Candidate("products", reach == products.reaches[-1], direct + float(correction), errors))

    carried = added_by_episode(problem, weights * critic.surprise / (1 - discount))
    errors = (starts + carried - carried.mean()) / num_episodes
    return [*found, Candidate("ratio", False, direct + float(carried.mean()), errors)]
