"""plan: what a pilot log says about larger ones, against logs of that size and against its own numbers."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.truncation import truncated_at
from average_dice.estimators import REGISTRY
from average_dice.inference.uncertainty import IntervalSettings, uncertainty
from average_dice.pilot import Expects
from average_dice.report import planning as drawing
from average_dice.testing.exact_mdps import as_policy, random_mdp, support_hole, truncated

MDP = truncated()
FAST = {"estimator": "average-dice-tabular", "bootstrap": 60}
pytestmark = pytest.mark.xdist_group("planning")  # on one process, which makes the fixture once


@pytest.fixture(scope="module")
def found():
    return ad.plan(MDP.sample(80, seed=0), MDP.policy, 0.95, width=0.02, against="behaviour", max_steps=(5, 20), **FAST)


def width_of(problem, seed):
    import jax

    method = REGISTRY["average-dice-tabular"].make()
    key = jax.random.key(seed)
    settings = IntervalSettings(bootstrap=100, seed=seed)
    return uncertainty(method, problem, method.prepare(problem, key=key), settings, key=key).interval.width / 2


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("mdp", [random_mdp(), MDP], ids=lambda mdp: mdp.name)
def test_predicted_widths_are_those_of_logs_of_that_size(mdp):
    """From pilot logs of 100 episodes to logs of 400, on average over logs within 25 %."""
    plans = [ad.plan(mdp.sample(100, seed=seed), mdp.policy, mdp.discount, episodes=[400], **FAST) for seed in range(6)]
    predicted = np.array([one.expected[0].half_width for one in plans])
    measured = np.mean([width_of(mdp.problem(400, seed=100 + seed), seed) for seed in range(6)])
    assert predicted.mean() == pytest.approx(measured, rel=0.25)
    assert all(one.expected[0].lower < one.expected[0].half_width < one.expected[0].upper for one in plans)


def test_numbers_agree_with_each_other(found):
    """The half-width at the needed number is the wanted one; at the pilot's number it is the pilot's."""
    at_needed = ad.plan(MDP.sample(80, seed=0), MDP.policy, 0.95, episodes=[80, found.needed.episodes], **FAST).expected
    assert at_needed[-1].half_width == pytest.approx(0.02, rel=0.02)
    assert at_needed[-1].half_width <= 0.02
    assert at_needed[0].half_width == pytest.approx(found.half_width)
    assert found.needed.lower < found.needed.episodes < found.needed.upper
    widths = [one.half_width for one in found.expected]
    assert widths == sorted(widths, reverse=True)
    assert [one.episodes for one in found.expected] == [40, 80, 160, 320, 640]


def test_the_difference_is_that_of_evaluate(found):
    alone = ad.evaluate(MDP.sample(80, seed=0), MDP.policy, 0.95, estimators=FAST["estimator"], bootstrap=60)
    against = found.against
    assert against.value == pytest.approx(alone.against_behaviour.value)
    assert (against.lower, against.upper) == pytest.approx(
        (alone.against_behaviour.lower, alone.against_behaviour.upper)
    )
    assert found.value == pytest.approx(alone.value)
    if against.lower < 0 < against.upper:
        assert against.needed.upper is None
    assert against.needed.lower < against.needed.episodes


def test_two_policies_that_are_the_same_need_no_episodes_but_have_no_difference():
    """Paired resamples: the difference of a policy from itself is 0 on each."""
    same = ad.plan(MDP.sample(40, seed=0), MDP.policy, 0.95, against=MDP.policy, **FAST).against
    assert same.value == 0
    assert same.needed.episodes is None
    other = ad.plan(
        MDP.sample(40, seed=0), MDP.policy, 0.95, against=as_policy(MDP.behaviour), against_name="old", **FAST
    )
    assert other.against.policy == "old"
    assert other.sentences[0].startswith("You have 40 episodes, with an expected ±0.0")
    assert "from old" in other.sentences[1]


def test_truncation_at_the_full_length_changes_nothing_and_earlier_it_does(found):
    short, whole = found.truncations
    assert (short.steps, whole.steps) == (5, 20)
    assert whole.change == 0
    assert whole.half_width == pytest.approx(found.half_width)
    data = MDP.sample(80, seed=0)
    assert short.transitions == int((data.step < 5).sum()) < whole.transitions == data.num_transitions
    direct = REGISTRY[FAST["estimator"]].make().fit(ad.Problem(truncated_at(data, 5), MDP.policy, 0.95)).value
    assert short.value == pytest.approx(direct)
    assert short.after > whole.after


def test_a_truncated_log_estimates_the_behaviour_policy_again():
    """The estimates of the resamples are those of the rows that are left."""
    data = ad.estimate_behaviour(MDP.sample(30, seed=0))
    short = truncated_at(data, 5)
    chosen = np.arange(30)
    whole = data.estimated_behaviour.again(chosen)
    np.testing.assert_array_equal(short.estimated_behaviour.again(chosen), whole[data.step < 5])


@pytest.mark.slow
def test_a_log_that_does_not_support_the_value_needs_no_more_episodes():
    mdp = support_hole()
    found = ad.plan(mdp.sample(60, seed=0), mdp.policy, mdp.discount, width=0.02, bootstrap=10)
    assert not found.more_helps
    assert found.sentences[0].startswith("More episodes of the same kind do not help: this log does not support")
    assert not any("for ±0.02" in one for one in found.sentences)


def test_where_the_law_does_not_hold_the_range_contains_what_the_exponent_predicts():
    slower = replace(Expects(0.1, 50.0, None, 100, 0.95, None), law=ad.inference.sample_size.Exponent(0.2, 0.1, 0.3))
    by_law = replace(slower, law=None).at(1600)
    assert slower.at(1600).half_width == by_law.half_width
    assert slower.at(1600).upper > 1.5 * by_law.upper
    assert slower.at(1600).lower == by_law.lower


def test_sentences(found):
    content = found.to_dict() | {"half_width": 0.0412, "episodes": 200}
    needed = {"size": 0.05, "episodes": 643, "lower": 451, "upper": 1_117}
    content |= {"needed": needed, "against": None, "truncations": [], "square_root_holds": True}
    content["verdict"] = content["verdict"] | {"level": "supported"}
    assert drawing.sentences(content) == [
        "About 640 episodes (450 to 1,100) for ±0.05; you have 200, with an expected ±0.041."
    ]
    content["needed"] = needed | {"episodes": 150, "lower": 99, "upper": 230}
    assert drawing.sentences(content) == [
        "About 150 episodes (99 to 230) for ±0.05; you have 200, which are enough, with an expected ±0.041."
    ]
    content["square_root_holds"], content["exponent"] = False, {"value": 0.31, "lower": 0.2, "upper": 0.4}
    assert "episodes^(−0.31) (0.20 to 0.40)" in drawing.sentences(content)[-1]


def test_text_json_and_page(found, tmp_path):
    text = str(found)
    assert all(one in " ".join(text.split()) for one in found.sentences)
    assert "640" in text
    found.to_json(tmp_path / "plan.json")
    content = json.loads((tmp_path / "plan.json").read_text())
    assert content["needed"]["episodes"] == found.needed.episodes
    assert content["sentences"] == list(found.sentences)
    found.with_command("average-dice plan <b>").to_html(tmp_path / "plan.html")
    made = (tmp_path / "plan.html").read_text()
    assert "<svg" in made
    assert "average-dice plan &lt;b&gt;" in made
    assert "you have 80" in made


def test_bad_input():
    log = MDP.sample(20, seed=0)
    for settings, message in (
        ({"width": 0.0}, "above 0"),
        ({"episodes": [1]}, "at least 2"),
        ({"power": 0.3}, "at least 0.5"),
        ({"bootstrap": 5}, "at least 10 bootstrap"),
        ({"max_steps": [21]}, "longest episode has 20 steps"),
        ({"estimator": "average-dice-neural"}, "trains anew"),
        ({"estimator": "average-reward"}, "not a baseline"),
        ({"estimator": "fqee"}, "fqe"),
    ):
        with pytest.raises(ad.SettingError, match=message):
            ad.plan(log, MDP.policy, 0.95, **settings)
    with pytest.raises(ad.SettingError, match="at least 10 episodes"):
        ad.plan(MDP.sample(5, seed=0), MDP.policy, 0.95)


def test_the_command_writes_what_the_function_returns(tmp_path):
    sampled = MDP.sample(40, seed=0)
    columns = {"target_log_prob": np.log(MDP.target[sampled.observation.argmax(axis=1), sampled.action])}
    log = tmp_path / "pilot.parquet"
    ad.write_dataset(MDP.sample(40, seed=0, **columns), log)
    command = [Path(sys.executable).with_name("average-dice"), "plan", log, "--discount", "0.95", "--width", "0.05"]
    command += ["--estimator", "wpdis", "--episodes", "20,50", "--against", "behaviour", "--max-steps", "5"]
    command += ["--bootstrap", "20", "--json", tmp_path / "plan.json", "--report", tmp_path / "plan.html"]
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "plan.json").read_text())
    settings = {"width": 0.05, "episodes": [20, 50], "against": "behaviour", "max_steps": [5], "bootstrap": 20}
    expected = ad.plan(ad.read_dataset(log), None, 0.95, estimator="wpdis", **settings)
    assert content == json.loads(json.dumps(expected.with_command(content["command"]).to_dict()))
    assert (tmp_path / "plan.html").exists()
    command[command.index("20,50")] = "many"
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "--episodes takes whole numbers" in done.stderr


def test_a_truncation_is_advised_only_if_the_log_still_supports_the_value(found):
    content = found.to_dict()
    short = content["truncations"][0] | {"lower": -0.001, "upper": 0.001, "verdict": "weak"}
    content["truncations"] = [short]
    assert drawing.sentences(content)[-1].startswith("Truncation after 5 steps keeps 2")
    for worse in ({"verdict": "not supported"}, {"upper": 1.0}, {"lower": -1.0}):
        content["truncations"] = [short | worse]
        assert drawing.sentences(content)[-1].endswith("do not truncate earlier.")
