"""Regression on random Fourier features, in closed form.

    φ(x) = (1, z, cos(Ωz + b)),   z = standardised x,   Ω ~ N(0, 1/ℓ²),   b ~ U[0, 2π)

approximate a Gaussian kernel whose width ℓ is the median distance between rows (Rahimi & Recht, 2007). The ridge is
chosen by cross-validation over whole episodes: rows of one episode share their product of ratios, so leaving out
single rows would leave nothing out. Each fold contributes its own ΦᵀΦ and Φᵀy, and every candidate is judged on these
sums alone; all of it costs little more than one ΦᵀΦ.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import jax
import numpy as np
from jaxtyping import Float, Float32
from threadpoolctl import threadpool_limits

from ..problem import Problem
from ..randomness import generator_from
from ..resampling import Draw, RowSums
from .regression import Fitted, Inputs, Regression, Rows
from .scaling import mean_and_std
from .systems import solve

RIDGES = tuple(10.0**power for power in range(-6, 3))
NUM_FOLDS = 6
ROWS_FOR_WIDTH = 500
BLOCK = 4096  # rows at a time in float64: they stay in the cache


@dataclass(frozen=True)
class FourierFeatures:
    """`num_features` cosines besides the constant and the linear terms; `ridges` are the candidates for λ₁."""

    num_features: int = 300
    ridges: tuple[float, ...] = RIDGES

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]:
        # One BLAS thread each, and the folds in parallel: BLAS threads that wait for each other on a busy machine turn
        # a tenth of a second into several.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
            return [self._fit(regression, generator_from(key), pool) for key in keys]

    def prepare(
        self, problem: Problem, regression: Regression, *, key: jax.Array
    ) -> Callable[[Draw, Float[np.ndarray, " transition"]], Fitted]:
        """A fit to the targets of any draw of episodes, with the features, weights and ridge of the whole log."""
        whole = self.fit(regression, keys=[key], value_of=lambda f: float("nan"))[0]
        features = FeatureMap.draw(regression.inputs, self.num_features, generator_from(key))

        weights = regression.unit_weights

        @cache
        def of_rows() -> tuple[Float[np.ndarray, "row feature"], RowSums]:
            phi = features(regression.inputs).astype(np.float64)
            return phi, RowSums(problem, weights[:, None] * phi, phi)

        def refit(draw: Draw, targets: Float[np.ndarray, " transition"]) -> Fitted:
            if draw.chosen is None:
                return whole
            phi, gram = of_rows()
            sums = np.zeros((features.size + 1, features.size + 1))
            sums[:-1, :-1] = gram.mean(draw)
            sums[:-1, -1] = (weights * draw.onto_rows(targets, len(phi))) @ phi / draw.num_rows
            sums /= draw.of_rows(weights).mean()  # 1 on average on this draw, too
            theta = _solve(sums, whole.diagnostics["ridge"])
            return replace(
                whole, rows=draw.of_rows(phi @ theta), predict=lambda inputs: _apply(features(inputs), theta)
            )

        return refit

    def _fit(self, regression: Regression, generator: np.random.Generator, pool: ThreadPoolExecutor) -> Fitted:
        features = FeatureMap.draw(regression.inputs, self.num_features, generator)
        folds = _folds(regression.episode, generator)
        phis = list(pool.map(lambda rows: features(regression.inputs[rows]), folds))
        roots = None if regression.weights is None else np.sqrt(regression.unit_weights)
        sums = list(
            pool.map(
                lambda phi, rows: _sums(phi, regression.targets[rows], None if roots is None else roots[rows]),
                phis,
                folds,
            )
        )
        ridge = _choose(self.ridges, sums, [len(rows) for rows in folds], pool)
        flat = len(self.ridges) > 1 and ridge == max(self.ridges)
        theta = _solve(np.sum(sums, axis=0), ridge * len(regression.targets))
        fitted = np.empty(len(regression.targets))
        for phi, rows in zip(phis, folds, strict=True):
            fitted[rows] = _apply(phi, theta)
        return Fitted(
            fitted,
            lambda inputs: _apply(features(inputs), theta),
            diagnostics={"ridge": ridge, "kernel_width": features.width},
            notes=("the largest ridge was chosen: states hardly tell the products apart",) if flat else (),
        )


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """φ, with everything that was drawn for it.

    Features are kept in float32, where cosines are ten times faster: a feature that is off by 1e-7 is still a feature.
    All sums over them are formed in float64.
    """

    mean: Float[np.ndarray, " input"]
    std: Float[np.ndarray, " input"]
    width: float
    waves: Float32[np.ndarray, "linear cosine"]  # the phases b, and below them the frequencies Ω

    @staticmethod
    def draw(inputs: Inputs, num_features: int, generator: np.random.Generator) -> "FeatureMap":
        mean, std = mean_and_std(inputs)
        some = generator.choice(len(inputs), size=min(ROWS_FOR_WIDTH, len(inputs)), replace=False)
        width = _median_distance((inputs[some] - mean) / std)
        frequencies = generator.standard_normal((inputs.shape[1], num_features)) / width
        phases = generator.uniform(0, 2 * np.pi, num_features)
        return FeatureMap(mean, std, width, np.vstack([phases, frequencies]).astype(np.float32))

    @property
    def size(self) -> int:
        """The number of features: the constant, the linear ones, the cosines."""
        return sum(self.waves.shape)

    def __call__(self, inputs: Inputs) -> Float32[np.ndarray, "row feature"]:
        num_linear, num_cosines = self.waves.shape
        phi = np.empty((len(inputs), num_linear + num_cosines), np.float32)
        phi[:, 0] = 1.0
        phi[:, 1:num_linear] = (inputs - self.mean) / self.std
        for start in range(0, len(inputs), BLOCK):
            rows = phi[start : start + BLOCK]
            np.cos(rows[:, :num_linear] @ self.waves, out=rows[:, num_linear:])
        return phi


def _median_distance(points: np.ndarray) -> float:
    squares = (points**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    above = distances[np.triu_indices(len(points), 1)]
    above = above[above > 1e-12]
    return float(np.sqrt(np.median(above))) if len(above) else 1.0


def _folds(episode: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """The rows of each fold; an episode is in one fold, whole."""
    num_episodes = int(episode.max()) + 1
    num_folds = min(NUM_FOLDS, num_episodes)
    fold_of = generator.permutation(num_episodes) % num_folds
    return [np.flatnonzero(fold_of[episode] == fold) for fold in range(num_folds)]


def _sums(phi: np.ndarray, targets: np.ndarray, roots: np.ndarray | None) -> np.ndarray:
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


def _choose(ridges: tuple[float, ...], sums: list[np.ndarray], sizes: list[int], pool: ThreadPoolExecutor) -> float:
    """The ridge with the lowest squared error on episodes left out; with a single episode, the largest."""
    if len(sums) == 1:
        return max(ridges)
    total, size = np.sum(sums, axis=0), sum(sizes)

    def errors_without(held: np.ndarray, held_size: int) -> list[float]:
        kept, left = total - held, size - held_size
        residuals = [np.append(_solve(kept, ridge * left), -1.0) for ridge in ridges]  # (θ, −1): its form in held …
        return [float(residual @ held @ residual) for residual in residuals]  # … is the error on the rows held out

    errors = np.sum(list(pool.map(errors_without, sums, sizes)), axis=0)
    return ridges[int(errors.argmin())]


def _solve(sums: np.ndarray, penalty: float) -> np.ndarray:
    """Ridge regression from its sums; the constant is not penalised."""
    gram = sums[:-1, :-1].copy()
    gram.flat[len(gram) + 1 :: len(gram) + 1] += penalty
    return solve(gram, sums[:-1, -1])
