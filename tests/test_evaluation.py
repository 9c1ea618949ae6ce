"""evaluate: the estimates, the JSON that others rely on, and what happens when a method does not apply."""

import json
from collections import Counter

import jax
import numpy as np
import pyarrow as pa
import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY, AverageDICE, Blend, FittedQ, find
from average_dice.labels import plain
from average_dice.testing.exact_mdps import early_termination
from conftest import columns_of

MDP = early_termination()
pytestmark = pytest.mark.xdist_group("evaluation")  # on one process, which makes the fixture once
CLOSED = "average-reward,behaviour-return,average-dice-tabular,average-dice-linear,average-dice-blend"


@pytest.fixture(scope="module")
def evaluation():
    return ad.evaluate(MDP.sample(50, seed=0), MDP.policy, 0.9, estimators=CLOSED, bootstrap=8, seed=3)


def test_each_estimate_is_the_value_of_its_method(evaluation):
    problem = ad.Problem(MDP.sample(50, seed=0), MDP.policy, 0.9)
    for name, estimate in evaluation.estimates.items():
        assert estimate.value == REGISTRY[name].make().fit(problem, key=jax.random.key(3)).value
    assert evaluation.recommended_estimate == evaluation.estimates["average-dice-blend"]


def test_baselines_by_hand():
    log = MDP.sample(50, seed=0)
    found = ad.evaluate(log, None, 0.9, estimators="average-reward,behaviour-return", bootstrap=0).estimates
    assert found["average-reward"].value == pytest.approx(np.mean(log.reward))
    returns = [
        sum(0.9**t * r for t, r in enumerate(log.reward[start : start + length]))
        for start, length in zip(log.starts, log.lengths, strict=True)
    ]
    assert found["behaviour-return"].value == pytest.approx(0.1 * np.mean(returns))


def test_the_json_has_the_documented_keys(evaluation, tmp_path):
    evaluation.to_json(tmp_path / "result.json")
    content = json.loads((tmp_path / "result.json").read_text())
    promised = {"discount", "estimand", "horizon", "seed", "dataset", "estimates", "recommended", "verdict", "versions"}
    assert set(content) == promised | {"judged", "checks", "diagnostics", "states", "curves", "command"} | {
        "definition",
        "behaviour_estimate",
        "behaviour",
        "against_behaviour",
        "no_difference",
        "reward",
        "rewards",
        "by",
        "groups",
        "title",
        "policy",
        "log",
        "date",
        "distribution",
        "refutations",
    }
    summary = {
        "terminated",
        "lengths",
        "rewards",
        "observation",
        "categorical",
        "action_features",
        "behaviour_model",
        "action",
        "behaviour_known",
        "metadata",
        "notes",
        "names",
    }
    assert set(content["dataset"]) == {"sha256", "transitions", "episodes"} | summary
    assert set(content["verdict"]) == {"level", "reasons", "remedies", "rules"}
    keys = {"estimator", "value", "return", "lower", "upper", "level", "interval", "seconds", "diagnostics"}
    numbers = {"estimator", "value", "return", "lower", "upper", "level", "interval"}
    assert set(content["behaviour"]) == numbers | {"source", "sentence"}
    keys |= {"notes", "note_codes", "label"}
    assert all(set(estimate) == keys for estimate in content["estimates"])
    assert [estimate["estimator"] for estimate in content["estimates"]] == CLOSED.split(",")
    assert content["recommended"] == "average-dice-blend"
    assert content["estimates"][-1]["value"] == evaluation.recommended_estimate.value


def test_the_json_has_what_is_shown(evaluation):
    """So that the terminal and the page need to compute nothing."""
    content = evaluation.to_dict()
    for one in content["estimates"]:
        assert one["return"] == (None if one["estimator"] == "average-reward" else one["value"] / (1 - 0.9))
        assert one["interval"].startswith("Student's t ")
        assert one["interval"] not in " ".join(one["notes"])
        assert len(one["note_codes"]) == len(one["notes"])
    assert content["verdict"]["rules"] == []
    assert all(check["status"] in ("ok", "info") for check in content["checks"])
    assert content["against_behaviour"]["judgement"] == evaluation.against_behaviour.judgement
    assert content["no_difference"] is None
    without = ad.evaluate(MDP.sample(20, seed=0), MDP.policy, 0.9, estimators="wpdis", bootstrap=0).to_dict()
    assert without["estimates"][0]["interval"] is None
    assert without["against_behaviour"] is None
    assert "two bootstrap resamples" in without["no_difference"]


def test_the_table_names_every_estimator_and_marks_the_recommended_one(evaluation):
    text = str(evaluation)
    assert all(name in text for name in CLOSED.split(","))
    assert "average-dice-blend ★" in text
    assert "\x1b" not in text


def test_what_does_not_apply_is_said_and_the_rest_goes_on():
    columns = columns_of(MDP.sample(50, seed=0))
    del columns["behaviour_log_prob"]
    found = ad.evaluate(
        ad.LoggedDataset(**columns), MDP.policy, 0.9, estimators="recommended,wpdis,behaviour-return", bootstrap=0
    )
    assert found.estimates["wpdis"].value is None
    assert found.estimates["wpdis"].notes[0].code == ad.NoteCode.NOT_APPLICABLE
    assert found.estimates["wpdis"].notes[0].text.startswith("not applicable: it needs μ")
    assert found.recommended_estimate.value is not None
    assert found.recommended_estimate.notes[0].code == ad.NoteCode.NO_RATIOS
    assert found.recommended_estimate.notes[0].text.startswith("by learnt values alone: it needs μ")
    assert found.estimates["behaviour-return"].value is not None
    assert "not applicable" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_estimates_as_a_table(evaluation):
    table = evaluation.to_frame()
    table = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table)
    assert table.column("estimator").to_pylist() == CLOSED.split(",")
    assert table.column("value").to_pylist() == [one.value for one in evaluation.estimates.values()]
    assert table.column("lower").to_pylist() == [one.lower for one in evaluation.estimates.values()]


def test_each_method_is_prepared_once(monkeypatch):
    """For the value, the interval, the difference and the diagnostics; and once for the behaviour policy.

    Only the random features of three more quarters of the resamples are drawn anew, for both policies.
    """
    counts = Counter()

    def counted(cls, name):
        original = getattr(cls, name)

        def spied(self, *args, **kwargs):
            counts[cls.__name__] += 1
            return original(self, *args, **kwargs)

        monkeypatch.setattr(cls, name, spied)

    counted(Blend, "prepare")
    counted(AverageDICE, "prepare")
    ad.evaluate(MDP.sample(20, seed=0), MDP.policy, 0.9, bootstrap=8)
    assert counts == {"Blend": 2 * 4, "AverageDICE": 2 * (4 + 1)}  # the table has nothing random
    counts.clear()
    ad.evaluate(MDP.sample(20, seed=0), MDP.policy, 0.9, bootstrap=0)
    assert counts == {"Blend": 1, "AverageDICE": 2}


def test_methods_with_a_part_in_common_share_it(monkeypatch):
    made, original = [], FittedQ.prepare

    def spied(self, problem, *, key):
        made.append(self)
        return original(self, problem, key=key)

    monkeypatch.setattr(FittedQ, "prepare", spied)
    found = ad.evaluate(
        MDP.sample(20, seed=0), MDP.policy, 0.9, estimators=["fqe", "dr", "wdr", "average-dice-dr"], bootstrap=0
    )
    assert len(made) == 1
    for name, one in found.estimates.items():
        alone = REGISTRY[name].make().fit(ad.Problem(MDP.sample(20, seed=0), MDP.policy, 0.9), key=jax.random.key(0))
        assert one.value == alone.value


def test_a_method_that_only_estimates_the_behaviour_policy_is_not_judged():
    found = ad.evaluate(MDP.sample(20, seed=0), MDP.policy, 0.9, estimators=["discount-correction"], bootstrap=0)
    assert found.judged is None
    assert found.estimates["discount-correction"].value is not None


def test_names():
    assert find("recommended") == ("average-dice-blend", "average-reward", "behaviour-return")
    assert find("all") == tuple(REGISTRY)
    assert find("behaviour-return, recommended,behaviour-return") == ("behaviour-return", "average-dice-blend")
    assert find(["average-reward", "recommended"]) == ("average-reward", "average-dice-blend")
    assert find("all,average-reward") == tuple(REGISTRY)
    with pytest.raises(
        ad.SettingError, match=r"unknown estimator 'fge'\. Did you mean fqe\? Known are all, recommended, average-rew"
    ):
        find("fge")
    with pytest.raises(ad.SettingError, match="unknown estimator ''"):
        find("")


def test_methods_of_ones_own_making():
    log = MDP.sample(50, seed=0)
    mine = ad.AverageDICE(labels=plain)
    found = ad.evaluate(log, MDP.policy, 0.9, estimators={"mine": mine}, bootstrap=0)
    expected = mine.fit(ad.Problem(log, MDP.policy, 0.9), key=jax.random.key(0)).value
    assert found.estimates["mine"].value == expected
    assert "★" not in str(found)


def test_seeds_out_of_range():
    with pytest.raises(ad.SettingError, match="the seed must lie between"):
        ad.evaluate(MDP.sample(5, seed=0), MDP.policy, 0.9, seed=2**40)


def test_small_and_large_values_can_be_read():
    log = MDP.sample(50, seed=0)
    columns = columns_of(log)
    for factor in (1e-7, 1e20):
        scaled = ad.LoggedDataset(**columns | {"reward": log.reward * factor})
        found = ad.evaluate(scaled, MDP.policy, 0.9, bootstrap=0)
        assert f"{found.recommended_estimate.value:.4g}" in str(found)


def test_the_verdict_looks_at_the_recommended_estimate(evaluation):
    assert evaluation.verdict.level == "supported"
    assert evaluation.recommended_estimate.lower < evaluation.recommended_estimate.upper
    text = str(evaluation)
    assert text.startswith("Verdict: supported")
    assert "Against the behaviour policy: " in text
    assert "95% interval" in text


def test_intervals_have_the_level_asked_for():
    log = MDP.sample(50, seed=0)
    wide, narrow = (
        ad.evaluate(log, MDP.policy, 0.9, estimators="wis", level=level, bootstrap=100).estimates["wis"]
        for level in (0.9, 0.5)
    )
    assert wide.level == 0.9
    assert wide.lower < narrow.lower < narrow.value < narrow.upper < wide.upper
    none = ad.evaluate(log, MDP.policy, 0.9, estimators="wis", bootstrap=0).estimates["wis"]
    assert none.lower is none.upper is none.level is None
    assert none.notes[-1].code == ad.NoteCode.NO_INTERVAL


def test_a_map_of_states(evaluation):
    states = evaluation.states
    assert len(states.x) == len(states.y) == len(states.ratio) == 400
    assert "of the variance" in states.axes[0]
    log = MDP.sample(50, seed=0)
    chosen = ad.evaluate(log, MDP.policy, 0.9, estimators="average-dice-tabular", bootstrap=0, features=(0, 3)).states
    assert chosen.axes == ("observation 0", "observation 3")
    assert set(chosen.x) <= {0.0, 1.0}
    with pytest.raises(ad.SettingError, match="features must lie between 0 and 4"):
        ad.evaluate(log, MDP.policy, 0.9, bootstrap=0, features=(0, 5))


def test_doubts_are_said():
    log = MDP.sample(50, seed=0)
    columns = columns_of(log)
    wrong = ad.LoggedDataset(**columns | {"behaviour_log_prob": log.behaviour_log_prob - 3})
    notes = ad.evaluate(wrong, MDP.policy, 0.9, bootstrap=0).recommended_estimate.notes
    assert ad.NoteCode.MASS_OFF in {note.code for note in notes}
    fine = ad.evaluate(log, MDP.policy, 0.9, bootstrap=0).recommended_estimate.notes
    assert ad.NoteCode.MASS_OFF not in {note.code for note in fine}


def test_the_horizon_is_said():
    found = ad.evaluate(MDP.sample(20, seed=0), MDP.policy, 0.9, horizon=2, bootstrap=0, estimators="wpdis")
    said = "Only the rewards of the first 2 steps count."
    assert said in found.to_dict()["definition"]
    assert said in " ".join(str(found).split())
