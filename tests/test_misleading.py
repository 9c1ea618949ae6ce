"""Never confidently wrong: on logs that mislead, the interval covers the truth or the verdict is not "supported"."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from average_dice.testing.misleading import LOGS, evaluate_log, is_confidently_wrong

ROOT = Path(__file__).parents[1]

# Some of them; the others take minutes together.
QUICK = (
    "rare-twin-missing",
    "hidden-step-40",
    "hole-at-step-3",
    "wrong-std",
    "deaths-as-truncations",
    "long-tail",
    "never-paid",
    "twelve-episodes",
    "nearly-deterministic",
)
# No check looks for their traces yet.
KNOWN = ("one-action-an-episode", "wear-shown", "clipped-rewards", "high-rewards-missing", "unstable-loop")


@pytest.mark.parametrize("name", QUICK)
def test_never_confidently_wrong(name):
    assert not is_confidently_wrong(evaluate_log(LOGS[name], seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, log in LOGS.items() if log.visible and name not in (*QUICK, *KNOWN)])
def test_never_confidently_wrong_where_it_takes_longer(name):
    assert not is_confidently_wrong(evaluate_log(LOGS[name], seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_every_truth_is_what_the_policy_earns(name):
    made = LOGS[name].make(0)
    returns = made.process.play(4_000 if made.discount < 0.99 else 500, 12345)
    error = max(float(returns.std(ddof=1)) / np.sqrt(len(returns)), 1e-6)
    assert abs(returns.mean() - made.truth) < 4.5 * error


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"verdict": "weak", "truth": 9.0, "lower": 0.0, "upper": 1.0}, False),
        ({"verdict": "supported", "truth": 1.2, "lower": 0.0, "upper": 1.0}, False),
        ({"verdict": "supported", "truth": 1.3, "lower": 0.0, "upper": 1.0}, True),
        ({"verdict": "supported", "truth": 0.5, "lower": None, "upper": None}, True),
    ],
)
def test_what_confidently_wrong_means(row, wrong):
    assert is_confidently_wrong(row) == wrong


def test_the_page_shows_what_was_computed():
    tool = runpy.run_path(str(ROOT / "tools" / "misleading.py"))
    before, now = (json.loads(tool[name].read_text(encoding="utf-8")) for name in ("BEFORE", "STORE"))
    assert tool["page"](before, now) == tool["PAGE"].read_text(encoding="utf-8")
    assert {row["name"] for row in now} == {row["name"] for row in before} == set(LOGS)
    still = {row["name"] for row in now if is_confidently_wrong(row) and LOGS[row["name"]].visible}
    assert still <= {*KNOWN, "simpson", "as-numbers"}
