"""The table of rules: complete, consistent with itself, and the same as the page that shows it."""

import runpy
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from average_dice.estimators import Estimate, Interval
from average_dice.inference.diagnostics import Diagnostics, Heavy
from average_dice.inference.refutation import FAILED, PASSED, Refutation, Refutations
from average_dice.inference.rules import IF_OBSERVED, INFO, NOT_SUPPORTED, OK, RULES, SIGNIFICANT, WEAK, Evidence
from average_dice.inference.rules.base import above, at_least, below
from average_dice.inference.verdict import LEVELS, judge, run_checks
from average_dice.problem import Estimand

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"episodes", "behaviour_log_prob", "by_values", "by_products", "reference_error", "refutations"}
SOUND = Diagnostics(
    reward_range=1.0,
    largest_reward_share=0.01,
    repeated_episodes=0.0,
    unseen_actions=0.0,
    beyond_truncation=0.0,
    mean_ratio=1.0,
    mean_ratio_distance=0.1,
    worst_step=3,
    worst_step_ratio=1.0,
    worst_step_distance=0.1,
    overlap=0.8,
    followed_episodes=20,
    followed_rows=400,
    effective_episodes=20.0,
    pareto_k=0.3,
    heaviest=(Heavy(7, 0.1),),
    balance=0.1,
    missing_mass=0.0,
    excess_mass=0.0,
    memory=0.1,
    truncation=0.1,
    trend=0.1,
    neighbours=0.1,
    mass_found=1.0,
    flow_residual=0.1,
)


def estimate_of_one(lower=0.9, upper=1.1, by_values=1.0):
    parts = {"by_values": by_values, "by_products": 1.0, "reference_error": 0.1}
    return Estimate(1.0, Interval(lower, upper, 0.95, "made up"), diagnostics=parts)


def refutations(num_failed):
    found = [FAILED] * num_failed + [PASSED] * 2
    return Refutations("mine", tuple(Refutation(f"r{i}", "?", one, 1.0, 1.0, "", "why") for i, one in enumerate(found)))


ESTIMATE = estimate_of_one()


def test_the_page_on_trust_shows_the_table():
    tool = runpy.run_path(str(ROOT / "tools" / "rule_tables.py"))
    text = tool["PAGE"].read_text(encoding="utf-8")
    assert tool["with_tables"](text) == text
    for rule in RULES:
        assert f"`{rule.reads[0]}`" in text
        assert rule.limits is None or f"| `{rule.name}` |" in text


def test_every_diagnostic_is_explained_by_one_rule():
    explained = [name for rule in RULES for name in rule.reads]
    assert len(explained) == len(set(explained))
    assert set(explained) - ELSEWHERE == {field.name for field in fields(Diagnostics)}


def test_every_rule_is_complete():
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.description
        assert rule.definition
        assert rule.good
        if rule.limits is not None:
            assert rule.limits.why
            assert rule.says
            assert rule.remedy


def test_a_sound_log_passes_every_check():
    checks = run_checks(ESTIMATE, SOUND, 40)
    others = ("near-actions", "calibration", "estimated-probabilities", "refutation")  # of another kind, or on request
    assert [check.name for check in checks] == [rule.name for rule in RULES if rule.name not in others]
    assert {check.status for check in checks} == {OK, INFO}
    assert {check.name for check in checks if check.status == INFO} == {
        "pareto-k",
        "heaviest-episodes",
        "mass-found",
        "followed-episodes",
    }


def test_estimated_probabilities_limit_the_verdict():
    estimated = replace(SOUND, estimated_behaviour="a table", calibration_error=0.01, calibration_distance=1.0)
    verdict = judge(ESTIMATE, estimated, 40)
    assert verdict.level == IF_OBSERVED
    assert verdict.rules == ("estimated-probabilities",)
    assert "a table" in verdict.reasons[0]
    noisy = replace(estimated, calibration_error=0.2, calibration_distance=4.9)
    assert judge(ESTIMATE, noisy, 40).level == IF_OBSERVED
    poor = judge(ESTIMATE, replace(estimated, calibration_error=0.06, calibration_distance=SIGNIFICANT), 40)
    assert poor.level == WEAK
    assert poor.rules == ("calibration", "estimated-probabilities")
    wrong = judge(ESTIMATE, replace(estimated, mean_ratio=0.2, mean_ratio_distance=9.0), 40)
    assert wrong.level == NOT_SUPPORTED
    assert "the estimated or the policy's probabilities are wrong" in wrong.reasons[0]
    assert list(LEVELS) == ["supported", IF_OBSERVED, WEAK, NOT_SUPPORTED]


def test_near_actions_replace_the_probabilities_of_a_policy_without_density():
    found = replace(SOUND, overlap=None, near_actions=0.6, near_rows=200.0)
    names = [check.name for check in run_checks(ESTIMATE, found, 40)]
    assert "near-actions" in names
    assert "known-probabilities" not in names
    verdict = judge(ESTIMATE, found, 40)
    assert verdict.level == "supported"
    assert "60% of logged actions" in verdict.reasons[0]
    assert judge(ESTIMATE, replace(found, near_actions=0.3), 40).level == WEAK
    assert judge(ESTIMATE, replace(found, near_actions=0.1), 40).level == NOT_SUPPORTED


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.limits is not None], ids=lambda rule: rule.name)
def test_the_verdict_and_the_checks_agree(rule):
    """On faults of every diagnostic: the rules that fire are the checks that are not passed, with the same status."""
    faults = {
        "mean-ratio": {"mean_ratio": 0.5, "mean_ratio_distance": 9.0},
        "step-ratio": {"worst_step_ratio": 0.9, "worst_step_distance": 9.0},
        "state-ratio": {"balance": 9.0, "missing_mass": 0.5},
        "dependent-actions": {"memory": 9.0},
        "informative-truncation": {"truncation": 9.0},
        "trend": {"trend": 9.0},
        "similar-neighbours": {"neighbours": 9.0},
        "known-probabilities": {"overlap": None},
        "calibration": {"calibration_error": 0.2, "calibration_distance": 9.0},
        "estimated-probabilities": {"estimated_behaviour": "a table"},
        "unseen-actions": {"unseen_actions": 0.5},
        "overlap": {"overlap": 0.2},
        "near-actions": {"near_actions": 0.1, "near_rows": 5.0},
        "effective-episodes": {"effective_episodes": 1.2},
        "after-truncation": {"beyond_truncation": 0.5},
        "flow-residual": {"flow_residual": 2.0},
        "largest-reward": {"largest_reward_share": 0.5},
        "repeated-episodes": {"repeated_episodes": 0.5},
    }
    estimate, found, episodes = ESTIMATE, replace(SOUND, **faults.get(rule.name, {})), 40
    if rule.name == "episodes":
        episodes = 1
    elif rule.name == "interval-width":
        estimate = estimate_of_one(lower=1.0, upper=1.0)
    elif rule.name == "agreement":
        estimate = estimate_of_one(by_values=2.0)
    refuted = refutations(num_failed=2) if rule.name == "refutation" else None
    verdict = judge(estimate, found, episodes, refutations=refuted)
    checks = run_checks(estimate, found, episodes, refutations=refuted)
    failed = {check.name: check.status for check in checks if check.status not in (OK, INFO)}
    assert verdict.rules == (rule.name,)
    assert failed == {rule.name: verdict.level}
    assert len(verdict.reasons) == len(verdict.remedies) == 1
    assert "{" not in verdict.reasons[0]
    assert not verdict.reasons[0].endswith(".")


def test_one_failed_refuter_is_weak_and_two_are_not_supported():
    assert [judge(ESTIMATE, SOUND, 40, refutations=refutations(n)).level for n in (0, 1, 2, 3)] == [
        "supported",
        WEAK,
        NOT_SUPPORTED,
        NOT_SUPPORTED,
    ]
    assert judge(ESTIMATE, SOUND, 40, refutations=refutations(1)).reasons == ("why (refuter r0)",)


def test_what_is_not_known_is_not_shown():
    unknown = Diagnostics(reward_range=1.0, largest_reward_share=0.0, repeated_episodes=0.0, unseen_actions=None)
    shown = {check.name: check.status for check in run_checks(None, unknown, 40)}
    assert shown == {
        "known-probabilities": WEAK,
        "episodes": OK,
        "largest-reward": OK,
        "repeated-episodes": OK,
    }


def test_limits_at_the_number_itself():
    def beyond(limit, number):
        return limit.is_beyond(number, limit.number)

    assert [beyond(above(0.2), number) for number in (0.2, np.nextafter(0.2, 1))] == [False, True]
    assert [beyond(at_least(0.2), number) for number in (np.nextafter(0.2, 0), 0.2)] == [False, True]
    assert [beyond(below(0.2), number) for number in (np.nextafter(0.2, 0), 0.2)] == [True, False]
    assert [(limit.fault, limit.good) for limit in (above(0.2, "{:.0%}"), at_least(3.0), below(3.0))] == [
        ("above 20%", "at most 20%"),
        ("3 or more", "below 3"),
        ("below 3", "at least 3"),
    ]


def test_noise_is_no_fault_and_a_number_that_is_not_finite_is_one():
    rule = {rule.name: rule for rule in RULES}

    def status(name, **changes):
        return rule[name].status(Evidence(ESTIMATE, replace(SOUND, **changes), 40))

    noisy = np.nextafter(SIGNIFICANT, 0)
    assert status("mean-ratio", mean_ratio=0.2, mean_ratio_distance=noisy) == OK
    assert status("mean-ratio", mean_ratio=0.2, mean_ratio_distance=SIGNIFICANT) == NOT_SUPPORTED
    assert status("state-ratio", missing_mass=0.9, balance=noisy) == OK
    assert status("state-ratio", missing_mass=-0.1, excess_mass=-0.2, balance=SIGNIFICANT) == WEAK
    assert status("flow-residual", flow_residual=float("nan")) == WEAK
    assert status("mean-ratio", mean_ratio=float("nan"), mean_ratio_distance=9.0) == NOT_SUPPORTED


def test_the_larger_mass_is_shown_where_it_is_significant():
    def shown(**changes):
        checks = run_checks(ESTIMATE, replace(SOUND, missing_mass=0.1, **changes), 40)
        return next(check.value for check in checks if check.name == "state-ratio")

    assert shown(balance=4.0) == "4.0 standard errors from 1"
    assert shown(balance=6.0) == "6.0 standard errors from 1, missing mass 0.1"
    assert shown(balance=6.0, excess_mass=0.3) == "6.0 standard errors from 1, excess mass 0.3"


def test_the_remedy_fits_the_cause():
    """Longer episodes help only where episodes are truncated."""
    finished, truncated = (
        judge(ESTIMATE, replace(SOUND, flow_residual=2.0, beyond_truncation=share), 40) for share in (0.0, 0.01)
    )
    assert finished.remedies == ("log more episodes",)
    assert "log longer episodes" in truncated.remedies[0]


def test_reasons_of_the_worst_level_come_first():
    found = judge(ESTIMATE, replace(SOUND, trend=9.0, overlap=0.1), 40)
    assert found.level == NOT_SUPPORTED
    assert found.rules == ("overlap", "trend")


def test_how_often_the_support_is_left_is_said_by_the_estimand():
    """Only with a discount between 0 and 1 is the number of times discounted; at 0 it is a share of the episodes."""
    hole = replace(SOUND, balance=9.0, missing_mass=0.25, excess_mass=0.0)
    said = {one: judge(ESTIMATE, hole, 40, one).reasons[0] for one in Estimand}
    left = "the policy leaves the support of the log"
    assert said == {
        Estimand.PER_STEP: f"{left} 0.25 times an episode (discounted): rewards there are unknown",
        Estimand.TOTAL: f"{left} 0.25 times an episode: rewards there are unknown",
        Estimand.ONE_STEP: f"{left} at the first step of 25% of the episodes: rewards there are unknown",
    }
