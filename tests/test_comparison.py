"""compare: which policy earns more, on the same bootstrap resamples."""

import json
from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.testing.exact_mdps import as_policy, early_termination

MDP = early_termination()
pytestmark = pytest.mark.xdist_group("comparison")  # on one process, which makes the fixture once


@pytest.fixture(scope="module")
def found():
    """The target, a policy that takes the better action of each state more often, and one that takes the worse."""
    better = MDP.reward.argmax(axis=1)
    good = np.where(np.arange(2) == better[:, None], 0.8, 0.2)
    policies = {"target": MDP.policy, "good": as_policy(good), "bad": as_policy(1 - good)}
    truths = {
        "target": MDP.value,
        "good": replace(MDP, target=good).value,
        "bad": replace(MDP, target=1 - good).value,
    }
    return ad.compare(MDP.sample(150, seed=0), policies, 0.9, bootstrap=15), truths


def test_differences_contain_the_truth_and_tell_good_from_bad(found):
    comparison, truths = found
    behaviour = replace(MDP, target=MDP.behaviour).value
    for (one, other), gap in comparison.differences.items():
        expected = truths[one] - truths.get(other, behaviour)
        width = gap.upper - gap.lower
        assert gap.lower - width < expected < gap.upper + width
    assert comparison.differences["good", "bad"].judgement == "better"
    assert comparison.differences["bad", "behaviour"].judgement == "worse"
    assert comparison.best == "good"


def test_text_and_json(found, tmp_path):
    comparison, _ = found
    text = str(comparison)
    assert all(name in text for name in ("target", "good", "bad", "behaviour", "verdict"))
    comparison.to_json(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text())
    assert [one["policy"] for one in content["policies"]] == ["target", "good", "bad"]
    assert len(content["differences"]) == 6
    assert content["best"] == "good"
    assert content["best_is_clear"]
    assert content["summary"] == comparison.summary
    judgements = {(one["policy"], one["other"]): one["judgement"] for one in content["differences"]}
    assert judgements == {pair: gap.judgement for pair, gap in comparison.differences.items()}
    assert "Largest value: good, significantly better than every other policy." in " ".join(text.split())


def test_the_largest_value_may_be_so_by_chance_or_on_no_ground(found):
    comparison, _ = found
    gap = comparison.differences["good", "bad"]
    by_chance = {**comparison.differences, ("good", "bad"): replace(gap, lower=-1.0)}
    assert not replace(comparison, differences=by_chance).best_is_clear
    for name in ("good", "bad"):
        judged = comparison.evaluations[name]
        unsupported = replace(judged, verdict=replace(judged.verdict, level="not supported"))
        doubtful = replace(comparison, evaluations={**comparison.evaluations, name: unsupported})
        assert not doubtful.best_is_clear
        assert f"the log does not support the value of {name}" in " ".join(str(doubtful).split())


def test_bad_input():
    log = MDP.sample(12, seed=0)
    with pytest.raises(ad.SettingError, match="at least one policy"):
        ad.compare(log, {}, 0.9)
    with pytest.raises(ad.SettingError, match="choose another"):
        ad.compare(log, {"behaviour": MDP.policy}, 0.9)
    with pytest.raises(ad.SettingError, match="at least two bootstrap resamples"):
        ad.compare(log, {"one": MDP.policy}, 0.9, bootstrap=1)
