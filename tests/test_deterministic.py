"""Evaluations of deterministic policies: which methods work, what they say, and that their values are right."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY
from average_dice.policies import DeterministicPolicy, Network
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
