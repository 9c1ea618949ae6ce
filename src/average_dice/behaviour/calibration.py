"""Calibration on held-out predictions: the sharpness of a model, and the table of predicted and observed frequencies.

A model that has seen few rows is too sure of itself on others. Discrete actions: two numbers correct that, the
temperature T and the share x of uniformly random actions, which many behaviour policies have (ε-greedy ones),

    μ(a|s) = (1 − x) softmax(score / T) + x / number of allowed actions

Continuous actions: the spread of each dimension, and how heavy the tails are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats
from scipy.optimize import minimize

from average_dice.behaviour.categorical import LogProbs, normalised
from average_dice.behaviour.folded import Rows
from average_dice.behaviour.gaussian import Actions
from average_dice.data import LoggedDataset
from average_dice.data.estimated import CalibrationBin

START, BOUNDS = (0.0, 0.05), ((-2.0, 2.0), (0.0, 0.9))  # of log T and x
TAILS = (np.inf, 10.0, 4.0)  # degrees of freedom: normal, heavier, heavy
NUM_BINS = 10
LEAST_SPREAD = 1e-9  # of actions that a model predicts exactly


def calibrated(
    scores: LogProbs, data: LoggedDataset, mask: Bool[np.ndarray, "transition choice"] | None, weights: Rows
) -> LogProbs:
    """Log-probabilities with the T and x that give the held-out actions the highest likelihood."""
    kept = np.flatnonzero(weights > 0)
    some, allowed = scores[kept], None if mask is None else mask[kept]
    taken, share = data.action[kept], weights[kept] / weights.sum()

    def loss(settings: np.ndarray) -> float:
        return -float(share @ _mixed(some, allowed, settings)[np.arange(len(taken)), taken])

    found = minimize(loss, START, method="L-BFGS-B", bounds=BOUNDS, options={"ftol": 1e-8})
    return _mixed(scores, mask, found.x)


def _mixed(scores: LogProbs, mask: Bool[np.ndarray, "row choice"] | None, settings: np.ndarray) -> LogProbs:
    """log of (1 − x) softmax(score / T) + x / number of allowed actions."""
    log_temperature, x = settings
    sharp = normalised(scores / np.exp(log_temperature), mask)
    allowed = np.full(sharp.shape, 1 / sharp.shape[1]) if mask is None else mask / mask.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):  # −∞ for forbidden actions
        return np.log((1 - x) * np.exp(sharp) + x * allowed)


@dataclass(frozen=True)
class Residuals:
    """Actions minus their held-out means, with a spread for each dimension and degrees of freedom of the tails."""

    values: Actions
    spread: Float[np.ndarray, " action"]
    freedom: float

    @staticmethod
    def of(values: Actions, weights: Rows) -> "Residuals":
        """The spread and the tails with the highest likelihood."""
        share = (weights / weights.sum())[:, None]
        fits = [Residuals(values, _spread(values, share, freedom), freedom) for freedom in TAILS]
        return max(fits, key=lambda one: float(share[:, 0] @ one.log_density.sum(axis=1)))

    @property
    def log_density(self) -> Actions:
        """Of each dimension."""
        return _log_density(self.values / self.spread, self.freedom) - np.log(self.spread)

    @property
    def highest_log_density(self) -> Float[np.ndarray, " action"]:
        """At the mean."""
        return _log_density(np.zeros_like(self.spread), self.freedom) - np.log(self.spread)

    @property
    def central(self) -> Actions:
        """The probability of actions nearer to the mean: uniform, if the model is right."""
        apart = np.abs(self.values / self.spread)
        return 2 * (stats.norm.cdf(apart) if np.isinf(self.freedom) else stats.t.cdf(apart, self.freedom)) - 1


def _log_density(values: np.ndarray, freedom: float) -> np.ndarray:
    return np.asarray(stats.norm.logpdf(values) if np.isinf(freedom) else stats.t.logpdf(values, freedom))


def _spread(values: Actions, share: np.ndarray, freedom: float) -> Float[np.ndarray, " action"]:
    """The scale with the highest likelihood; for Student's t, by the EM algorithm."""
    variance = np.maximum((share * values**2).sum(axis=0), LEAST_SPREAD**2)
    if np.isinf(freedom):
        return np.sqrt(variance)
    for _ in range(50):  # the steps shrink the error by a half or more
        weight = (freedom + 1) / (freedom + values**2 / variance)
        variance = np.maximum((share * weight * values**2).sum(axis=0), LEAST_SPREAD**2)
    return np.sqrt(variance)


def table_of_probabilities(log_probs: LogProbs, data: LoggedDataset) -> tuple[CalibrationBin, ...]:
    """Every action that is allowed in a row is a prediction; about as many of them in each bin."""
    predicted = np.exp(log_probs)
    taken = np.arange(predicted.shape[1]) == data.action[:, None]
    allowed = predicted > 0
    predicted, taken = predicted[allowed], taken[allowed]
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, NUM_BINS + 1)[1:-1]))
    place = np.searchsorted(edges, predicted, side="right")
    bins = [(predicted[place == one], taken[place == one]) for one in range(len(edges) + 1)]
    return tuple(
        CalibrationBin(
            float(some.mean()), float(true.mean()), float(np.sqrt(np.sum(some * (1 - some)))) / len(some), len(some)
        )
        for some, true in bins
        if len(some)
    )


def table_of_ranges(central: Actions) -> tuple[CalibrationBin, ...]:
    """How many actions lie in the range around their mean that should hold 10 %, 20 %, … of them."""
    shares = np.linspace(0, 1, NUM_BINS + 1)[1:-1]
    return tuple(
        CalibrationBin(
            float(one), float(np.mean(central <= one)), float(np.sqrt(one * (1 - one) / central.size)), central.size
        )
        for one in shares
    )
