"""Intervals, verdicts and reports of logs with estimated probabilities."""

import json
import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY, FittedQ, uses_behaviour
from average_dice.estimators.importance.importance_sampling import ImportanceSampling
from average_dice.inference.bootstrap import replicate, resampled_episodes
from average_dice.inference.rules import IF_OBSERVED
from average_dice.inference.uncertainty import IntervalSettings, bias_corrected_interval, uncertainty
from average_dice.notes import NoteCode
from average_dice.problem import Problem
from average_dice.testing.exact_mdps import early_termination

MDP = early_termination()
KEY = jax.random.key(0)
DATA = MDP.sample(40, seed=0)
UNKNOWN = replace(DATA, behaviour_log_prob=None)
ESTIMATED = ad.estimate_behaviour(UNKNOWN, models=["table"])
PROBLEM = Problem(ESTIMATED, MDP.policy, MDP.discount)


def interval_of(method, problem, number=40):
    prepared = method.prepare(problem, key=KEY)
    return uncertainty(method, problem, prepared, IntervalSettings(bootstrap=number), key=KEY)


def test_resamples_estimate_the_probabilities_again():
    """The value on a resample is that of a log with the resampled episodes and the probabilities estimated from it."""
    method = ImportanceSampling.weighted_per_decision()
    chosen = list(resampled_episodes(40, 3, seed=0))
    values = replicate(method, PROBLEM, chosen, key=KEY)
    for one, value in zip(chosen, values, strict=True):
        again = replace(
            ESTIMATED, behaviour_log_prob=ESTIMATED.estimated_behaviour.again(one), estimated_behaviour=None
        )
        expected = method.fit(Problem(again, MDP.policy, MDP.discount).select_episodes(one), key=KEY).value
        np.testing.assert_allclose(value, expected, rtol=1e-12)
    fixed = Problem(replace(ESTIMATED, estimated_behaviour=None), MDP.policy, MDP.discount)
    assert np.abs(values - replicate(method, fixed, chosen, key=KEY)).min() > 1e-6


def test_methods_without_probabilities_are_not_refitted():
    method, chosen = FittedQ(20, 1e-9), list(resampled_episodes(40, 3, seed=0))
    known = Problem(DATA, MDP.policy, MDP.discount)
    np.testing.assert_array_equal(
        replicate(method, PROBLEM, chosen, key=KEY), replicate(method, known, chosen, key=KEY)
    )


@pytest.mark.parametrize("name", REGISTRY)
def test_the_table_of_estimators_says_which_use_probabilities(name):
    assert uses_behaviour(REGISTRY[name].make()) == ("μ" in REGISTRY[name].needs)


def test_the_bootstrap_replaces_students_t():
    method = ImportanceSampling.per_decision()
    refitted = interval_of(method, PROBLEM)
    assert refitted.interval.kind.endswith("40 bootstrap resamples")
    assert refitted.note is None
    stored = replace(ESTIMATED, estimated_behaviour=ESTIMATED.estimated_behaviour.fixed())
    fixed = interval_of(method, Problem(stored, MDP.policy, MDP.discount))
    assert fixed.interval.kind.startswith("Student's t")
    assert fixed.note.code is NoteCode.BEHAVIOUR_FIXED
    assert interval_of(FittedQ(20, 1e-9), Problem(stored, MDP.policy, MDP.discount)).note is None


def test_refitted_intervals_of_plain_sampling_are_wider():
    """PDIS averages over independent estimates of μ if these are refitted, and over one otherwise."""
    method = ImportanceSampling.per_decision()
    stored = replace(ESTIMATED, estimated_behaviour=ESTIMATED.estimated_behaviour.fixed())
    chosen = list(resampled_episodes(40, 60, seed=0))
    refitted = replicate(method, PROBLEM, chosen, key=KEY)
    fixed = replicate(method, Problem(stored, MDP.policy, MDP.discount), chosen, key=KEY)
    assert abs(refitted.std() / fixed.std() - 1) > 0.02


def test_the_jackknife_estimates_again_without_each_episode():
    method = ImportanceSampling.weighted_per_decision()
    fit = method.fit(PROBLEM, key=KEY)
    replicates = replicate(method, PROBLEM, list(resampled_episodes(40, 50, seed=0)), key=KEY)
    low, high = bias_corrected_interval(method, PROBLEM, fit, replicates, 0.95, KEY)
    assert low < fit.value < high


def test_the_verdict_is_limited_and_the_record_is_reported(tmp_path):
    found = ad.evaluate(UNKNOWN, MDP.policy, MDP.discount, estimate_behaviour=True, bootstrap=4)
    assert found.verdict.level == IF_OBSERVED
    assert found.verdict.rules == ("estimated-probabilities",)
    content = found.to_dict()["behaviour_estimate"]
    assert content["model"] in content["candidates"]
    assert content["calibration"][0].keys() == {"predicted", "observed", "standard_error", "number"}
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Observed against predicted frequencies" in page
    assert 'class="verdict supported-if-nothing-unobserved-drove-the-actions"' in page
    assert IF_OBSERVED in str(found)


def test_a_log_without_probabilities_is_told_how_to_estimate_them():
    found = ad.evaluate(UNKNOWN, MDP.policy, MDP.discount, estimators=["wpdis"], bootstrap=0)
    assert "--estimate-behaviour (ad.estimate_behaviour)" in str(found.estimates["wpdis"].notes[0])
    assert found.behaviour_estimate is None
    assert found.to_dict()["behaviour_estimate"] is None


def test_estimates_of_the_user_are_not_refitted():
    data = replace(DATA, estimated_behaviour=ad.data.EstimatedBehaviour())
    settings = {"estimators": ["wpdis"], "bootstrap": 8}
    found = ad.evaluate(data, MDP.policy, MDP.discount, **settings).estimates["wpdis"]
    assert NoteCode.BEHAVIOUR_FIXED in [note.code for note in found.notes]
    known = ad.evaluate(DATA, MDP.policy, MDP.discount, **settings)
    assert known.estimates["wpdis"].interval == found.interval


def test_the_horizon_keeps_the_estimates_of_the_whole_log():
    found = ad.evaluate(ESTIMATED, MDP.policy, 1.0, horizon=3, estimators=["wpdis"], bootstrap=8)
    assert found.estimates["wpdis"].interval.kind.startswith("Student's t with the spread of 8")
    assert found.behaviour_estimate.model.startswith("table")


def test_equal_policies_do_not_differ_on_paired_resamples():
    found = ad.compare(
        UNKNOWN, {"one": MDP.policy, "same": MDP.policy}, MDP.discount, estimate_behaviour=True, bootstrap=2
    )
    difference = found.differences["one", "same"]
    assert (difference.value, difference.lower, difference.upper) == (0.0, 0.0, 0.0)


def test_the_command_line_estimates(tmp_path):
    log, out = tmp_path / "log.parquet", tmp_path / "out.json"
    ad.write_dataset(replace(UNKNOWN, target_log_prob=PROBLEM.target_log_prob), log)
    options = ["--discount", str(MDP.discount), "--estimators", "wpdis", "--bootstrap", "4", "--json", str(out)]
    command = [sys.executable, "-m", "average_dice.cli", "evaluate", str(log), *options]
    done = subprocess.run([*command, "--estimate-behaviour"], capture_output=True, text=True, timeout=300, check=True)
    assert "probabilities of the logged actions were estimated" in done.stdout
    assert json.loads(out.read_text())["behaviour_estimate"]["model"]
