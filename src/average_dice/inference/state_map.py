"""The density ratio of states on a map of two dimensions: which states π visits, and which the log visits."""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import Fit
from average_dice.features.scaling import mean_and_std
from average_dice.problem import Problem
from average_dice.randomness import generator_from

MOST_POINTS = 400  # more would hide each other, and make the page larger


@dataclass(frozen=True)
class StateMap:
    """Some logged states: their places on the two axes, and the ratio d_π / d_μ there."""

    axes: tuple[str, str]
    x: tuple[float, ...]
    y: tuple[float, ...]
    ratio: tuple[float, ...]


def check_features(problem: Problem, features: tuple[int, int] | None) -> None:
    """Raises unless observations have these dimensions."""
    width = problem.dataset.observation.shape[1]
    if features is not None and not all(0 <= one < width for one in features):
        raise SettingError(f"the map's features must lie between 0 and {width - 1}, not {features}.")


def map_states(
    problem: Problem, fit: Fit | None, features: tuple[int, int] | None, *, key: jax.Array
) -> StateMap | None:
    """On the first two principal components of the standardised observations, or on two of their dimensions."""
    observations = problem.dataset.observation
    if fit is None:
        return None
    rows = generator_from(key).permutation(len(observations))[:MOST_POINTS]
    try:
        ratio = fit.ratio(observations[rows])
    except NotApplicable:
        return None
    if features is None and observations.shape[1] > 1:
        points, axes = _principal(problem.dataset.encoding.encode(observations))
    else:
        points, axes = _principal(observations) if features is None else _chosen(observations, features)
    return StateMap(axes, *(tuple(map(float, column)) for column in (*points[rows].T, ratio)))


def _principal(observations: np.ndarray) -> tuple[np.ndarray, tuple[str, str]]:
    mean, std = mean_and_std(observations)
    scaled = (observations - mean) / std
    if scaled.shape[1] == 1:
        return np.column_stack([scaled[:, 0], np.zeros(len(scaled))]), ("observation 0", "")
    variance, directions = np.linalg.eigh(scaled.T @ scaled / len(scaled))
    share = variance[::-1] / max(float(variance.sum()), 1e-300)  # not 0: constant observations have no variance
    points = scaled @ directions[:, ::-1][:, :2]
    return points, (f"first component, {share[0]:.0%} of the variance", f"second component, {share[1]:.0%}")


def _chosen(observations: np.ndarray, features: tuple[int, int]) -> tuple[np.ndarray, tuple[str, str]]:
    first, second = features
    return observations[:, [first, second]], (f"observation {first}", f"observation {second}")
