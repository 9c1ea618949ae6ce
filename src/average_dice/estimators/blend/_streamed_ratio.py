"""The ratio of Average-DICE on a log in blocks: the default regression, from sums over blocks.

    v(s, t) ≈ E[∏_{k<t} ρ_k | s, t],      w = c γᵗ v,      rows weighted by γᵗ

Products are divided by their means over all episodes, and the weight after truncation is put on the last steps, as in
memory: both need sums by step alone.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.blocked_problem import BlockedProblem
from average_dice.estimators.blend._passes import Block, total
from average_dice.features.fourier import FourierMap
from average_dice.labels import HeldAtTruncation
from average_dice.models.fourier import NUM_FOLDS, FourierFeatures, choose_ridge, solve_ridge, sums_of
from average_dice.problem import Problem, log_power
from average_dice.randomness import generator_from
from average_dice.step_sums import log_sum


@dataclass(frozen=True, eq=False)
class RatioTargets:
    """What the regression of a block needs of the whole log, all of it by step."""

    problem: BlockedProblem
    completion: HeldAtTruncation

    def products(self, block: Problem) -> np.ndarray:
        """∏_{k<t} ρ_k over its mean."""
        sums = self.problem.sums
        return np.exp(sums.over_mean(block.log_product, block.dataset.step, sums.log_mean_before))

    def weights(self, block: Problem) -> np.ndarray:
        """γᵗ, 1 on average over the whole log."""
        return self._weight[block.dataset.step]

    def row_scale(self, block: Problem) -> np.ndarray:
        """c times the discount weight, so that w = row_scale · v."""
        return self._row_scale[block.dataset.step]

    @cached_property
    def _weight(self) -> Float[np.ndarray, " step"]:
        sums = self.problem.sums
        weight = self.problem.discount ** np.arange(sums.horizon)
        return weight * sums.num_transitions / float(sums.reached @ weight)

    @cached_property
    def _row_scale(self) -> Float[np.ndarray, " step"]:
        """As `HeldAtTruncation` computes it from rows."""
        sums, discount = self.problem.sums, self.problem.discount
        steps, last = np.arange(sums.horizon), sums.horizon - 1
        logged = log_power(discount, steps) - sums.log_uncensored
        shift = sums.log_mean_before + sums.log_uncensored
        holding = steps >= sums.horizon - self.completion.num_steps
        with np.errstate(divide="ignore"):
            leaving = np.logaddexp(sums.stopping, sums.going_on + np.log(1.0 - discount)) - shift
        inflow = log_power(discount, sums.horizon) + sums.going_on[last] - shift[last]
        factor = inflow - log_sum(leaving[holding]) if np.isfinite(inflow) else -np.inf
        held = np.where(holding, factor - sums.log_uncensored, -np.inf)
        return self.problem.scale * np.exp(np.logaddexp(logged, held))


@dataclass(frozen=True, eq=False)
class StreamedRatio:
    """v = φᵀθ, or a constant where all targets are equal."""

    targets: RatioTargets
    features: FourierMap
    theta: Float[np.ndarray, " feature"]
    gram: Float[np.ndarray, "feature feature"]  # with the penalty, on average over rows
    ridge: float
    constant: float | None

    def inputs(self, block: Problem) -> np.ndarray:
        """φ(s, t)."""
        return self.features(_inputs(block)).astype(np.float64)

    def values(self, block: Problem, phi: np.ndarray) -> np.ndarray:
        """v on the rows of a block with these features."""
        return np.full(len(phi), self.constant) if self.constant is not None else phi @ self.theta


@dataclass(frozen=True, eq=False)
class RatioSums:
    """The sums of each fold, its number of rows, and the least and the largest target."""

    folds: Float[np.ndarray, "fold both both"]  # of features and targets
    sizes: Int[np.ndarray, " fold"]
    least: float
    most: float

    @staticmethod
    def of(
        targets: RatioTargets, features: FourierMap, fold_of: np.ndarray, num_folds: int, block: Block
    ) -> "RatioSums":
        """Of a block."""
        one = block.problem
        phi, target, weight = features(_inputs(one)), targets.products(one), np.sqrt(targets.weights(one))
        fold = fold_of[block.first + one.episode_index]
        rows = [np.flatnonzero(fold == number) for number in range(num_folds)]
        sums = np.array([sums_of(phi[some], target[some], weight[some]) for some in rows])
        return RatioSums(sums, np.array([len(some) for some in rows]), float(target.min()), float(target.max()))

    def merge(self, other: "RatioSums") -> "RatioSums":
        """Of both."""
        least, most = min(self.least, other.least), max(self.most, other.most)
        return RatioSums(self.folds + other.folds, self.sizes + other.sizes, least, most)


def fit_ratio(
    problem: BlockedProblem, model: FourierFeatures, completion: HeldAtTruncation, key: jax.Array
) -> StreamedRatio:
    """One pass: the sums of each fold of episodes, which choose the ridge."""
    targets = RatioTargets(problem, completion)
    generator = generator_from(key)
    features = FourierMap.draw(_inputs(problem.sample), model.num_features, generator)
    num_episodes = problem.sums.num_episodes
    num_folds = min(NUM_FOLDS, num_episodes)
    fold_of = (generator.permutation(num_episodes) % num_folds).astype(np.int8)
    found = total(partial(RatioSums.of, targets, features, fold_of, num_folds), RatioSums.merge, problem)
    every, sizes = found.folds, found.sizes
    num_rows = int(sizes.sum())
    constant = found.least if found.least == found.most else None
    ridge = max(model.ridges) if constant is not None else choose_ridge(model.ridges, list(every), sizes.tolist())
    whole = every.sum(axis=0)
    theta = np.zeros(features.size) if constant is not None else solve_ridge(whole, ridge * num_rows)
    gram = whole[:-1, :-1] / num_rows
    gram.flat[features.size + 1 :: features.size + 1] += ridge
    return StreamedRatio(targets, features, theta, gram, ridge, constant)


def _inputs(problem: Problem) -> np.ndarray:
    """The state and the step."""
    data = problem.dataset
    return np.column_stack([data.encoding.encode(data.observation), data.step])
