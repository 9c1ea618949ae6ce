"""All rules of the verdict and checks of the report, in one table.

A new rule is one entry in a file of this folder and one line here. The report, the terminal and the tables of
docs/trust.md (`python tools/rule_tables.py`) take it from this table.
"""

from average_dice.inference.rules import estimate, log, overlap, probabilities, refutation
from average_dice.inference.rules.base import (
    IF_OBSERVED,
    INFO,
    NOT_SUPPORTED,
    OK,
    SIGNIFICANT,
    WEAK,
    Check,
    Evidence,
    Finding,
    Limit,
    Limits,
    Rule,
    Status,
)

# Causes before their consequences: a verdict gives its reasons in this order.
RULES: tuple[Rule, ...] = (
    probabilities.MEAN_RATIO,
    probabilities.STEP_RATIO,
    probabilities.STATE_RATIO,
    probabilities.DEPENDENT_ACTIONS,
    log.INFORMATIVE_TRUNCATION,
    log.TREND,
    log.NEIGHBOURS,
    estimate.INTERVAL_WIDTH,
    probabilities.KNOWN_PROBABILITIES,
    probabilities.CALIBRATION,
    probabilities.ESTIMATED_PROBABILITIES,
    overlap.UNSEEN_ACTIONS,
    overlap.OVERLAP,
    overlap.NEAR_ACTIONS,
    overlap.EPISODES,
    overlap.FOLLOWED_EPISODES,
    overlap.EFFECTIVE_EPISODES,
    overlap.PARETO_K,
    overlap.HEAVIEST,
    estimate.AFTER_TRUNCATION,
    estimate.MASS_FOUND,
    estimate.FLOW_RESIDUAL,
    estimate.AGREEMENT,
    log.LARGEST_REWARD,
    log.REPEATED_EPISODES,
    refutation.REFUTATION,
)

__all__ = [
    "IF_OBSERVED",
    "INFO",
    "NOT_SUPPORTED",
    "OK",
    "RULES",
    "SIGNIFICANT",
    "WEAK",
    "Check",
    "Evidence",
    "Finding",
    "Limit",
    "Limits",
    "Rule",
    "Status",
]
