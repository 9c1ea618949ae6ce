"""What a person does with an evaluation: read it, print it, plot it, look up an estimate."""

import re
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.data.names import Names
from average_dice.inference.difference import Difference
from average_dice.testing.exact_mdps import early_termination
from conftest import columns_of

MDP = early_termination()
LOG = MDP.sample(30, seed=0)
pytestmark = pytest.mark.xdist_group("results")  # on one process, which makes the fixture once


@pytest.fixture(scope="module")
def evaluation():
    names = "average-dice-features,fqe,behaviour-return"
    return ad.evaluate(LOG, MDP.policy, 0.9, estimators=names, bootstrap=4)


def test_the_value_and_its_interval(evaluation):
    judged = evaluation.estimates["average-dice-features"]
    assert evaluation.value == judged.value
    assert evaluation.interval == judged.interval
    assert evaluation.interval.lower < evaluation.value < evaluation.interval.upper
    baselines = ad.evaluate(LOG, None, 0.9, estimators="behaviour-return", bootstrap=0)
    assert baselines.value is baselines.interval is baselines.weights is None


def test_estimates_by_name(evaluation):
    assert evaluation["fqe"] is evaluation.estimates["fqe"]
    with pytest.raises(ad.SettingError, match=r"no estimate by fge\. Did you mean fqe\? There are average-dice-feat"):
        evaluation["fge"]


def test_the_weights_of_rows_give_the_value(evaluation):
    assert np.sum(evaluation.weights * LOG.reward) == pytest.approx(evaluation.value, rel=1e-12)
    by_values = ad.evaluate(LOG, MDP.policy, 0.9, estimators="fqe", bootstrap=0)
    assert by_values.weights is None


def test_short_representations(evaluation):
    number = r"-?\d[\d.e-]*"
    assert re.fullmatch(
        rf"Evaluation\(average-dice-features {number} \[{number}, {number}\], (supported|weak|not supported)\)",
        repr(evaluation),
    )
    assert re.fullmatch(rf"Estimate\({number} \[{number}, {number}\]\)", repr(evaluation["fqe"]))
    assert repr(ad.Estimate(None)) == "Estimate(no value)"
    rows = LOG.num_transitions
    assert repr(LOG) == f"LoggedDataset({rows} transitions, 30 episodes, 5 observations, 2 discrete actions)"
    one = LOG.select_episodes(np.array([0]))
    assert f"{one.num_transitions} transitions, 1 episode, 5 observations" in repr(one)
    problem = ad.Problem(LOG, MDP.policy, 0.9)
    assert repr(problem) == f"Problem({LOG.in_short}; CategoricalPolicy; discount 0.9)"
    assert repr(ad.Fit(0.25, weights=np.ones(3))) == "Fit(0.25, with weights)"


def test_without_a_key_the_seed_is_0():
    problem = ad.Problem(LOG, MDP.policy, 0.9)
    assert ad.AverageDICE().fit(problem).value == ad.AverageDICE().fit(problem, key=jax.random.key(0)).value
    assert ad.select(problem, ["wis", "fqe"]) == ad.select(problem, ["wis", "fqe"], key=jax.random.key(0))


def test_progress_is_shown_and_reported(capsys):
    started = []
    found = ad.evaluate(LOG, MDP.policy, 0.9, estimators="wpdis", bootstrap=2, progress=True, starting=started.append)
    assert started == ["wpdis", "diagnostics", "behaviour policy"]
    assert found.value == ad.evaluate(LOG, MDP.policy, 0.9, estimators="wpdis", bootstrap=2).value


def test_a_plot_has_a_row_for_each_estimate(evaluation):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = evaluation.plot()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["average-dice-features", "fqe", "behaviour-return"]
    points = [line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "o"]
    assert points == [one.value for one in evaluation.estimates.values()]
    assert evaluation.plot(ax=axes) is axes
    pyplot.close(axes.figure)
    with pytest.raises(ad.SettingError, match="the evaluation has no groups to plot"):
        evaluation.plot("groups")
    with pytest.raises(ad.SettingError, match="Did you mean groups"):
        evaluation.plot("group")


def test_a_plot_without_matplotlib_names_the_extra(evaluation, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ad.SettingError, match=r"average-dice\[experiments\]"):
        evaluation.plot()


def test_nothing_follows_from_a_value_that_the_log_does_not_support():
    few = LOG.select_episodes(np.arange(5))  # too few
    found = ad.evaluate(few, MDP.policy, 0.9, estimators="wpdis", bootstrap=4)
    assert found.verdict.level == "not supported"
    content = found.to_dict()["against_behaviour"]
    assert content["judgement"] == "no conclusion"
    assert content["sentence"].startswith(
        "Against the behaviour policy: no conclusion because the log does not support"
    )
    assert not re.search("better|worse", content["sentence"])
    compared = ad.compare(few, {"one": MDP.policy, "other": MDP.policy}, 0.9, bootstrap=2)
    assert {one["judgement"] for one in compared.to_dict()["differences"]} == {"no conclusion"}
    assert "no conclusion: the log does not support the value of one, other" in compared.summary
    assert not re.search("better|worse", str(compared))


def test_judgements():
    better = Difference(1.0, 0.5, 1.5, 0.95, 0.0)
    assert better.judgement == "better"
    assert replace(better, supported=False).judgement == "no conclusion"


def test_intervals_that_need_no_resamples():
    with_resamples, without = (
        ad.evaluate(LOG, MDP.policy, 0.9, estimators="pdis,behaviour-return,wis", bootstrap=number) for number in (4, 0)
    )
    for name in ("pdis", "behaviour-return"):
        assert without[name].interval == with_resamples[name].interval
        assert without[name].interval.kind == "Student's t over 30 episodes"
    assert without["wis"].interval is None
    assert without.behaviour.interval is not None


def test_codes_that_are_not_declared_are_the_first_remedy():
    columns = columns_of(LOG.select_episodes(np.arange(5)))
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 4, len(columns["step"])).astype(float)
    after = np.append(codes[1:], 0.0)
    columns["observation"] = np.column_stack([codes, columns["observation"]])
    columns["next_observation"] = np.column_stack([after, columns["next_observation"]])
    columns["target_log_prob"] = columns["behaviour_log_prob"]
    log = ad.LoggedDataset(**columns)
    assert log.looks_categorical == (0,)
    remedies = ad.evaluate(log, None, 0.9, estimators="wpdis", bootstrap=0).verdict.remedies
    assert remedies[0].endswith("--categorical 0")
    assert len(remedies) > 1
    named = replace(log, names=Names(("ward", *(f"x{number}" for number in range(log.observation.shape[1] - 1)))))
    by_name = ad.evaluate(named, None, 0.9, estimators="wpdis", bootstrap=0).verdict.remedies
    assert by_name[0] == "if observation column ward holds codes of categories, declare it: --categorical ward"
    declared = ad.evaluate(replace(log, categorical=(0,)), None, 0.9, estimators="wpdis", bootstrap=0).verdict.remedies
    assert declared == remedies[1:]
