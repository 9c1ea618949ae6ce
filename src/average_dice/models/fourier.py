"""Regression on random Fourier features, in closed form.

    θ = (ΦᵀΩΦ + nλI)⁻¹ ΦᵀΩy,        Φ the features of `features.fourier`, Ω the weights of the rows

The ridge λ is chosen by cross-validation over whole episodes: rows of one episode share their product of ratios, so the
other rows would reveal a single held-out row. Each fold contributes its own ΦᵀΦ and Φᵀy, and the error of every
candidate follows from these sums. The whole costs little more than one ΦᵀΦ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from average_dice import memory
from average_dice.features.fourier import BLOCK, FourierMap
from average_dice.linear_systems import solve
from average_dice.models.regression import Fitted, PreparedModel, RatioModel, Regression, Resampled, RowValues, ValueOf
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem
from average_dice.randomness import generator_from
from average_dice.resampling import Resample, RowSums
from average_dice.threads import in_threads

RIDGES = tuple(10.0**power for power in range(-6, 3))  # from interpolation to a constant, a decade apart
NUM_FOLDS = 6  # one more fold costs a factorisation for each ridge, and gains little

LARGEST_RIDGE = Note(
    NoteCode.LARGEST_RIDGE, "cross-validation chose the largest ridge: states hardly explain the products of ratios"
)


@dataclass(frozen=True)
class FourierFeatures(RatioModel):
    """`num_features` cosines besides the constant and the linear terms; `ridges` are the candidates for λ₁."""

    num_features: int = 300  # the cost grows with its square; the ridge limits the variance
    ridges: tuple[float, ...] = RIDGES

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        return self._features_and_fit(regression, key)[1]

    def prepare(self, problem: Problem, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> PreparedModel:
        return PreparedFourier(problem, regression, *self._features_and_fit(regression, key))

    def _features_and_fit(self, regression: Regression, key: jax.Array) -> tuple[FourierMap, Fitted]:
        generator = generator_from(key)
        num_rows, num_inputs = regression.inputs.shape
        number = memory.features_within(
            self.num_features, num_rows, lambda one: 1 + num_inputs + one, "random features of the ratio"
        )
        features = FourierMap.draw(regression.inputs, number, generator)
        if np.ptp(regression.targets) == 0:
            return features, _constant(regression.targets, max(self.ridges), features.width)
        folds = _folds(regression.episode, generator)
        # The folds run in parallel, with one BLAS thread each. On a busy machine, BLAS threads that wait for each other
        # turn a tenth of a second into several seconds.
        with threadpool_limits(1, "blas"):
            return features, self._fit(regression, features, folds)

    def _fit(self, regression: Regression, features: FourierMap, folds: list[np.ndarray]) -> Fitted:
        roots = None if regression.weights is None else np.sqrt(regression.unit_weights)

        def features_and_sums(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            phi = features(regression.inputs[rows])
            return phi, sums_of(phi, regression.targets[rows], None if roots is None else roots[rows])

        phis, sums = zip(*in_threads(features_and_sums, folds), strict=True)
        ridge = choose_ridge(self.ridges, list(sums), [len(rows) for rows in folds])
        theta = solve_ridge(np.sum(sums, axis=0), ridge * len(regression.targets))
        fitted = np.empty(len(regression.targets))
        for phi, rows in zip(phis, folds, strict=True):
            fitted[rows] = _apply(phi, theta)
        return Fitted(
            fitted,
            lambda inputs: _apply(features(inputs), theta),
            diagnostics={"ridge": ridge, "kernel_width": features.width},
            notes=(LARGEST_RIDGE,) if len(self.ridges) > 1 and ridge == max(self.ridges) else (),
        )


@dataclass(frozen=True, eq=False)
class PreparedFourier(PreparedModel):
    """Resamples share the features, the weights of the rows and the ridge of the whole log."""

    problem: Problem
    regression: Regression
    features: FourierMap
    whole: Fitted

    def fit(self) -> Fitted:
        return self.whole

    def refit(self, resamples: Sequence[Resampled]) -> list[Fitted]:
        if np.ptp(self.regression.targets) == 0 and all(np.ptp(one.regression.targets) == 0 for one in resamples):
            return [_constant(one.regression.targets, **self.whole.diagnostics) for one in resamples]
        phi, gram = self._on_rows
        weights = self.regression.unit_weights
        targets = [weights * one.resample.onto_rows(one.regression.targets, len(phi)) for one in resamples]
        rights = np.stack(targets) @ phi  # reads the features of the log once for all resamples
        thetas = [self._theta(one.resample, gram, right) for one, right in zip(resamples, rights, strict=True)]
        rows = phi @ np.column_stack(thetas)
        return [self._fitted(one.resample, rows[:, place], thetas[place]) for place, one in enumerate(resamples)]

    @cached_property
    def _on_rows(self) -> tuple[Float[np.ndarray, "row feature"], RowSums]:
        phi = self.features(self.regression.inputs).astype(np.float64)
        weighted = phi if self.regression.weights is None else self.regression.unit_weights[:, None] * phi
        return phi, RowSums(self.problem, weighted, phi)

    def _theta(self, resample: Resample, gram: RowSums, right: np.ndarray) -> np.ndarray:
        size = self.features.size
        sums = np.zeros((size + 1, size + 1))
        sums[:-1, :-1] = gram.mean(resample)
        sums[:-1, -1] = right / resample.num_rows
        sums /= resample.of_rows(self.regression.unit_weights).mean()  # 1 on average on this resample, too
        return solve_ridge(sums, self.whole.diagnostics["ridge"])

    def _fitted(self, resample: Resample, rows: np.ndarray, theta: np.ndarray) -> Fitted:
        if resample.chosen is None:
            return self.whole
        features = self.features
        return replace(self.whole, rows=resample.of_rows(rows), predict=lambda inputs: _apply(features(inputs), theta))


def _constant(targets: RowValues, ridge: float, kernel_width: float) -> Fitted:
    """The fit if all targets are equal, as for π = μ: there is nothing to learn."""
    value = float(targets[0])
    diagnostics = {"ridge": ridge, "kernel_width": kernel_width}
    return Fitted(targets.copy(), lambda inputs: np.full(len(inputs), value), diagnostics=diagnostics)


def _folds(episode: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """The rows of each fold. All rows of an episode are in one fold."""
    num_episodes = int(episode.max()) + 1
    num_folds = min(NUM_FOLDS, num_episodes)
    fold_of = generator.permutation(num_episodes) % num_folds
    return [np.flatnonzero(fold_of[episode] == fold) for fold in range(num_folds)]


def sums_of(phi: np.ndarray, targets: np.ndarray, roots: np.ndarray | None) -> np.ndarray:
    """(Φ y)ᵀ(Φ y) in float64: ΦᵀΦ with Φᵀy as its last row and column, and yᵀy in the corner.

    `roots` of the weights of rows multiply both.
    """
    num_rows, num_features = phi.shape
    sums = np.zeros((num_features + 1, num_features + 1))
    block = np.empty((min(BLOCK, num_rows), num_features + 1))
    for start in range(0, num_rows, BLOCK):
        rows = block[: min(BLOCK, num_rows - start)]
        rows[:, :-1] = phi[start : start + BLOCK]
        rows[:, -1] = targets[start : start + BLOCK]
        if roots is not None:
            rows *= roots[start : start + BLOCK, None]
        sums += rows.T @ rows
    return sums


def _apply(phi: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Φθ in float64."""
    blocks = [phi[start : start + BLOCK].astype(np.float64) @ theta for start in range(0, len(phi), BLOCK)]
    return np.concatenate(blocks) if blocks else np.empty(0)


def choose_ridge(ridges: tuple[float, ...], sums: list[np.ndarray], sizes: list[int]) -> float:
    """The ridge with the least squared error on held-out episodes; the largest ridge if there is one episode."""
    if len(sums) == 1:
        return max(ridges)
    total, size = np.sum(sums, axis=0), sum(sizes)

    def errors_without(fold: int) -> list[float]:
        held, held_size = sums[fold], sizes[fold]
        kept, left = total - held, size - held_size
        # With x = (θ, −1), the quadratic form xᵀ sums x of a fold is the squared error on its rows.
        residuals = [np.append(solve_ridge(kept, ridge * left), -1.0) for ridge in ridges]
        return [float(residual @ held @ residual) for residual in residuals]

    errors = np.sum(in_threads(errors_without, range(len(sums))), axis=0)
    return ridges[int(errors.argmin())]


def solve_ridge(sums: np.ndarray, penalty: float) -> np.ndarray:
    """Ridge regression from its sums; the constant is not penalised."""
    gram = sums[:-1, :-1].copy()
    gram.flat[len(gram) + 1 :: len(gram) + 1] += penalty
    return solve(gram, sums[:-1, -1])
