"""From the ratio on each row to a value, and what the ratio must sum to.

With w the ratio of states on the rows of the log and m = not terminated:

    flow-normalised        (1 − γ) Σ wρr / Σ wρ(1 − γm)        the default
    plain                  mean of wρr
    normalised to one      Σ wρr / Σ wρ                        the literature; wrong where episodes terminate
    as printed             mean of wr                          the paper's formula: μ's actions at π's states

The flow equation E_D[wρ(1 − γm)] = 1 − γ holds for the exact ratio on any log; "sums to one" holds only without
termination.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators.base import Fit
from average_dice.models import History
from average_dice.problem import Problem

Rows = Float[np.ndarray, " transition"]
MassRule = Callable[[Problem], Rows]  # the coefficients a in "the mean of a·w is 1"


def flow_mass(problem: Problem) -> Rows:
    """E_D[w ρ (1 − γm) / (1 − γ)] = 1."""
    return problem.ratio * problem.flow / (1 - problem.discount)


def unit_mass(problem: Problem) -> Rows:
    """E_D[w] = 1, as the paper has it."""
    return np.ones(problem.dataset.num_transitions)


def corrected_unit_mass(problem: Problem) -> Rows:
    """E_D[wρ] = 1, as the literature normalises ratios of state and action."""
    return problem.ratio


@dataclass(frozen=True)
class ValueRule:
    """Ĵ = Σ w k r / Σ w a, or the mean of w k r if there is no `mass` to divide by. `corrects`: k is ρ, else 1."""

    name: str
    corrects: bool = True
    mass: MassRule | None = None

    def __call__(self, problem: Problem, ratio: Rows, log_scale: float = 0.0) -> float:
        """The value, for a ratio that is given divided by exp(log_scale). NaN if there is nothing to divide by."""
        earned = float(np.mean(self._corrected(problem, ratio) * problem.dataset.reward))
        if self.mass is None:
            return rescaled(earned, log_scale)
        found = self._found(problem, ratio)
        return earned / found if found > 0 else float("nan")

    def weights(self, problem: Problem, ratio: Rows, log_scale: float = 0.0) -> Rows:
        """What multiplies each reward: the value is the mean of weights · rewards."""
        corrected = self._corrected(problem, ratio)
        return rescaled(corrected, log_scale) if self.mass is None else corrected / self._found(problem, ratio)

    def _corrected(self, problem: Problem, ratio: Rows) -> Rows:
        return ratio * problem.ratio if self.corrects else ratio

    def _found(self, problem: Problem, ratio: Rows) -> float:
        return float(np.mean(ratio * self.mass(problem))) if self.mass else 1.0


Numbers = TypeVar("Numbers", float, np.ndarray)


def rescaled(values: Numbers, log_scale: float) -> Numbers:
    """values · exp(log_scale), where the factor alone may overflow: 0 stays 0, and what is too large is infinite."""
    if log_scale == 0:
        return values
    with np.errstate(divide="ignore", over="ignore"):
        return np.sign(values) * np.exp(np.log(np.abs(values)) + log_scale)


flow_normalised = ValueRule("flow-normalised", mass=flow_mass)
plain_value = ValueRule("not normalised")
normalised_to_one = ValueRule("normalised to one", mass=corrected_unit_mass)
as_printed = ValueRule("as printed in the paper, without the ratio of the action", corrects=False)


NO_OVERLAP = "π never acts as any of the logged episodes begins: the log says nothing about π"
NOTHING_BEYOND = "nothing stands for what lies beyond the cut"


def is_truncated(problem: Problem) -> bool:
    """Whether any episode was cut, so that something lies beyond."""
    return int(problem.dataset.terminated.sum()) < problem.dataset.num_episodes


def added_by_episode(problem: Problem, rows: Rows) -> Float[np.ndarray, " episode"]:
    """What each episode adds to the mean over rows, so that their mean is that mean."""
    data = problem.dataset
    return np.bincount(problem.episode_index, rows, data.num_episodes) * data.num_episodes / data.num_transitions


def weight_diagnostics(weights: Rows) -> dict[str, float]:
    """How evenly the rows carry the estimate: few effective rows or one large share mean little support."""
    largest = float(np.abs(weights).max())
    if largest == 0:
        return {"effective_sample_size": 0.0}
    relative = weights / largest
    size = float(np.abs(relative).sum())
    return {
        "effective_sample_size": float(relative.sum() ** 2 / (relative @ relative)),
        "largest_weight_share": 1 / size,
        "negative_weight_share": float(np.abs(relative[relative < 0]).sum()) / size,
    }


Predict = Callable[..., Float[np.ndarray, " row"]]


def fit_of_state_ratio(
    problem: Problem, ratio: Rows, predict: Predict, value: ValueRule, history: History | None = None
) -> Fit:
    """The fit of a method that learns w(s): `ratio` on the rows, `predict(observations)` anywhere."""

    def ratio_of(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        if actions is not None:
            raise NotApplicable("it learns the ratio of states, not of states and actions")
        check_observations(problem, observations)
        return predict(observations)

    found_mass = float(np.mean(ratio * flow_mass(problem)))
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = value.weights(problem, ratio)
    return _fit(value(problem, ratio), weights, found_mass, ratio_of, f"value {value.name}", history)


def plain_pairs(problem: Problem, ratio: Rows) -> Rows:
    """ζ itself: the value is the mean of ζ r."""
    return ratio


def flow_normalised_pairs(problem: Problem, ratio: Rows) -> Rows:
    """ζ over the mass it finds: the value is (1 − γ) Σ ζr / Σ ζ(1 − γm)."""
    found = float(np.mean(ratio * problem.flow)) / (1 - problem.discount)
    return ratio / found if found > 0 else np.full_like(ratio, np.nan)


PairRule = Callable[[Problem, Rows], Rows]


def fit_of_pair_ratio(
    problem: Problem, ratio: Rows, predict: Predict, value: PairRule, history: History | None = None
) -> Fit:
    """The fit of a method that learns ζ(s, a): `ratio` on the rows, `predict(observations, actions)` anywhere."""

    def ratio_of(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        if actions is None:
            raise NotApplicable("it learns the ratio of states and actions: give both")
        check_observations(problem, observations)
        return predict(observations, actions)

    found_mass = float(np.mean(ratio * problem.flow)) / (1 - problem.discount)
    weights = value(problem, ratio)
    name = "value flow-normalised" if value is flow_normalised_pairs else "value not normalised"
    return _fit(float(np.mean(weights * problem.dataset.reward)), weights, found_mass, ratio_of, name, history)


def _fit(value: float, weights: Rows, found_mass: float, ratio_of: Predict, note: str, history: History | None) -> Fit:
    if not (np.isfinite(value) and np.isfinite(weights).all()):
        raise NotApplicable("the weights it found have no positive mass, or no finite one")
    diagnostics = {**weight_diagnostics(weights), "flow_mass": found_mass}
    return Fit(value, weights, ratio_of, diagnostics=diagnostics, history=history, notes=(note,))


def check_observations(problem: Problem, observations: np.ndarray) -> None:
    """Raises unless these are observations of the kind in the log."""
    width = problem.dataset.observation.shape[1]
    if observations.ndim != 2 or observations.shape[1] != width:
        raise SettingError(f"give observations as [row, {width}], not of shape {observations.shape}.")
