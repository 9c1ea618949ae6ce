"""Claims from made-up results whose verdicts are known."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from average_dice.errors import SettingError
from average_dice.experiments import base
from average_dice.experiments.ablation import ABLATION, AblationPlan
from average_dice.experiments.claims import (
    CLAIMS_ANALYSIS,
    FAILS,
    HOLDS,
    NOT_RUN,
    OPEN,
    _error,
    _mean_error_and_deviation,
    _steps_to_stability,
    judge_claims,
    others_below_td,
    sr_dice_comparable,
)
from average_dice.experiments.main import MAIN, MainPlan, ReleasedPlan
from average_dice.experiments.registry import EXPERIMENTS
from average_dice.experiments.robustness import RobustnessPlan
from average_dice.notes import NoteCode
from average_dice.tasks import TASKS
from made_up import METHODS, PAPER, PLANS, STEPS, as_the_paper_says, fill

WITH_RELEASED = {
    "estimators": (*METHODS, "average-dice-released"),
    "steps": {**STEPS, "average-dice-released": 100},
}


def the_opposite(job, method):
    if job.experiment == "ablation":
        return 0.1
    if job.experiment == "robustness":
        return 0.1 if job.setting.max_steps == 200 else 0.2
    return {PAPER: 1.5, "td": 0.5, "sr-dice": 1.6}.get(method.estimator, 0.1)


@pytest.mark.parametrize(
    ("error", "quick", "verdict"), [(as_the_paper_says, PAPER, HOLDS), (the_opposite, "td", FAILS)]
)
def test_each_claim_is_judged_by_the_numbers(tmp_path, error, quick, verdict):
    for experiment in ("main", "robustness", "ablation"):
        fill(tmp_path, experiment, error, quick)
    claims = judge_claims(tmp_path)
    assert [claim for claim in claims if claim.verdict != verdict] == []
    assert f"{7 if verdict == HOLDS else 0} of 7 tasks" in claims[0].evidence
    assert f"{quick} 50" in claims[2].evidence
    assert "after 100 steps, geometric mean over tasks: cop-td" in claims[3].evidence
    assert all(bool(claim.explanation) == (verdict == FAILS) for claim in claims)
    paths = CLAIMS_ANALYSIS.summary(tmp_path).write(tmp_path)
    assert [path.name for path in paths] == ["claims.md", "claims.json"]
    text = paths[0].read_text()
    assert text.startswith("| claim of the paper | as printed | as released | evidence | explanation |\n")
    assert text.count(f"| {verdict} | {NOT_RUN} |") == 8
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()} == {6}  # the bars of |J| are escaped
    assert [one["claim"] for one in json.loads(paths[1].read_text())] == [one.claim for one in claims]


def test_no_method_is_fastest_where_all_are_equally_fast(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, quick="none of them")
    assert judge_claims(tmp_path)[2].verdict == FAILS


def test_claims_about_named_tasks_wait_for_all_of_them(tmp_path):
    alone = ("CartPole-v1",)
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=alone))
    fill(tmp_path, "ablation", as_the_paper_says, plan=replace(PLANS["ablation"], tasks=alone))
    claims = judge_claims(tmp_path)
    assert claims[0].verdict == HOLDS
    assert [claims[1].verdict, claims[7].verdict] == [NOT_RUN, NOT_RUN]


def test_a_run_that_diverged_is_never_stable(tmp_path):
    """The paper's method would be first, but on two of three logs it has no value."""
    fill(tmp_path, "main", lambda job, method: None if method.estimator == PAPER and job.log else 0.1)
    claim = judge_claims(tmp_path)[2]
    assert (claim.verdict, "average-dice-paper never" in claim.evidence) == (FAILS, True)


def test_a_run_with_too_few_steps_is_never_stable_and_is_named(tmp_path):
    codes = {"cop-td": [NoteCode.VALUE_RULE, NoteCode.SHORT_TRAINING]}
    fill(tmp_path, "main", as_the_paper_says, quick="cop-td", note_codes=codes)
    claims = judge_claims(tmp_path)
    assert "cop-td never" in claims[2].evidence
    assert all("(3 logs, 1 seed; too few training steps: cop-td)" in one.evidence for one in claims[:5])


def test_an_incomplete_experiment_is_not_judged(tmp_path):
    plan = PLANS["main"]
    fill(tmp_path, "main", as_the_paper_says, plan=replace(plan, logs=2, trained_logs=2))
    MAIN.store(tmp_path, plan, {})  # another process continues with a third log
    claims = judge_claims(tmp_path)
    assert {claim.verdict for claim in claims} == {NOT_RUN}
    assert claims[0].evidence == "incomplete: 56 of 168 runs are missing"


def test_rows_of_another_target_policy_do_not_count(tmp_path, monkeypatch):
    fill(tmp_path, "ablation", as_the_paper_says)
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=("Ant-v5",)))
    original = base.policy_hash
    monkeypatch.setattr(base, "policy_hash", lambda task: original(task) + "new" * (task == "Hopper-v5"))
    assert {row["task"] for row in ABLATION.results(tmp_path)} == set(TASKS) - {"Hopper-v5"}
    claims = judge_claims(tmp_path)
    assert [claims[0].verdict, claims[7].verdict] == [HOLDS, NOT_RUN]
    assert claims[7].evidence == "incomplete: 4 of 28 runs are missing"


def test_a_value_that_is_stable_only_at_the_end_is_not(tmp_path):
    """With ten checkpoints: at its last value for the last fifth of its steps, or for a little longer."""
    fill(tmp_path, "main", as_the_paper_says)
    row = next(row for row in MAIN.results(tmp_path) if row["estimator"] == PAPER)
    far = row["truth"] * 1.2
    for stays, expected in ((1, np.inf), (2, np.inf), (3, 800.0), (10, 100.0)):
        values = [*[row["value"] + far] * (10 - stays), *[row["value"]] * stays]
        curve = {"curve_step": list(range(100, 1_100, 100)), "curve_value": values}
        assert _steps_to_stability({**row, **curve}) == expected


def test_a_claim_that_depends_on_the_length_of_training_is_open(tmp_path):
    """TD is better than all others by training ten times as long; after equally many steps it is worse."""
    fill(tmp_path, "main", as_the_paper_says)
    rows = MAIN.results(tmp_path)
    assert [others_below_td(rows)[0], sr_dice_comparable(rows)[0]] == [HOLDS, HOLDS]
    for row in rows:
        if row["estimator"] == "td":
            row["curve_step"] = [0, 100, 1_000]
            row["curve_value"][1] = row["truth"] * 2.8
    verdict, evidence = others_below_td(rows)
    assert verdict == OPEN
    ratios = (
        f"cop-td {0.9 / 0.3:.2g} after 100, dual-dice {0.9 / 0.3:.2g} after 100, best-dice {0.9 / 0.3:.2g} after 100"
    )
    assert f"TD after 1,000 steps, geometric mean over tasks: {ratios}; over" in evidence
    assert "after equally many steps: cop-td 0.5, dual-dice 0.5, best-dice 0.5" in evidence
    verdict, evidence = sr_dice_comparable(rows)
    assert (verdict, "TD after 100 steps" in evidence, "had, on 0 of 7" in evidence) == (OPEN, True, True)
    for row in rows:
        if row["estimator"] == "sr-dice":  # the first thousand steps train its encoder
            row["curve_step"] = [1_000, 1_500, 2_000]
    assert sr_dice_comparable(rows)[0] == HOLDS


def test_a_value_that_oscillates_is_not_right_by_one_checkpoint(tmp_path):
    """Errors of −0.3, 0.3, −0.1 and 0.1 in the last fifth of training, or in its last 1,000 steps."""
    fill(tmp_path, "main", as_the_paper_says)
    row = next(row for row in MAIN.results(tmp_path) if row["estimator"] == PAPER)
    values = [9.0] * 17 + [0.7, 1.3, 0.9, 1.1]
    for every in (50, 250):  # up to 1,000 and to 5,000 steps
        steps = list(range(0, 21 * every, every))
        curve = {"curve_step": steps, "curve_value": values, "truth": 1.0, "value": 1.1}
        assert _error([{**row, **curve}]) == pytest.approx(np.sqrt((0.3**2 + 0.3**2 + 0.1**2 + 0.1**2) / 4))
    off, deviation = _mean_error_and_deviation([{**row, **curve}])
    assert (off, deviation) == pytest.approx((np.mean(values[10:]) - 1, np.std(values[10:])))
    longer = {**curve, "curve_step": list(range(0, 21 * 400, 400))}
    assert _error([{**row, **longer}]) == pytest.approx(np.sqrt((0.3**2 + 0.1**2 + 0.1**2) / 3))
    lost = {**row, **curve, "curve_value": [1.0] * 20 + [np.nan]}
    assert _error([lost]) == np.inf
    assert _error([{**row, "curve_step": [], "value": 1.25, "truth": 1.0}]) == pytest.approx(0.25)


def test_an_error_that_is_small_by_luck_counts_as_a_thousandth(tmp_path):
    """On one of its logs fitted Q is right to the sixth digit; it is judged by all of them, and by the floor."""
    plan = replace(PLANS["robustness"], tasks=("Hopper-v5",), trained_logs=1)

    def error(job, method):
        return 0.05 if method.estimator == PAPER else 1e-6

    fill(tmp_path, "robustness", error, plan=plan)
    claim = judge_claims(tmp_path)[5]
    assert (claim.verdict, "50 at 0.8, 50 at 0.9" in claim.evidence) == (FAILS, True)
    fill(tmp_path / "two", "robustness", lambda job, method: 0.1 if job.log else 1e-6, plan=plan)
    assert f"{1e-3 / (0.1 / 2**0.5):.2g} at 0.8" in judge_claims(tmp_path / "two")[5].evidence


def test_no_method_wins_where_all_diverged(tmp_path):
    fill(tmp_path, "main", lambda job, method: None)
    claim = judge_claims(tmp_path)[0]
    assert (claim.verdict, "CartPole-v1 none" in claim.evidence) == (FAILS, True)


def test_a_method_that_fails_on_some_logs_does_not_win(tmp_path):
    """TD has the smallest errors, but on one log of each task none at all."""

    def error(job, method):
        if method.estimator != "td":
            return as_the_paper_says(job, method)
        return None if job.log == 1 else 1e-6

    fill(tmp_path, "main", error)
    assert judge_claims(tmp_path)[0].verdict == HOLDS
    assert MAIN.figures(tmp_path)


def test_a_claim_is_not_judged_without_the_methods_and_tasks_it_names(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, plan=MainPlan(("Ant-v5",), ("wpdis", PAPER), 1, 1, 1, 50, {PAPER: 100}))
    fill(
        tmp_path,
        "robustness",
        as_the_paper_says,
        plan=RobustnessPlan(("CartPole-v1",), (PAPER, "td"), 1, 1, 1, 50, {PAPER: 100, "td": 100}, ("transitions",)),
    )
    fill(tmp_path, "ablation", as_the_paper_says, plan=AblationPlan(("Ant-v5",), 1, 1, 100, 50, (0.5,)))
    assert {claim.verdict for claim in judge_claims(tmp_path)} == {NOT_RUN}


def test_claims_without_results_are_not_judged(tmp_path):
    with pytest.raises(SettingError, match="no results"):
        judge_claims(tmp_path)
    fill(tmp_path, "main", as_the_paper_says)
    assert [claim.verdict for claim in judge_claims(tmp_path)][5:] == [NOT_RUN] * 3


def test_the_released_method_is_judged_by_the_same_rules_on_its_own_logs(tmp_path):
    """The printed method is the worst on the logs of main, the released one the best on logs as released."""
    fill(tmp_path, "main", the_opposite, "td")
    assert {claim.as_released for claim in judge_claims(tmp_path)} == {NOT_RUN}
    assert "main has no results of average-dice-released" in judge_claims(tmp_path)[0].released_evidence

    def error(job, method):
        if method.estimator == "average-dice-released":
            return 0.1
        return 5.0 if method.estimator == PAPER else as_the_paper_says(job, method)

    plan = ReleasedPlan(tuple(TASKS), logs=3, trained_logs=3, seeds=1, every=50, **WITH_RELEASED)
    fill(tmp_path, "released", error, "average-dice-released", plan=plan)
    claims = judge_claims(tmp_path)
    assert [claim.verdict for claim in claims[:5]] == [FAILS] * 5
    assert [claim.as_released for claim in claims] == [HOLDS] * 5 + [NOT_RUN] * 3
    assert "smallest error on 7 of 7 tasks: CartPole-v1 average-dice-released" in claims[0].released_evidence
    assert PAPER not in claims[0].released_evidence
    assert claims[0].released_evidence.endswith("(3 logs, 1 seed) on logs as released")
    assert PAPER in claims[2].evidence
    assert f"{claims[0].evidence}; as released: {claims[0].released_evidence}" in claims[0].line


def test_without_logs_as_released_the_released_method_is_judged_on_those_of_main(tmp_path):
    plan = replace(PLANS["main"], **WITH_RELEASED)
    fill(
        tmp_path,
        "main",
        lambda job, method: 1.5 if "released" in method.estimator else as_the_paper_says(job, method),
        plan=plan,
    )
    first = judge_claims(tmp_path)[0]
    assert (first.verdict, first.as_released) == (HOLDS, FAILS)
    assert first.released_evidence.endswith("(3 logs, 1 seed)")


def test_an_incomplete_run_on_logs_as_released_is_not_judged(tmp_path):
    plan = ReleasedPlan(tuple(TASKS), logs=2, trained_logs=2, seeds=1, every=50, **WITH_RELEASED)
    fill(tmp_path, "released", as_the_paper_says, plan=plan)
    EXPERIMENTS["released"].store(tmp_path, replace(plan, logs=3, trained_logs=3), {})
    first = judge_claims(tmp_path)[0]
    assert (first.verdict, first.as_released) == (NOT_RUN, NOT_RUN)
    assert first.released_evidence == "incomplete: 63 of 189 runs are missing"
