"""compare: which policy earns more, on the same bootstrap resamples."""

import json
from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import RECOMMENDED
from average_dice.inference import difference
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
    judged = comparison.evaluations["target"]
    noise = np.random.default_rng(0).normal(scale=0.5, size=15)
    by_chance = replace(judged, replicates={RECOMMENDED: judged.replicates[RECOMMENDED] + noise})
    uncertain = replace(comparison, evaluations={**comparison.evaluations, "target": by_chance})
    assert not uncertain.best_is_clear
    assert set(uncertain.not_excluded) == {"target", "good"}
    assert "The best is one of target, good (95% confidence over all pairs)." in " ".join(str(uncertain).split())
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


def test_the_ranking_is_by_value_with_intervals_that_hold_together(found):
    comparison, _ = found
    content = comparison.to_dict()
    ranking = content["ranking"]
    values = {one["policy"]: found["value"] for one in content["policies"] for found in one["estimates"]}
    values["behaviour"] = content["behaviour"]["value"]
    assert [one["policy"] for one in ranking] == sorted(values, key=lambda name: -values[name])
    assert [one["rank"] for one in ranking] == [1, 2, 3, 4]
    assert [one["status"] for one in ranking] == ["best", "excluded", "excluded", "excluded"]
    assert content["not_excluded"] == [content["best"]] == [ranking[0]["policy"]]
    assert all("good" in one["excluded_by"] for one in ranking[1:])
    together = {(one["policy"], one["other"]): one for one in content["simultaneous"]["differences"]}
    assert set(together) == set(comparison.differences)
    for pair, gap in comparison.differences.items():
        assert together[pair]["value"] == pytest.approx(gap.value)
        assert together[pair]["upper"] - together[pair]["lower"] > gap.upper - gap.lower
    for one in ranking[1:]:
        assert one["upper"] < 0
        pair = together.get((one["policy"], "good"))
        if pair is not None:
            assert (one["lower"], one["upper"]) == (pair["lower"], pair["upper"])


def test_a_value_that_the_log_does_not_support_excludes_none_and_is_not_excluded(found):
    """Neither the best nor the worst; and the intervals of the others are those without it."""
    comparison, _ = found
    for name in ("good", "bad"):
        judged = comparison.evaluations[name]
        unsupported = replace(judged, verdict=replace(judged.verdict, level="not supported"))
        doubtful = replace(comparison, evaluations={**comparison.evaluations, name: unsupported})
        content = doubtful.to_dict()
        assert name in doubtful.not_excluded
        assert content["ranking"][-1] | {"value": 0, "difference": 0} == {
            "rank": None,
            "policy": name,
            "value": 0,
            "status": "no conclusion",
            "difference": 0,
            "lower": None,
            "upper": None,
            "excluded_by": [],
        }
        assert not any(name in one["excluded_by"] for one in content["ranking"])
        others = {key: one for key, one in comparison.evaluations.items() if key != name}
        pairs = {pair: gap for pair, gap in comparison.differences.items() if name not in pair}
        without = replace(comparison, evaluations=others, differences=pairs)
        assert content["simultaneous"]["critical"] == without.to_dict()["simultaneous"]["critical"]
        assert set(doubtful.not_excluded) == {name, *without.not_excluded}


def test_what_does_not_depend_on_the_policy_is_computed_once(monkeypatch):
    """The numbers are those of separate evaluations, to the last digit."""
    log, calls = MDP.sample(20, seed=1), []
    plain = difference.behaviour_value

    def counted(*args, **settings):
        calls.append(args)
        return plain(*args, **settings)

    monkeypatch.setattr(difference, "behaviour_value", counted)
    policies = {"target": MDP.policy, "other": as_policy(np.full((5, 2), 0.5))}
    compared = ad.compare(log, policies, 0.9, bootstrap=4)
    assert len(calls) == 1
    for name, policy in policies.items():
        alone = ad.evaluate(log, policy, 0.9, estimators=[RECOMMENDED], bootstrap=4)
        assert alone.against_behaviour == compared.evaluations[name].against_behaviour
        assert alone.behaviour == compared.evaluations[name].behaviour
    assert len(calls) == 3


def test_estimated_probabilities_are_estimated_once_from_each_resample():
    log, calls = MDP.sample(20, seed=1), []
    estimated = ad.estimate_behaviour(log)
    again = estimated.estimated_behaviour.again

    def counted(chosen):
        calls.append(chosen.tobytes())
        return again(chosen)

    counting = replace(estimated, estimated_behaviour=replace(estimated.estimated_behaviour, again=counted))
    policies = {"target": MDP.policy, "other": as_policy(np.full((5, 2), 0.5))}
    compared = ad.compare(counting, policies, 0.9, bootstrap=3)
    assert len(calls) == len(set(calls)) == 3
    alone = ad.evaluate(estimated, policies["other"], 0.9, estimators=[RECOMMENDED], bootstrap=3)
    assert alone.interval == compared.evaluations["other"].interval
