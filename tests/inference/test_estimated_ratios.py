"""The excess of the mean importance ratio where probabilities were estimated, and the rules that allow for it."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import AverageDICE
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.estimated_ratios import EstimatedRatios
from average_dice.inference.rules import NOT_SUPPORTED, OK
from average_dice.inference.rules.base import SIGNIFICANT, Evidence
from average_dice.inference.rules.probabilities import MEAN_RATIO
from average_dice.notes import NoteCode
from average_dice.problem import Problem
from average_dice.testing.clinic import VITAL_SIGNS, clinic

KEY = jax.random.key(0)
PATIENTS = 100


@pytest.mark.parametrize("wrong", [1.0, 1.3])
def test_the_excess_of_errors_that_shrink_with_the_log_is_taken_off(wrong):
    """μ̂ = μ (1 ± d) as often up as down: the mean of ρ is 1 / (1 − d²). From a half, d² is twice as large.

    Probabilities that are too small by a constant factor, in halves as in the whole, stay wrong by that factor.
    """
    ratios, sign = np.ones(1000), np.resize([1.0, -1.0], 1000)
    for d in (0.02, 0.1, 0.2):
        whole = wrong * ratios / (1 + d * sign)
        halves = np.stack([wrong * ratios / (1 + one * np.sqrt(2) * d * sign) for one in (1, -1)])
        found = EstimatedRatios(whole, halves)
        assert whole.mean() == pytest.approx(wrong / (1 - d**2), rel=1e-12)
        assert found.excess == pytest.approx(wrong * (1 / (1 - 2 * d**2) - 1 / (1 - d**2)), rel=1e-9)
        assert abs(found.corrected.mean() - wrong) < 4 * d**4


def test_the_shared_error_is_the_spread_of_the_halves():
    halves = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]])
    found = EstimatedRatios(np.ones(3), halves)
    assert found.shared_error(np.full(3, 1 / 3)) == pytest.approx(np.std([2, 3], ddof=1))
    assert EstimatedRatios(np.ones(3)).shared_error(np.ones(3)) == 0
    assert EstimatedRatios(np.ones(3)).excess is None


@cache
def estimated(shuffled: bool) -> Problem:
    """A sound log with estimated probabilities; or those of a model of shuffled observations."""
    problem = clinic().problem(PATIENTS, 0, "cautious", 1.0, VITAL_SIGNS)
    data = replace(problem.dataset, behaviour_log_prob=None)
    if shuffled:
        seen = np.random.default_rng(0).permutation(data.observation)
        given = replace(data, observation=seen, next_observation=np.roll(seen, -1, axis=0), action_mask=None)
        found = ad.estimate_behaviour(given, models=["constant", "linear"])
    else:
        found = ad.estimate_behaviour(data, models=["linear"])
    record = found.estimated_behaviour
    data = replace(data, behaviour_log_prob=found.behaviour_log_prob, estimated_behaviour=record)
    return Problem(data, problem.policy, 1.0)


def judged(problem: Problem) -> Evidence:
    return Evidence(None, diagnose(problem, key=KEY), problem.dataset.num_episodes, problem.estimand)


def test_a_sound_log_with_estimated_probabilities_passes():
    """Without the allowance its mean ratio is 1.09, 5.8 standard errors from 1."""
    problem = estimated(shuffled=False)
    evidence = judged(problem)
    assert evidence.diagnostics.mean_ratio > 1.05
    assert evidence.diagnostics.mean_ratio_excess > 0.02
    assert MEAN_RATIO.status(evidence) == OK
    assert "without what errors of the estimated probabilities add" in MEAN_RATIO.check(evidence).value


def test_a_model_of_shuffled_observations_is_caught():
    evidence = judged(estimated(shuffled=True))
    assert evidence.diagnostics.mean_ratio_distance > SIGNIFICANT
    assert MEAN_RATIO.status(evidence) == NOT_SUPPORTED
    finding = MEAN_RATIO.finding(evidence)
    assert "the estimated or the policy's probabilities are wrong" in finding.reason


def test_groups_of_episodes_have_the_same_allowance():
    problem = estimated(shuffled=False)
    chosen = np.arange(0, PATIENTS, 2)
    found = EstimatedRatios.of(problem.select_episodes(chosen))
    rows = problem.dataset.rows_of(chosen)
    np.testing.assert_array_equal(found.halves, EstimatedRatios.of(problem).halves[:, rows])


def test_a_horizon_keeps_the_allowance():
    problem = estimated(shuffled=False)
    shorter = Problem.up_to(problem.dataset, problem.policy, 1.0, 3)
    found, rows = EstimatedRatios.of(shorter), problem.dataset.step < 3
    np.testing.assert_array_equal(found.halves, EstimatedRatios.of(problem).halves[:, rows])


def test_estimates_that_come_with_the_log_are_judged_as_they_are():
    problem = estimated(shuffled=False)
    record = problem.dataset.estimated_behaviour.fixed()
    stored = Problem(replace(problem.dataset, estimated_behaviour=record), problem.policy, 1.0)
    evidence = judged(stored)
    assert evidence.diagnostics.mean_ratio_excess is None
    assert "--estimate-behaviour" in MEAN_RATIO.finding(evidence).remedy


def test_the_note_on_the_mass_speaks_of_the_estimate():
    problem = estimated(shuffled=True)
    notes = AverageDICE().fit(problem, key=KEY).notes
    text = next(note.text for note in notes if note.code is NoteCode.MASS_OFF)
    assert "were estimated" in text
    assert "check both log-probabilities" not in text
