"""What the recommended estimator says of a misleading log, and whether it is confidently wrong."""

import time
from typing import Any

import average_dice as ad

from .logs import LOGS

NUM_ACTIONS_DRAWN = 25
BY_NAME = {log.name: log for log in LOGS}
Row = dict[str, Any]


def is_wrong(row: Row) -> bool:
    """Supported, and apart from the truth by more than half of a half-width beyond the interval."""
    if row["verdict"] != "supported":
        return False
    if row["lower"] is None:
        return True
    beyond = 0.25 * (row["upper"] - row["lower"])
    return not row["lower"] - beyond <= row["truth"] <= row["upper"] + beyond


def evaluated(name: str, seed: int) -> Row:
    made, start = BY_NAME[name].make(seed), time.perf_counter()
    found = ad.evaluate(made.dataset, made.policy, made.discount, num_draws=NUM_ACTIONS_DRAWN, seed=seed)
    estimate = found.recommended_estimate
    assert estimate is not None
    return {
        "name": name,
        "seed": seed,
        "truth": made.truth,
        "value": estimate.value,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "verdict": found.verdict.level,
        "reasons": list(found.verdict.reasons),
        "seconds": round(time.perf_counter() - start, 1),
    }
