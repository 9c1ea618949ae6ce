"""A rule: one number, its limits and the reason for them, the message beyond a limit, and the remedy.

    ok  →  supported if nothing unobserved drove the actions  →  weak  →  not supported

A rule without limits only shows its number. A number that is not finite (0 / 0) is beyond the limit.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from average_dice.estimators import Estimate
from average_dice.inference.diagnostics import Diagnostics
from average_dice.inference.refutation.results import Refutations
from average_dice.problem import Estimand

Status = Literal["ok", "supported if nothing unobserved drove the actions", "weak", "not supported", "info"]
OK: Status = "ok"
IF_OBSERVED: Status = "supported if nothing unobserved drove the actions"
WEAK: Status = "weak"
NOT_SUPPORTED: Status = "not supported"
INFO: Status = "info"

# Standard errors. All of 140 sound logs of exact MDPs stay below 5 (a test), logs of the seven tasks below 3.5: a
# distance of 5 is not chance. See docs/trust.md.
SIGNIFICANT = 5.0
STANDARD_ERRORS = "{:g} standard errors"
PERCENT = "{:.0%}"


@dataclass(frozen=True)
class Evidence:
    """The inputs of rules: the estimate (None without one), the diagnostics, the number of episodes, the estimand.

    `refutations`: None if no refuter was asked for.
    """

    estimate: Estimate | None
    diagnostics: Diagnostics
    num_episodes: int
    estimand: Estimand = Estimand.PER_STEP
    refutations: Refutations | None = None

    def fill(self, template: str) -> str:
        """The template with the diagnostics and `episodes` filled in."""
        return template.format(**vars(self.diagnostics), episodes=self.num_episodes)


@dataclass(frozen=True)
class Finding:
    """A rule that fired: how bad it is, the reason, and what would help."""

    rule: str
    level: Status
    reason: str
    remedy: str


@dataclass(frozen=True)
class Check:
    """A rule in the report: what was checked, the number here, what is good, the status, and why it is checked."""

    name: str
    description: str
    value: str
    good: str
    status: Status
    explanation: str = ""


@dataclass(frozen=True)
class Limit:
    """A bound on a number: what lies beyond it, and both sides in words."""

    number: float
    is_beyond: Callable[[float, float], bool]
    fault: str
    good: str


def above(number: float, unit: str = "{:g}") -> Limit:
    """Numbers above this one are beyond the limit."""
    return Limit(number, operator.gt, f"above {unit.format(number)}", f"at most {unit.format(number)}")


def at_least(number: float, unit: str = "{:g}") -> Limit:
    """This number and larger ones are beyond the limit."""
    return Limit(number, operator.ge, f"{unit.format(number)} or more", f"below {unit.format(number)}")


def below(number: float, unit: str = "{:g}") -> Limit:
    """Numbers below this one are beyond the limit."""
    return Limit(number, operator.lt, f"below {unit.format(number)}", f"at least {unit.format(number)}")


def always(fault: str, good: str) -> Limit:
    """Every number is beyond it: the rule fires if its number is significant."""
    return Limit(-math.inf, operator.ge, fault, good)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a rule (some may be absent), and the reason for them.

    `significance`: a diagnostic in standard errors. Where it is below `SIGNIFICANT` the number is noise, and no fault.
    """

    why: str
    if_observed: Limit | None = None
    weak: Limit | None = None
    not_supported: Limit | None = None
    significance: str | None = None

    @property
    def good(self) -> str:
        """In words, the values within all limits."""
        return next(limit.good for limit in (self.if_observed, self.weak, self.not_supported) if limit is not None)

    def status(self, number: float, evidence: Evidence) -> Status:
        """The status of a number: the worst limit that it is beyond."""
        if self.significance is not None:
            distance = getattr(evidence.diagnostics, self.significance)
            if distance is None or distance < SIGNIFICANT:
                return OK
        if math.isnan(number):
            return WEAK if self.weak is not None else NOT_SUPPORTED
        limits = ((NOT_SUPPORTED, self.not_supported), (WEAK, self.weak), (IF_OBSERVED, self.if_observed))
        for level, limit in limits:
            if limit is not None and limit.is_beyond(number, limit.number):
                return level
        return OK


Words = str | Callable[[Evidence], str]  # a template over the diagnostics, or a function where the words depend on them


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One entry of the table `RULES`.

    - `name`: its code in the JSON; `reads`: the diagnostics that it explains, the first of which is its number.
    - `description` in a few words for the report, `explanation` in plain words for readers who know no statistics,
      `definition` in full for the documentation.
    - `shows`: the number, as the report shows it; `says`: the reason, if it fires; `remedy`: what would help.
    - `measure`: the number, where it is not the first diagnostic itself. None: not known for this log.
    - `expected`: the good values in words, where there are no limits to tell them.
    """

    name: str
    reads: tuple[str, ...]
    description: str
    definition: str
    shows: Words
    explanation: str = ""
    limits: Limits | None = None
    says: Words = ""
    remedy: Words = ""
    measure: Callable[[Evidence], float | None] | None = None
    expected: str = ""

    @property
    def good(self) -> str:
        """In words, the values that are good."""
        return self.expected if self.limits is None else self.limits.good

    def number(self, evidence: Evidence) -> float | None:
        """The number that is judged; None where it is not known."""
        if self.measure is not None:
            return self.measure(evidence)
        first: Any = getattr(evidence.diagnostics, self.reads[0])
        return first

    def status(self, evidence: Evidence) -> Status | None:
        """None where the number is not known."""
        number = self.number(evidence)
        if number is None:
            return None
        return INFO if self.limits is None else self.limits.status(number, evidence)

    def check(self, evidence: Evidence) -> Check | None:
        """For the report."""
        status = self.status(evidence)
        if status is None:
            return None
        return Check(self.name, self.description, _said(self.shows, evidence), self.good, status, self.explanation)

    def finding(self, evidence: Evidence) -> Finding | None:
        """For the verdict, if the number is beyond a limit."""
        status = self.status(evidence)
        if status in (None, OK, INFO):
            return None
        return Finding(self.name, status, _said(self.says, evidence), _said(self.remedy, evidence))


def _said(words: Words, evidence: Evidence) -> str:
    return evidence.fill(words) if isinstance(words, str) else words(evidence)
