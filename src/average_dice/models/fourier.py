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
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from average_dice.models.linear_systems import solve
from average_dice.models.regression import Fitted, Regression, Rows
from average_dice.problem import Problem
from average_dice.randomness import generator_from
from average_dice.resampling import Draw, RowSums

RIDGES = tuple(10.0**power for power in range(-6, 3))
NUM_FOLDS = 6
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
        features = FourierMap.draw(regression.inputs, self.num_features, generator_from(key))

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
        features = FourierMap.draw(regression.inputs, self.num_features, generator)
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
