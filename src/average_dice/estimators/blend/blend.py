"""The recommended estimator: doubly robust estimates of every reach, blended by what the log says about their errors.

A critic q with δ = (1 − γ) r + γ m v(s′) − q(s, a) gives, for every j, the estimate that trusts products of ratios for
j steps and the critic from there on, and one more with the weights of Average-DICE:

    J_j = E[v(s₀)] + (1/K) Σ_{rows, t<j} γᵗ W_t δ_t          W_t = ρ_{0:t} over its mean over episodes
    J_w = E[v(s₀)] + mean of w ρ δ / (1 − γ)

W_t is also over the share of episodes not yet truncated at t.
j = 0 is fitted Q, j = ∞ is weighted DR. There is a critic for each of several ridges on each of several draws of
features. No single one of all these is best on every log: products collapse where π and μ differ, ridges bias, critics
extrapolate. How far each can be trusted is estimated from episodes:

- the starts and the critic: v(s₀) + γʲ ζδ, where ζ = φᵀA⁻ᵀE[φ(s₀)] is how the solution θ = A⁻¹b answers to a row. The
  factor γʲ because the ratios have mended the first j steps.
- the products: γᵗ δ_t / √ESS_t summed over t < j, where ESS_t is the effective number of episodes at step t. The size
  of δ is taken from all episodes: the weighted ones alone would show no spread when only one of them is left.

`combine` does the rest. Its reference is the mean, by precision, of the estimates corrected as far as the log goes.
What it says of its own error is in sample, the least among many, and too small: use it to compare, not as an interval.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.bounded_td import BoundedTD, Solution
from average_dice.estimators._shared.linear_critic import CriticFeatures, bounds
from average_dice.estimators.base import ClosedForm, Critic, Fit, Refit
from average_dice.estimators.blend._mixing_weights import combine
from average_dice.estimators.importance.importance_sampling import by_decision_normalised
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.value_rules import Rows, added_by_episode, is_truncated
from average_dice.problem import Problem
from average_dice.resampling import Draw

Episodes = Float[np.ndarray, " episode"]

PARTS = (0.1, 0.25, 0.5, 0.75)  # quantiles of the steps of all rows
LEAST_VARIANCE = 1e-4  # of the noisiest: no reference is trusted more than a hundred times as far as another


@dataclass(frozen=True, eq=False)
class LinearCritic:
    """A critic's values at the starts, its δ on the rows, and its own sampling error by episode.

    `unsettled`: by how much its value moves between solutions that did not settle; 0 if they did.
    """

    start: Episodes
    td_error: Rows
    error: Episodes
    unsettled: float = 0.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimate by "values" alone, corrected by "products" or by the "ratio", with its errors by episode.

    `full`: corrected by products as far as the log goes, or by nothing if there is nothing to correct by.
    `unsettled`: an error of its critic that no episode explains.
    """

    kind: str
    full: bool
    value: float
    errors: Episodes
    unsettled: float


RowWeights = Callable[[Problem], Rows]


def evenly(problem: Problem) -> Rows:
    """Every row counts the same."""
    return np.ones(problem.dataset.num_transitions)


def discounted(problem: Problem) -> Rows:
    """γᵗ: rows count as they do in J.

    Where π acts like the log, TD is a contraction in this norm, and rewards that γᵗ no longer sees do not disturb it.
    """
    return problem.discount**problem.dataset.step


@dataclass(frozen=True)
class Blend(ClosedForm):
    """Critics on draws of `num_features` Fourier features, one for each of the `weights` of rows, with all `ridges`.

    Where the TD errors of the first ones depend on the step by more than `clock` standard errors, something that is not
    observed runs like a clock: one more draw then sees the step, too.
    `ratio` gives the weights of rows. `overlap`: how many standard errors apart two estimates may be by chance.
    Without a policy object there are no critics, and the answer is that of `ratio`; without μ there are no ratios, and
    the critics stand alone.
    """

    num_features: int = 200
    weights: tuple[RowWeights, ...] = (evenly, discounted)
    ridges: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    ratio: AverageDICE = AverageDICE()
    overlap: float = 2.0
    clock: float = 15.0

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
        errors = _errors(candidates, len(critics))
        reference = _reference(errors, full)
        found = combine(values, errors, reference, overlap=self.overlap)
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
            notes += ["beyond the cut the critics stand for the rest"] if is_truncated(problem) else []
        return Fit(
            float(np.clip(found.value, *bounds(problem))),
            ratio_function=None if weighting is None else weighting.ratio_function,
            critic=mean_critic,
            diagnostics={
                "in_sample_error": found.standard_error,
                "reference": float(reference @ values),
                "reference_error": float(np.linalg.norm(reference @ errors)),
                **families,
                **shares,
                **({} if weighting is None else {"effective_episodes": problem.effective_episodes}),
            },
            notes=tuple(notes),
        )

    def _critics(self, problem: Problem, key: jax.Array) -> Callable[[Draw], tuple[list[LinearCritic], Critic]]:
        """All critics of a draw; and the mean over ridges on the first features, to be asked about any state."""
        equations = [
            self._equations(problem, jax.random.fold_in(key, number), weights)
            for number, weights in enumerate(self.weights)
        ]
        every = Draw.everything(problem)
        first = _linear_critics(equations[0], equations[0].solve(self.ridges, every), every)
        dependence = min(step_dependence(problem, critic.td_error) for critic in first)
        if dependence > self.clock:
            equations.append(self._equations(problem, jax.random.fold_in(key, len(equations)), evenly, with_step=True))

        def learn(draw: Draw) -> tuple[list[LinearCritic], Critic]:
            solutions = [one.solve(self.ridges, draw) for one in equations]
            critics = [
                critic
                for one, solved in zip(equations, solutions, strict=True)
                for critic in _linear_critics(one, solved, draw)
            ]
            mean = np.mean([solution.theta for solution in solutions[0]], axis=0)
            return critics, equations[0].linear.critic(mean, equations[0].low, equations[0].high)

        return learn

    def _equations(
        self, problem: Problem, key: jax.Array, weights: RowWeights, *, with_step: bool = False
    ) -> BoundedTD:
        linear = CriticFeatures.of(problem, self.num_features, key, with_step=with_step)
        return BoundedTD.of(problem, linear, weights(problem))


def step_dependence(problem: Problem, td_error: Rows) -> float:
    """By how many standard errors, over episodes, the mean of δ differs from 0 in some part of the episode.

    A critic of states and actions leaves no such mean behind, unless what it cannot see depends on the step.
    """
    data = problem.dataset
    parts = np.searchsorted(np.quantile(data.step, PARTS), data.step, side="right")
    largest = 0.0
    for part in np.unique(parts):
        sums = np.bincount(problem.episode_index, np.where(parts == part, td_error, 0.0), data.num_episodes)
        error = float(sums.std(ddof=1)) / np.sqrt(len(sums)) if len(sums) > 1 else 0.0
        largest = max(largest, abs(float(sums.mean())) / error if error > 0 else 0.0)
    return largest


def _linear_critics(equations: BoundedTD, solutions: list[Solution], draw: Draw) -> list[LinearCritic]:
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
    td_error = draw.of_rows(target - np.clip(logged, low, high))
    counted = equations.unit(draw) * equations.weights[:, None]
    error = draw.of_rows(counted * answer * (target - logged))
    start = draw.of_episodes(np.clip(start, low, high))
    return [
        LinearCritic(
            start[:, one],
            td_error[:, one],
            added_by_episode(draw.problem, error[:, one]),
            _spread(draw.mean_over_episodes(np.clip(linear.start @ solution.unsettled, low, high))),
        )
        for one, solution in enumerate(solutions)
    ]


def _reference(errors: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Weights of the fully corrected estimates, by their precision: one that is all noise must not hide a bias."""
    variance = np.sum(errors**2, axis=1)
    least = LEAST_VARIANCE * variance[full].max()  # at a bound of the rewards an estimate may claim no error at all
    precision = full / np.maximum(variance, least) if least > 0 else full.astype(np.float64)
    return precision / precision.sum()


def _spread(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _errors(candidates: list[Candidate], num_critics: int) -> np.ndarray:
    """Rows of errors for `combine`: by episode, and one more source for each critic that did not settle."""
    by_episode = np.array([candidate.errors for candidate in candidates])
    unsettled = np.array([candidate.unsettled for candidate in candidates]).reshape(num_critics, -1)
    own = np.einsum("cn,cd->cnd", unsettled, np.eye(num_critics)).reshape(len(candidates), num_critics)
    return np.hstack([by_episode, own])


def _candidates(problem: Problem, critics: list[LinearCritic], weights: Rows | None) -> list[Candidate]:
    """Every estimate that the critics take part in; their values alone where there are no `weights` of rows."""
    products = None if weights is None else Products.of(problem)
    return [candidate for critic in critics for candidate in _of_critic(problem, critic, weights, products)]


@dataclass(frozen=True, eq=False)
class Products:
    """W_t = ρ_{0:t} over its mean over episodes, on the rows; and how far corrections by it may reach."""

    weight: Rows  # γᵗ W_t
    noise: Rows  # γᵗ / √ESS_t
    beyond: float  # the share of the weight that crosses the last truncation
    reaches: list[int]
    stage: Int[np.ndarray, " transition"]  # the first reach that includes the row

    @staticmethod
    def of(problem: Problem) -> "Products":
        step = problem.dataset.step
        products = np.exp(by_decision_normalised(problem))
        reach = int(step[products > 0].max()) + 1
        discounted = problem.discount**step
        squares, num_alive = np.bincount(step, products**2), np.bincount(step)
        noise = np.sqrt(squares / num_alive)[step] / problem.dataset.num_episodes
        reaches = [2**power for power in range(reach.bit_length()) if 2**power < reach] + [reach]
        last = (step == step.max()) & ~problem.dataset.terminated
        beyond = float(problem.discount ** (step.max() + 1) * products[last].sum()) / problem.dataset.num_episodes
        stage = np.searchsorted(reaches, step + 1)
        return Products(discounted * products, discounted * noise, beyond, reaches, stage)

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
    found = [Candidate("values", products is None, direct, (starts + own) / num_episodes, critic.unsettled)]
    if weights is None or products is None:
        return found

    everyone = np.zeros(len(critic.td_error), int)
    corrections = products.by_reach(products.weight * critic.td_error, everyone, 1)[:, 0] / num_episodes
    scatter = products.by_reach(products.noise * critic.td_error, problem.episode_index, num_episodes)
    for reach, correction, scattered in zip(products.reaches, corrections, scatter, strict=True):
        errors = scattered + (starts + discount**reach * own) / num_episodes
        full, left = reach == products.reaches[-1], discount**reach
        found.append(Candidate("products", full, direct + float(correction), errors, left * critic.unsettled))

    carried = added_by_episode(problem, weights * critic.td_error / (1 - discount))
    left = products.beyond
    errors = (starts + carried - carried.mean() + left * own) / num_episodes
    return [*found, Candidate("ratio", False, direct + float(carried.mean()), errors, left * critic.unsettled)]
