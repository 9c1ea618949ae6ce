"""Evaluations of deterministic policies: which methods work, what they say, and that their values are right."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

import average_dice as ad
from average_dice.estimators import REGISTRY
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.smoothing import smoothing_bias
from average_dice.policies import DeterministicPolicy, Network, smoothed
from average_dice.policies.deterministic import NO_DENSITY
from average_dice.testing.exact_mdps import early_termination
from average_dice.testing.misleading.linear_gaussian import GaussianActions, LinearGaussianMDP, Square

LINEAR = LinearGaussianMDP(
    GaussianActions(0.3, -0.3, 1e-9),  # deterministic, up to rounding
    GaussianActions(0.0, -0.2, 0.5),
    of_state=(Square(-1.0),),
    of_action=(Square(-0.5),),
)
STEER = DeterministicPolicy(Network(weights=(np.array([[-0.3]]),), biases=(np.array([0.3]),)))
BLEND = "average-dice-blend"


@pytest.fixture(scope="module")
def log():
    return ad.LoggedDataset.from_arrays(**LINEAR.sample(100, seed=0))


@pytest.fixture(scope="module")
def evaluation(log):
    return ad.evaluate(log, STEER, LINEAR.discount, bootstrap=10)


@pytest.mark.parametrize("name", REGISTRY)
def test_methods_give_a_value_or_say_why_not(log, name):
    """Methods that need π at the logged actions cannot work, all others can."""
    entry = REGISTRY[name]
    method = entry.make()
    if method.trains:
        method = method.with_training(num_steps=4, num_checkpoints=1)
    problem = ad.Problem(log.select_episodes(np.arange(20)), STEER, LINEAR.discount)
    if "μ" in entry.needs and name != BLEND:
        with pytest.raises(ad.NotApplicable, match=NO_DENSITY):
            method.fit(problem, key=jax.random.key(0))
    else:
        assert np.isfinite(method.fit(problem, key=jax.random.key(0)).value)


@pytest.mark.parametrize("name", ["fqe", "lstd-q", "mwl-kernel", BLEND])
def test_values_are_those_of_the_exact_process(log, name):
    fit = REGISTRY[name].make().fit(ad.Problem(log, STEER, LINEAR.discount), key=jax.random.key(0))
    assert fit.value == pytest.approx(LINEAR.truth, abs=0.02)  # μ earns 0.07 less


def test_values_are_the_limit_of_gaussian_policies(log):
    narrow = ad.GaussianPolicy(STEER.action, [-19.0])
    for name in ("fqe", "lstd-q"):
        fits = [
            REGISTRY[name].make().fit(ad.Problem(log, policy, LINEAR.discount), key=jax.random.key(0))
            for policy in (STEER, narrow)
        ]
        assert fits[0].value == pytest.approx(fits[1].value, rel=1e-5)


def test_the_recommended_estimate_says_that_there_are_no_ratios(evaluation):
    (note,) = evaluation.recommended_estimate.notes
    assert note == ad.Note(ad.NoteCode.NO_RATIOS, f"by learnt values alone: {NO_DENSITY}")
    assert "importance ratios do not exist" in " ".join(str(evaluation).split())


def test_the_page_says_it(evaluation, tmp_path):
    evaluation.to_html(tmp_path / "page.html")
    assert NO_DENSITY in (tmp_path / "page.html").read_text()


def test_the_reason_does_not_depend_on_whether_the_behaviour_is_known(log):
    problem = ad.Problem(replace(log, behaviour_log_prob=None), STEER, LINEAR.discount)
    with pytest.raises(ad.NotApplicable, match="importance ratios do not exist"):
        _ = problem.log_ratio


def test_a_discrete_policy_is_evaluated_as_the_one_hot_one():
    mdp = early_termination()
    best = mdp.reward.argmax(axis=1)
    with np.errstate(divide="ignore"):
        logits = np.log(np.eye(2)[best])
    one_hot = ad.CategoricalPolicy(lambda observations: logits[observations.argmax(axis=1)])
    greedy = DeterministicPolicy(lambda observations: best[observations.argmax(axis=1)], num_actions=2)
    log = mdp.sample(100, seed=0)
    for name in (BLEND, "fqe", "wpdis", "average-dice-features"):
        fits = [
            REGISTRY[name].make().fit(ad.Problem(log, policy, mdp.discount), key=jax.random.key(0))
            for policy in (greedy, one_hot)
        ]
        assert fits[0].value == fits[1].value


# Is the log near the policy's actions?


def shifted(distance):
    """π acts `distance` standard deviations of μ away from its mean."""
    return DeterministicPolicy(lambda observations: -0.2 * observations + 0.5 * distance)


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0, 3.0])
def test_the_share_of_near_actions_is_that_of_the_normal_distribution(log, distance):
    """Of N(0, 1), the share between distance − 1 and distance + 1."""
    found = diagnose(ad.Problem(log, shifted(distance), LINEAR.discount), key=jax.random.key(0))
    exact = stats.norm.cdf(distance + 1) - stats.norm.cdf(distance - 1)
    weight = LINEAR.discount**log.step
    assert found.near_actions == pytest.approx(exact, abs=4 * np.sqrt(0.25 * (weight @ weight)) / weight.sum())
    assert found.overlap is None


def test_in_two_dimensions_the_share_is_that_of_one(log):
    """The second number of the action is as far from π's as the first, and independent of it."""
    noise = np.random.default_rng(0).normal(0, 0.5, (log.num_transitions, 1))
    wide = replace(log, action=np.column_stack([log.action, noise]))
    policy = DeterministicPolicy(lambda observations: np.column_stack([-0.2 * observations, 0 * observations]))
    found = diagnose(ad.Problem(wide, policy, LINEAR.discount), key=jax.random.key(0))
    assert found.near_actions == pytest.approx(0.683, abs=0.04)
    near = (np.abs(wide.action - policy.actions(log.observation)) < 0.5).all(axis=1) * LINEAR.discount**log.step
    assert found.near_rows == pytest.approx(near.sum() ** 2 / (near @ near), rel=0.05)


def test_a_log_near_the_policy_is_supported_and_one_far_from_it_is_not(evaluation, log):
    assert evaluation.verdict.level == "supported"
    assert evaluation.recommended_estimate.lower <= LINEAR.truth <= evaluation.recommended_estimate.upper
    assert {check.name for check in evaluation.checks}.isdisjoint({"known-probabilities", "overlap"})
    levels = [
        ad.evaluate(log, shifted(distance), LINEAR.discount, estimators=["fqe"], bootstrap=0).verdict
        for distance in (1.5, 3.0)
    ]
    assert [found.level for found in levels] == ["weak", "not supported"]
    assert all("near-actions" in found.rules for found in levels)
    assert not any("log behaviour_log_prob" in found.remedies for found in levels)


# Smoothing.

SHORT = replace(LINEAR, of_action=(Square(-2.0),), discount=0.5, truncation=12)


@pytest.fixture(scope="module")
def short_log():
    return ad.LoggedDataset.from_arrays(**SHORT.sample(3_000, seed=0))


def exact_value(policy):
    """Of a policy around that of `SHORT`."""
    return replace(SHORT, target=replace(SHORT.target, std=float(np.exp(policy.log_std[0])))).truth


def test_the_spread_is_that_of_the_behaviour_policy(short_log):
    policy = smoothed(STEER, short_log, 0.3)
    assert np.exp(policy.log_std[0]) == pytest.approx(0.3 * SHORT.behaviour.std, rel=0.02)
    np.testing.assert_array_equal(policy.mean(short_log.observation), STEER.actions(short_log.observation))


def test_without_bandwidth_the_smoothed_value_is_that_of_the_policy(short_log):
    changes = [exact_value(smoothed(STEER, short_log, bandwidth)) - SHORT.truth for bandwidth in (0.4, 0.2, 0.1, 0.05)]
    np.testing.assert_allclose(np.divide(changes[:-1], changes[1:]), 4, rtol=1e-6)  # the cost is quadratic


def test_the_chosen_bandwidth_is_the_smallest_with_half_of_the_rows(short_log):
    policy = smoothed(STEER, short_log)

    def share(bandwidth):
        ratio = ad.Problem(short_log, smoothed(STEER, short_log, bandwidth), SHORT.discount).ratio
        return ratio.sum() ** 2 / (ratio @ ratio) / len(ratio)

    assert 0.3 <= policy.bandwidth <= 0.6
    assert share(policy.bandwidth) >= 0.5 > share(policy.bandwidth - 0.05)


@pytest.mark.parametrize(("name", "tolerance"), [("pdis", 0.05), ("wpdis", 0.02), ("average-dice-features", 0.02)])
def test_methods_by_ratios_find_the_value_of_the_smoothed_policy(short_log, name, tolerance):
    """Three standard errors or more. The policy itself earns 0.13 more."""
    policy = smoothed(STEER, short_log)
    fit = REGISTRY[name].make().fit(ad.Problem(short_log, policy, SHORT.discount), key=jax.random.key(0))
    assert fit.value == pytest.approx(exact_value(policy), abs=tolerance)
    assert exact_value(policy) < SHORT.truth - 2 * tolerance


@pytest.mark.parametrize("bandwidth", [0.2, 0.5])
def test_the_stated_change_is_the_exact_one(short_log, bandwidth):
    policy = smoothed(STEER, short_log, bandwidth)
    found = smoothing_bias(ad.Problem(short_log, policy, SHORT.discount), key=jax.random.key(0))
    assert found == pytest.approx(exact_value(policy) - SHORT.truth, rel=0.1)


def test_estimates_of_a_smoothed_policy_have_a_note(short_log):
    part = short_log.select_episodes(np.arange(100))
    policy = smoothed(STEER, part, 0.5)
    found = ad.evaluate(part, policy, SHORT.discount, bootstrap=0)
    change = smoothing_bias(ad.Problem(part, policy, SHORT.discount), key=jax.random.key(0))
    (note,) = (one for one in found.recommended_estimate.notes if one.code == ad.NoteCode.SMOOTHED)
    assert f"bandwidth 0.5; by fqe, smoothing changes the value by {change:+.4g}" in note.text
    codes = [one.code for one in found.estimates["average-reward"].notes]
    assert ad.NoteCode.SMOOTHED not in codes


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda log: smoothed(STEER, log, 0.0), "above zero"),
        (lambda log: smoothed(STEER, log, float("nan")), "above zero"),
        (lambda log: smoothed(ad.GaussianPolicy(STEER.action, [0.0]), log), "only deterministic policies"),
        (lambda log: smoothed(STEER, replace(log, behaviour_log_prob=None)), "no behaviour_log_prob"),
        (lambda log: smoothed(DeterministicPolicy(lambda x: np.zeros((len(x), 2))), log), "of 2 numbers, the log of 1"),
    ],
)
def test_what_cannot_be_smoothed(log, attempt, message):
    with pytest.raises(ad.SettingError, match=message):
        attempt(log)


# The command line.


def evaluate_by_command(folder, *arguments, code=0):
    command = [Path(sys.executable).with_name("average-dice"), "evaluate", folder / "log.parquet"]
    command += ["--policy", folder / "policy.safetensors", "--discount", "0.5", "--bootstrap", "0", *arguments]
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    return " ".join((done.stdout + done.stderr).split())


def test_the_command_smooths_with_a_given_or_a_chosen_bandwidth(short_log, tmp_path):
    part = short_log.select_episodes(np.arange(60))
    ad.write_dataset(part, tmp_path / "log.parquet")
    ad.save_policy(STEER, tmp_path / "policy.safetensors")
    text = evaluate_by_command(tmp_path, "--estimators", "fqe")
    assert text.startswith(f"Note: {NO_DENSITY}.")  # before the work
    found = {}
    for arguments in (["--smooth"], ["--smooth", "0.35"]):  # an option or nothing follows the first
        path = tmp_path / "result.json"
        text = evaluate_by_command(tmp_path, *arguments, "--estimators", "wpdis", "--json", path)
        assert "importance ratios do not exist" not in text
        found[len(arguments)] = json.loads(path.read_text())["estimates"][0]
        assert "smoothed" in found[len(arguments)]["note_codes"]
    chosen = smoothed(STEER, part).bandwidth
    assert f"bandwidth {chosen:g};" in "".join(found[1]["notes"])
    assert "bandwidth 0.35;" in "".join(found[2]["notes"])
    ad.save_policy(ad.GaussianPolicy(STEER.action, [0.0]), tmp_path / "policy.safetensors")
    assert "--smooth is for deterministic policies" in evaluate_by_command(tmp_path, "--smooth", code=2)
