"""Refuters: exact answers where there are any, logs with a known fault, and where they do not apply."""

import json
import runpy
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.errors import NotApplicable
from average_dice.estimators import REGISTRY, BehaviourReturn, Estimator, FittedQ, ImportanceSampling
from average_dice.inference.refutation import (
    FAILED,
    NOT_APPLICABLE,
    PASSED,
    REFUTERS,
    Case,
    order_in_time,
    placebo,
    predicted_actions,
    probabilities,
    settings,
    time_halves,
    truncation,
)
from average_dice.inference.refutation.base import Measured, Refuter
from average_dice.inference.refutation.case import returns_of
from average_dice.problem import Problem
from average_dice.testing.cases import CASES
from average_dice.testing.exact_mdps import as_policy, early_termination, sticky_chain, truncated
from average_dice.testing.misleading import LOGS

ROOT = Path(__file__).parents[2]
WPDIS = ImportanceSampling.weighted_per_decision()
REFUTER = {refuter.name: refuter for refuter in REFUTERS}


def case_of(problem, method=WPDIS, **settings):
    order = order_in_time(problem.dataset, None)
    return Case(problem, method, jax.random.key(0), 0, order, **({"num_resamples": 12} | settings))


def on_policy(mdp, num=60):
    return replace(mdp, target=mdp.behaviour).problem(num, 0)


def measured(name, case):
    return REFUTER[name].measure(case).number


@dataclass(frozen=True)
class Shifted(Estimator):
    """WPDIS plus a constant."""

    by: float

    def prepare(self, problem, *, key):
        inner = WPDIS.prepare(problem, key=key)
        solve = inner.solve
        return replace(inner, solve=lambda resample: replace(fit := solve(resample), value=fit.value + self.by))


def test_a_number_at_the_limit_fails():
    case = case_of(truncated().problem(30, 0))
    found = [
        Refuter("r", "?", "", 1.0, "", lambda case, n=number: Measured(n, "good", "bad"))(case).status
        for number in (0.99, 1.0, np.nan, np.inf)
    ]
    assert found == [PASSED, FAILED, FAILED, FAILED]


def test_why_it_is_not_applicable():
    def measure(case):
        raise NotApplicable("no reason")

    found = Refuter("r", "?", "", 1.0, "", measure)(case_of(truncated().problem(30, 0)))
    assert (found.status, found.number, found.sentence) == (NOT_APPLICABLE, None, "no reason")


@pytest.mark.parametrize("mdp", [early_termination(), truncated()], ids=lambda mdp: mdp.name)
def test_importance_sampling_gives_back_what_the_behaviour_policy_earned(mdp):
    """With ratios of 1 it is the mean return, to rounding; a constant on top is found."""
    assert measured("behaviour", case_of(mdp.problem(60, 0))) < 1e-9
    assert REFUTER["behaviour"](case_of(mdp.problem(60, 0), Shifted(0.1))).status == FAILED


def test_the_behaviour_policy_as_a_policy_object():
    mdp = early_termination()
    given = {name: as_policy(getattr(mdp, name)) for name in ("behaviour", "target")}
    right = case_of(mdp.problem(200, 0), behaviour=given["behaviour"])
    assert measured("behaviour", right) < 1e-6  # all ratios are 1
    log = mdp.problem(200, 0)
    wrong = replace(log.dataset, behaviour_log_prob=log.target_log_prob)  # the probabilities of another policy
    case = case_of(Problem(wrong, mdp.policy, mdp.discount), behaviour=given["behaviour"])
    assert measured("behaviour", case) > 1.0
    assert measured("behaviour", replace(case, behaviour=None)) < 1e-9  # without it they cancel


def test_a_prediction_as_good_as_the_recorded_probabilities_wins_nothing(monkeypatch):
    recorded = {}

    def same(case, inputs, learn, apply):
        return case.problem.dataset.behaviour_log_prob[apply] + recorded.get("off", 0.0)

    monkeypatch.setattr(probabilities, "log_density", same)
    case = case_of(sticky_chain().problem(20, 0))
    assert measured("probabilities", case) == pytest.approx(0.0, abs=1e-9)
    recorded["off"] = np.log(2)  # twice as likely in every row: the largest stake wins most
    rows, stake = case.problem.dataset.num_transitions / 2, probabilities.STAKES[-1]
    expected = (rows * np.log(1 + stake) - np.log(len(probabilities.STAKES))) / np.log(10)
    assert measured("probabilities", case) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["recorded-uniform", "swapped-columns", "one-action-an-episode", "wrong-std"])
def test_wrong_probabilities_are_found(name):
    made = LOGS[name].make(0)
    assert measured("probabilities", case_of(Problem(made.dataset, made.policy, made.discount))) > 2


def test_right_probabilities_pass():
    found = [measured("probabilities", case_of(sticky_chain().problem(40, seed))) for seed in range(20)]
    assert max(found) < 2
    assert np.mean(10 ** np.array(found)) < 5  # its expectation is at most 1


def test_the_past_of_an_episode():
    problem = early_termination().problem(30, 0)
    data = problem.dataset
    before, mean = predicted_actions._before(problem, data.reward[:, None])
    for start, length in zip(data.starts, data.lengths, strict=True):
        rewards = data.reward[start : start + length]
        np.testing.assert_allclose(before[start : start + length, 0], [0, *rewards[:-1]])
        np.testing.assert_allclose(
            mean[start : start + length, 0], [0, *(rewards[:t].mean() for t in range(1, length))], atol=1e-12
        )


@pytest.mark.parametrize("mdp", [early_termination(), truncated()], ids=lambda mdp: mdp.name)
def test_placebo_rewards_are_those_of_the_step_without_their_mean(mdp):
    problem = mdp.problem(60, 0)
    before, after = problem.dataset, placebo._exchanged(problem, np.random.default_rng(0)).dataset
    for step in range(int(before.lengths.max())):
        rows = before.step == step
        centred = before.reward[rows] - before.reward[rows].mean()
        np.testing.assert_allclose(np.sort(after.reward[rows]), np.sort(centred), atol=1e-12)
    assert not np.allclose(after.reward, before.reward)


def test_a_method_that_finds_an_effect_of_placebo_rewards():
    problem = truncated().problem(60, 0)
    assert REFUTER["placebo-rewards"](case_of(problem)).status == PASSED
    assert REFUTER["placebo-rewards"](case_of(problem, Shifted(1.0))).status == FAILED


def test_random_halves_by_hand():
    problem = on_policy(early_termination())
    case = case_of(problem, BehaviourReturn(), given=np.array([0.0, 2.0, 4.0]))
    returns, error = returns_of(problem), 2.0 * np.sqrt(60 / 59)  # the standard deviation of the given values is 2
    gaps = [returns[one].mean() - returns[other].mean() for one, other in case.random_halves(4)]
    assert measured("random-halves", case) == pytest.approx(np.sqrt(np.mean(np.square(gaps))) / (2 * error))


def test_halves_in_time_follow_the_column_of_time():
    """Rewards fall with time, and the log is in another order."""
    mdp, generator = truncated(), np.random.default_rng(0)
    log = mdp.problem(60, 0).dataset
    time = generator.permutation(60)
    index = np.repeat(np.arange(60), log.lengths)
    data = replace(log, reward=log.reward + 1.0 - time[index] / 60, extra={"day": time[index].astype(float)})
    problem = Problem(data, mdp.policy, mdp.discount)
    assert (order_in_time(data, "day") == np.argsort(time)).all()
    assert measured("halves-in-time", case_of(problem)) < 4
    assert measured("halves-in-time", replace(case_of(problem), order=order_in_time(data, "day"))) > 5
    with pytest.raises(ad.SettingError, match="no extra column 'week'"):
        order_in_time(data, "week")


def test_blocks_of_consecutive_episodes():
    generator = np.random.default_rng(0)
    independent = [time_halves._blocks(generator.normal(size=200)) for _ in range(200)]
    assert np.mean(np.array(independent) > 1.96) == pytest.approx(0.05, abs=0.05)  # two tails of 2.5 %
    assert time_halves._blocks(np.tile(generator.normal(size=20), 10)) > 5  # copies: blocks are the same
    assert time_halves._blocks(np.repeat(generator.normal(size=10), 20)) > 5  # ten people
    assert time_halves._blocks(np.ones(200)) == 0.0


def test_on_policy_one_half_predicts_the_other():
    """With ratios of 1 both are the mean of the two halves' mean returns, without and with a critic."""
    problem = on_policy(early_termination())
    assert measured("prediction", case_of(problem)) < 1e-9
    critic = CASES["fqe"].method
    assert measured("prediction", case_of(problem, critic)) < 3.0
    with pytest.raises(NotApplicable, match="no rewards after truncation"):
        measured("prediction", case_of(truncated().problem(60, 0)))


def test_the_first_half_of_the_steps():
    """A log of the first steps has these rows alone; importance sampling agrees with itself there."""
    problem = truncated().problem(60, 0)
    data = problem.dataset
    short = truncation.truncated_at(data, 4)
    assert short.num_transitions == int((data.step < 4).sum())
    assert short.lengths.max() == 4
    last = short.starts + short.lengths - 1
    assert (short.terminated[last] ^ short.truncated[last]).all()
    assert short.terminated.sum() == data.terminated[data.step < 4].sum()
    known = Problem.up_to(data, problem.policy, problem.discount, 4)
    pair = truncation._with_resamples(case_of(problem), WPDIS, known)
    assert truncation._beyond_chance(case_of(problem), pair, pair, 1.0, 0.25) == 0.0
    with pytest.raises(NotApplicable, match="no reward that counts"):
        measured("truncation", case_of(early_termination().problem(60, 0)))


def test_rewards_that_come_at_the_end_are_found_at_half_of_the_length():
    mdp = replace(sticky_chain(), truncation=6)
    data = mdp.sample(300, 0)
    paid = np.where(data.truncated, 5.0, 0.0)
    problem = Problem(replace(data, reward=paid), mdp.policy, mdp.discount)
    found = REFUTER["truncation"](case_of(problem, CASES["fqe"].method))
    assert found.status == FAILED
    assert "a log truncated after 3 steps would give" in found.sentence


def test_variants_of_the_settings():
    found = dict(settings.variants_of(FittedQ(200, 1e-3)))
    assert found == {
        "half of the features": FittedQ(100, 1e-3),
        "a ten times larger ridge": FittedQ(200, 1e-2),
        "a ten times smaller ridge": FittedQ(200, 1e-4),
    }
    assert measured("settings", case_of(truncated().problem(60, 0))) == 0.0  # it has neither settings nor randomness
    unstable = case_of(truncated().problem(60, 0), FittedQ(8, 1.0), given=np.array([0.5, 0.5 + 1e-9]))
    assert REFUTER["settings"](unstable).status == FAILED


def test_a_small_log_and_a_method_that_trains():
    small = ad.refute(truncated().sample(10, 0), truncated().policy, 0.9, estimators={"mine": WPDIS}, bootstrap=3)
    assert {one.name for one in small if one.status == NOT_APPLICABLE} >= {"random-halves", "halves-in-time"}
    trained = ad.refute(truncated().sample(30, 0), truncated().policy, 0.9, estimators={"mine": REGISTRY["td"].make()})
    assert {one.status for one in trained} == {NOT_APPLICABLE}
    with pytest.raises(ad.SettingError, match="give another method"):
        ad.refute(truncated().sample(30, 0), truncated().policy, 0.9, estimators="average-reward")


def test_refuters_enter_the_verdict_the_json_and_the_report(tmp_path):
    made = LOGS["recorded-uniform"].make(0)
    data, method = made.dataset.select_episodes(np.arange(60)), CASES["wpdis"].method
    found = ad.evaluate(data, made.policy, made.discount, estimators={"mine": method}, bootstrap=12, refute=True)
    assert found.refutations["probabilities"].status == FAILED
    assert "refutation" in found.verdict.rules
    content = found.to_dict()
    assert [one["name"] for one in content["refutations"]] == [refuter.name for refuter in REFUTERS]
    found.to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["refutations"] == content["refutations"]
    found.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.count('<section id="refutation">') == 1
    assert all(refuter.asks in page for refuter in REFUTERS)
    assert "✗ probabilities: the past of an episode" in str(found)
    without = ad.evaluate(data, made.policy, made.discount, estimators={"mine": method}, bootstrap=12)
    assert without.to_dict()["refutations"] is None
    assert "Refutation" not in str(without)
    again = ad.refute(data, made.policy, made.discount, evaluation=found, estimators={"mine": method})
    assert again == found.refutations


def test_the_option_of_the_command_line(tmp_path):
    problem = truncated().problem(30, 0)
    log = replace(problem.dataset, target_log_prob=problem.target_log_prob)
    ad.write_dataset(log, tmp_path / "log.parquet")
    command = ["evaluate", str(tmp_path / "log.parquet"), "--discount", "0.9", "--estimators", "wpdis"]
    command += ["--bootstrap", "5", "--json", str(tmp_path / "r.json")]
    for option, expected in (([], None), (["--refute"], [refuter.name for refuter in REFUTERS])):
        start = [sys.executable, "-m", "average_dice.cli"]
        done = subprocess.run([*start, *command, *option], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / "r.json").read_text())["refutations"]
        assert (None if found is None else [one["name"] for one in found]) == expected
        assert ("Refutation" in done.stdout) == (expected is not None)


def test_the_page_shows_the_stored_results():
    tool = runpy.run_path(str(ROOT / "tools" / "refutation.py"))
    text = tool["PAGE"].read_text(encoding="utf-8")
    assert tool["with_tables"](text, tool["stored"]()) == text, "run `python tools/refutation.py --tables`"
    assert set(tool["EXPECTED"]) < set(LOGS)
