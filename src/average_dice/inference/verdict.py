"""The verdict: does the log support the estimate? It is the worst level of any rule.

"not supported" if any rule of `rules` says so, else "weak" if any rule does, else "supported". If the probabilities of
the logged actions were estimated, the best level is "supported if nothing unobserved drove the actions". Every rule
that fires gives a reason and a remedy. `average-dice benchmark trust` counts how often verdicts are right on tasks
whose true value is known.
"""

from dataclasses import dataclass

from average_dice.estimators import Estimate
from average_dice.inference.diagnostics import Diagnostics
from average_dice.inference.refutation.results import Refutations
from average_dice.inference.rules import IF_OBSERVED, NOT_SUPPORTED, RULES, WEAK, Check, Evidence
from average_dice.problem import Estimand

SUPPORTED = "supported"
LEVELS = (SUPPORTED, IF_OBSERVED, WEAK, NOT_SUPPORTED)
NO_VALUE = "no-value"  # in `Verdict.rules`: the method is not applicable, so there is no estimate
PASSED = "all checks passed: overlap {overlap:.0%}, effective number of episodes {effective_episodes:.0f} of {episodes}"
PASSED_NEAR = "all checks passed: {near_actions:.0%} of logged actions (in each dimension) lie near the policy's"
ONLY_BASELINES = "only-baselines"  # in `Verdict.rules`: no estimate of the policy's value was requested


@dataclass(frozen=True)
class Verdict:
    """Whether the log supports the estimate, why or why not, and what would help.

    `rules`: the names of the rules that fired, one for each reason; none if the verdict is "supported".
    """

    level: str
    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


def judge(
    estimate: Estimate | None,
    diagnostics: Diagnostics,
    num_episodes: int,
    estimand: Estimand = Estimand.PER_STEP,
    refutations: Refutations | None = None,
) -> Verdict:
    """The verdict on an estimate, by every rule. `estimate` is None if only baselines were requested."""
    if estimate is None:
        reason = "only baselines were asked for; they estimate the value of the behaviour policy"
        return Verdict(NOT_SUPPORTED, (reason,), rules=(ONLY_BASELINES,))
    if estimate.value is None:
        reasons = tuple(str(note) for note in estimate.notes)
        return Verdict(NOT_SUPPORTED, reasons, rules=(NO_VALUE,) * len(reasons))
    evidence = Evidence(estimate, diagnostics, num_episodes, estimand, refutations)
    findings = [finding for rule in RULES if (finding := rule.finding(evidence)) is not None]
    if not findings:
        return Verdict(SUPPORTED, (evidence.fill(PASSED if diagnostics.near_actions is None else PASSED_NEAR),))
    findings.sort(key=lambda finding: -LEVELS.index(finding.level))  # stable: within a level, the order of RULES
    return Verdict(
        findings[0].level,
        tuple(finding.reason for finding in findings),
        tuple(dict.fromkeys(finding.remedy for finding in findings)),
        tuple(finding.rule for finding in findings),
    )


def run_checks(
    estimate: Estimate | None,
    diagnostics: Diagnostics,
    num_episodes: int,
    estimand: Estimand = Estimand.PER_STEP,
    refutations: Refutations | None = None,
) -> tuple[Check, ...]:
    """Every rule as a line of the report, except those without a number for this log."""
    evidence = Evidence(estimate, diagnostics, num_episodes, estimand, refutations)
    return tuple(check for rule in RULES if (check := rule.check(evidence)) is not None)
