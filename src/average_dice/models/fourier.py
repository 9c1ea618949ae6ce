"""Regression on random Fourier features, in closed form.

    φ(x) = (1, z, √2 cos(Ωz + b)),   z = standardised x,   Ω ~ N(0, 1/ℓ²),   b ~ U[0, 2π)

approximate a Gaussian kernel whose width ℓ is the median distance between rows (Rahimi & Recht, 2007). The ridge is
chosen by cross-validation over whole episodes: rows of one episode share their product of ratios, so leaving out
single rows would leave nothing out. Each fold contributes its own ΦᵀΦ and Φᵀy, and every candidate is judged on these
sums alone; all of it costs little more than one ΦᵀΦ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from ..randomness import generator_from
from .regression import Fitted, Inputs, Regression, Rows
from .scaling import mean_and_std

RIDGES = tuple(10.0**power for power in range(-7, 4))
NUM_FOLDS = 5
ROWS_FOR_WIDTH = 500


@dataclass(frozen=True)
class FourierFeatures:
    """`num_features` cosines besides the constant and the linear terms; `ridges` are the candidates for λ₁."""

    num_features: int = 300
    ridges: tuple[float, ...] = RIDGES

    def fit(
        self, regression: Regression, *, keys: Sequence[jax.Array], value_of: Callable[[Rows], float]
    ) -> list[Fitted]:
        return [self._fit(regression, generator_from(key)) for key in keys]

    def _fit(self, regression: Regression, generator: np.random.Generator) -> Fitted:
        features = FeatureMap.draw(regression.inputs, self.num_features, generator)
        folds = _folds(regression.episode, generator)
        phis = [features(regression.inputs[rows]) for rows in folds]
        grams, pulls, squares = zip(
            *(_sums(phi, regression.targets[rows]) for phi, rows in zip(phis, folds, strict=True)), strict=True
        )
        ridge = _choose(self.ridges, grams, pulls, squares, [len(rows) for rows in folds])
        theta = _solve(sum(grams), sum(pulls), ridge * len(regression.targets))
        fitted = np.empty(len(regression.targets))
        for phi, rows in zip(phis, folds, strict=True):
            fitted[rows] = phi @ theta
        return Fitted(
            fitted,
            lambda inputs: np.asarray(features(inputs) @ theta),
            diagnostics={"ridge": ridge, "kernel_width": features.width},
        )


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """φ, with everything that was drawn for it."""

    mean: Float[np.ndarray, " input"]
    std: Float[np.ndarray, " input"]
    width: float
    frequencies: Float[np.ndarray, "input cosine"]
    phases: Float[np.ndarray, " cosine"]

    @staticmethod
    def draw(inputs: Inputs, num_features: int, generator: np.random.Generator) -> "FeatureMap":
        mean, std = mean_and_std(inputs)
        some = generator.choice(len(inputs), size=min(ROWS_FOR_WIDTH, len(inputs)), replace=False)
        width = _median_distance((inputs[some] - mean) / std)
        frequencies = generator.standard_normal((inputs.shape[1], num_features)) / width
        return FeatureMap(mean, std, width, frequencies, generator.uniform(0, 2 * np.pi, num_features))

    def __call__(self, inputs: Inputs) -> Float[np.ndarray, "row feature"]:
        standardised = (inputs - self.mean) / self.std
        # Cosines in float32: ten times faster, and a feature that is off by 1e-7 is still a feature. The sums over them
        # are formed in float64.
        angles = standardised.astype(np.float32) @ self.frequencies.astype(np.float32)
        angles += self.phases.astype(np.float32)
        num_inputs = inputs.shape[1]
        phi = np.empty((len(inputs), 1 + num_inputs + angles.shape[1]))
        phi[:, 0] = 1.0
        phi[:, 1 : 1 + num_inputs] = standardised
        np.multiply(np.cos(angles, out=angles), np.sqrt(2.0), out=phi[:, 1 + num_inputs :])
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


def _sums(phi: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    return phi.T @ phi, phi.T @ targets, float(targets @ targets)


def _choose(
    ridges: tuple[float, ...],
    grams: tuple[np.ndarray, ...],
    pulls: tuple[np.ndarray, ...],
    squares: tuple[float, ...],
    sizes: list[int],
) -> float:
    """The ridge with the lowest squared error on episodes left out; with a single episode, the largest."""
    if len(grams) == 1:
        return max(ridges)
    gram, pull, size = sum(grams), sum(pulls), sum(sizes)
    errors = np.zeros(len(ridges))
    for held_gram, held_pull, held_square, held_size in zip(grams, pulls, squares, sizes, strict=True):
        for index, ridge in enumerate(ridges):
            theta = _solve(gram - held_gram, pull - held_pull, ridge * (size - held_size))
            errors[index] += theta @ held_gram @ theta - 2 * theta @ held_pull + held_square
    return ridges[int(errors.argmin())]


def _solve(gram: np.ndarray, pull: np.ndarray, penalty: float) -> np.ndarray:
    """Ridge regression from its sums; the constant is not penalised."""
    penalties = np.full(len(pull), penalty)
    penalties[0] = 0.0
    return np.linalg.solve(gram + np.diag(penalties), pull)
