"""The recommended estimate on a misleading log, and whether it is confidently wrong."""

import time
from typing import Any

from average_dice.evaluation import evaluate
from average_dice.evaluation_result import Evaluation
from average_dice.inference.rules import IF_OBSERVED
from average_dice.inference.verdict import SUPPORTED
from average_dice.testing.misleading.log import LogWithTruth, MisleadingLog

# Bootstrap resamples for the intervals: few, because there are many logs.
NUM_RESAMPLES = 25

Row = dict[str, Any]


def evaluate_log(log: MisleadingLog, seed: int) -> Row:
    """The recommended estimate with its interval and verdict, the exact value, and the seconds it took."""
    made, start = log.make(seed), time.perf_counter()
    found = _evaluate(made, seed)
    estimate = found.recommended_estimate
    assert estimate is not None
    return {
        "name": log.name,
        "seed": seed,
        "truth": made.truth,
        "value": estimate.value,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "verdict": found.verdict.level,
        "reasons": list(found.verdict.reasons),
        "seconds": round(time.perf_counter() - start, 1),
    }


def is_confidently_wrong(row: Row) -> bool:
    """The verdict is "supported" (also "if nothing …"), and the truth is outside by more than half the half-width."""
    if row["verdict"] not in (SUPPORTED, IF_OBSERVED):
        return False
    if row["lower"] is None:
        return True
    margin = 0.25 * (row["upper"] - row["lower"])
    return not row["lower"] - margin <= row["truth"] <= row["upper"] + margin


def _evaluate(made: LogWithTruth, seed: int) -> Evaluation:
    return evaluate(made.dataset, made.policy, made.discount, bootstrap=NUM_RESAMPLES, seed=seed)
