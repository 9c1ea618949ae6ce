"""Value rules: from the ratio on each row to a value, and what the ratio must sum to.

With w the ratio of states on the rows of the log and m = not terminated:

    flow-normalised        (1 − γ) Σ wρr / Σ wρ(1 − γm)        the default
    plain                  mean of wρr
    normalised to one      Σ wρr / Σ wρ                        the literature; wrong where episodes terminate
    as printed             mean of wr                          the paper's formula: μ's actions at π's states

The flow equation E_D[wρ(1 − γm)] = 1 − γ holds for the exact ratio on any log; "sums to one" holds only without
termination. Rules for pairs of state and action use ζ(s, a) instead of wρ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from average_dice.errors import NotApplicable
from average_dice.problem import Problem, Rows

MassRule = Callable[[Problem], Rows]  # the coefficients a in "the mean of a·w is 1"
PairRule = Callable[[Problem, Rows], Rows]  # (problem, ζ on the rows) → the weight of each reward


def flow_mass(problem: Problem) -> Rows:
    """E_D[w ρ (1 − γm) / (1 − γ)] = 1."""
    return problem.ratio * problem.flow / problem.normaliser


def unit_mass(problem: Problem) -> Rows:
    """E_D[w] = 1, as in the paper. Not where γ = 1: there it is the mean length of π's episodes, which is unknown."""
    _require_unit_mass(problem)
    return np.ones(problem.dataset.num_transitions)


def corrected_unit_mass(problem: Problem) -> Rows:
    """E_D[wρ] = 1, as the literature normalises ratios of state and action. Not where γ = 1, either."""
    _require_unit_mass(problem)
    return problem.ratio


def _require_unit_mass(problem: Problem) -> None:
    if problem.discount == 1:
        raise NotApplicable("it makes the ratio sum to 1, which needs a discount below 1: use average-dice-features")


@dataclass(frozen=True)
class ValueRule:
    """Ĵ = Σ w k r / Σ w a, or the mean of w k r if there is no `mass` to divide by. `corrects`: k is ρ, else 1."""

    name: str
    corrects: bool = True
    mass: MassRule | None = None

    def __call__(self, problem: Problem, ratio: Rows, log_scale: float = 0.0) -> float:
        """The value, for a ratio divided by exp(log_scale). NaN if the mass is not positive."""
        earned = float(np.mean(self._corrected(problem, ratio) * problem.dataset.reward))
        if self.mass is None:
            return rescaled(earned, log_scale)
        found = self._found(problem, ratio)
        return earned / found if found > 0 else float("nan")

    def weights(self, problem: Problem, ratio: Rows, log_scale: float = 0.0) -> Rows:
        """The weight of each reward: the value is the mean of weights · rewards."""
        corrected = self._corrected(problem, ratio)
        return rescaled(corrected, log_scale) if self.mass is None else corrected / self._found(problem, ratio)

    def _corrected(self, problem: Problem, ratio: Rows) -> Rows:
        return ratio * problem.ratio if self.corrects else ratio

    def _found(self, problem: Problem, ratio: Rows) -> float:
        return float(np.mean(ratio * self.mass(problem))) if self.mass else 1.0


flow_normalised = ValueRule("flow-normalised", mass=flow_mass)
plain_value = ValueRule("not normalised")
normalised_to_one = ValueRule("normalised to one", mass=corrected_unit_mass)
as_printed = ValueRule("as printed in the paper, without the ratio of the action", corrects=False)


def plain_pairs(problem: Problem, ratio: Rows) -> Rows:
    """ζ itself: the value is the mean of ζ r."""
    return ratio


def flow_normalised_pairs(problem: Problem, ratio: Rows) -> Rows:
    """ζ divided by its mass: the value is (1 − γ) Σ ζr / Σ ζ(1 − γm)."""
    found = float(np.mean(ratio * problem.flow)) / problem.normaliser
    return ratio / found if found > 0 else np.full_like(ratio, np.nan)


Numbers = TypeVar("Numbers", float, np.ndarray)


def rescaled(values: Numbers, log_scale: float) -> Numbers:
    """values · exp(log_scale), also if the factor alone overflows. 0 stays 0; what overflows is infinite."""
    if log_scale == 0:
        return values
    with np.errstate(divide="ignore", over="ignore"):
        return np.sign(values) * np.exp(np.log(np.abs(values)) + log_scale)
