"""A refuter: one question to an estimate, with a number, a limit, and the reason for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from average_dice.errors import NotApplicable
from average_dice.inference.refutation.case import Case
from average_dice.inference.refutation.results import FAILED, NOT_APPLICABLE, PASSED, Refutation

STANDARD_ERRORS = "standard errors"
OF_CHANCE = "times what chance explains"


@dataclass(frozen=True)
class Measured:
    """The number, and what to say if it passes and if it fails."""

    number: float
    passed: str
    failed: str


@dataclass(frozen=True)
class Refuter:
    """One line of the table `REFUTERS`. `measure` raises `NotApplicable` with the reason where it cannot be asked."""

    name: str
    asks: str
    unit: str
    limit: float
    why: str
    measure: Callable[[Case], Measured]

    def __call__(self, case: Case) -> Refutation:
        """Runs it."""
        try:
            found = self.measure(case)
        except NotApplicable as reason:
            return self.not_applicable(str(reason))
        failed = not found.number < self.limit  # a number that is not finite fails
        return Refutation(
            self.name,
            self.asks,
            FAILED if failed else PASSED,
            float(np.nan_to_num(found.number, nan=1e3, posinf=1e3)),
            self.limit,
            self.unit,
            found.failed if failed else found.passed,
        )

    def not_applicable(self, reason: str) -> Refutation:
        """The result where the question cannot be asked."""
        return Refutation(self.name, self.asks, NOT_APPLICABLE, None, self.limit, self.unit, reason)
