"""Verdicts where the truth is known: counted by hand on made-up rows, and stored by a real run."""

import json
from dataclasses import asdict

import pytest

import average_dice as ad
from average_dice.experiments.executors import local
from average_dice.experiments.runner import run_experiment
from average_dice.experiments.trust import TRUST, TrustPlan, by_verdict, verdict_of
from made_up import SOUND


def row(value, lower, upper, task="Hopper-v5", truth=2.0, **log):
    content = {
        "lower": lower,
        "upper": upper,
        "episodes": 40,
        "fit": {"by_values": value, "by_products": value},
        "log": asdict(SOUND) | log,
    }
    return {
        "task": task,
        "value": value,
        "truth": truth,
        "error": value - truth,
        "diagnostics": json.dumps(content),
    }


def test_cases_are_counted_by_verdict():
    rows = [
        row(2.02, 1.9, 2.1),
        row(2.04, 2.001, 2.1),
        row(1.9, 1.7, 2.1, beyond_truncation=0.2),
        row(1.0, 0.9, 1.1, "Walker2d-v5", beyond_truncation=0.7),
    ]
    lines = by_verdict(rows)
    assert [(line.verdict, line.cases, line.contained, line.nearly) for line in lines] == [
        ("supported", 2, 0.5, 1.0),
        ("weak", 1, 1.0, 1.0),
        ("not supported", 1, 0.0, 0.0),
        ("not supported", 1, 0.0, 0.0),
    ]
    assert [line.median_error for line in lines] == pytest.approx([0.015, 0.05, 0.5, 0.5])
    assert lines[-1].tasks == "HalfCheetah-v5, Walker2d-v5"


@pytest.mark.slow
def test_a_run_stores_what_the_verdict_needs(tmp_path):
    plan = TrustPlan(("Hopper-v5",), logs=1, bootstrap=2, axes=("max_steps",))
    run_experiment(TRUST, plan, tmp_path, local(1))
    rows = TRUST.results(tmp_path)
    assert len(rows) == 4
    assert {row["options"] for row in rows} == {'{"bootstrap": 2.0}'}
    assert {verdict_of(one).level for one in rows} <= {"supported", "weak", "not supported"}
    shortest = min(rows, key=lambda one: one["max_steps"])
    assert any("lies after truncation" in reason for reason in verdict_of(shortest).reasons)
    table, content = TRUST.summary(tmp_path).write(tmp_path)
    assert table.read_text().startswith("| tasks | verdict | cases |")
    assert len(json.loads(content.read_text())) == len(by_verdict(rows))


def test_without_results(tmp_path):
    with pytest.raises(ad.SettingError, match="no results of trust"):
        TRUST.summary(tmp_path)
