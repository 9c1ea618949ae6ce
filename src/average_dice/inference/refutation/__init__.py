"""Refutation: attempts to show that an estimate is wrong, from the same log.

Each refuter changes one thing whose consequence is known (the target is the behaviour policy, rewards are exchanged at
random, the log is halved) and compares. The idea is that of DoWhy (Sharma & Kiciman, 2020), here for sequential data.
`REFUTERS` is the table. A refuter that fails shows that something is wrong; that all pass proves nothing.
"""

from average_dice.inference.refutation.base import Measured, Refuter
from average_dice.inference.refutation.case import NUM_RESAMPLES, Case
from average_dice.inference.refutation.registry import REFUTERS
from average_dice.inference.refutation.results import FAILED, NOT_APPLICABLE, PASSED, Refutation, Refutations
from average_dice.inference.refutation.running import order_in_time, run_refuters

__all__ = [
    "FAILED",
    "NOT_APPLICABLE",
    "NUM_RESAMPLES",
    "PASSED",
    "REFUTERS",
    "Case",
    "Measured",
    "Refutation",
    "Refutations",
    "Refuter",
    "order_in_time",
    "run_refuters",
]
