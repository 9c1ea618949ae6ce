"""The density ratio of states on a map of two dimensions: which states π visits, and which the log visits."""

from dataclasses import dataclass

import jax
import numpy as np

from average_dice.data.encoding import Encoding
from average_dice.data.names import Names
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
    observations, names = problem.dataset.observation, problem.dataset.names
    if fit is None:
        return None
    rows = generator_from(key).permutation(len(observations))[:MOST_POINTS]
    try:
        ratio = fit.ratio(observations[rows])
    except NotApplicable:
        return None
    if features is not None:
        points, axes = _chosen(observations, features, names)
    elif observations.shape[1] == 1:
        points, axes = _single(observations, names)
    else:
        points, axes = _principal(problem.dataset.encoding, observations, names)
    return StateMap(axes, *(tuple(map(float, column)) for column in (*points[rows].T, ratio)))


def _single(observations: np.ndarray, names: Names) -> tuple[np.ndarray, tuple[str, str]]:
    scaled = _scaled(observations)[:, 0]
    return np.column_stack([scaled, np.zeros(len(scaled))]), (_name(0, names), "")


def _principal(encoding: Encoding, observations: np.ndarray, names: Names) -> tuple[np.ndarray, tuple[str, str]]:
    """With names, the axes say which columns have most weight in the component."""
    scaled = _scaled(encoding.encode(observations))
    variance, directions = np.linalg.eigh(scaled.T @ scaled / len(scaled))
    share = variance[::-1] / max(float(variance.sum()), 1e-300)  # not 0: constant observations have no variance
    main = directions[:, ::-1][:, :2]
    mostly = [""] * 2
    if names.observations:
        column_of = encoding.sources(observations.shape[1])
        mostly = [f" (mostly {_heaviest(one, column_of, names)})" for one in main.T]
    first, second = mostly
    return scaled @ main, (
        f"first component{first}, {share[0]:.0%} of the variance",
        f"second component{second}, {share[1]:.0%}",
    )


def _heaviest(direction: np.ndarray, column_of: np.ndarray, names: Names) -> str:
    """The names of the two columns with the most weight in a component."""
    weight = np.bincount(column_of, direction**2)
    return ", ".join(names.observation(int(column)) for column in np.argsort(-weight, kind="stable")[:2])


def _scaled(observations: np.ndarray) -> np.ndarray:
    mean, std = mean_and_std(observations)
    return (observations - mean) / std


def _chosen(observations: np.ndarray, features: tuple[int, int], names: Names) -> tuple[np.ndarray, tuple[str, str]]:
    first, second = features
    return observations[:, [first, second]], (_name(first, names), _name(second, names))


def _name(column: int, names: Names) -> str:
    return names.observation(column) if names.observations else f"observation {column}"
