"""Several rewards and groups of episodes: exact identities with evaluations of their own."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import FittedQ
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.inference.diagnostics import diagnose, with_reward
from average_dice.models import FourierFeatures
from average_dice.report.parts import doubts
from average_dice.testing.exact_mdps import early_termination

MDP = early_termination()
pytestmark = pytest.mark.xdist_group("answers")  # on one process, which makes the fixture once


@pytest.fixture(scope="module")
def log():
    """40 episodes with two more rewards, whose sum is a third, and three sites, one of them with one episode."""
    data = MDP.sample(40, seed=0)
    generator = np.random.default_rng(0)
    cost, gain = generator.normal(size=(2, data.num_transitions))
    site = np.array(["north", "south"], object)[np.arange(40) % 2]
    site[7] = "alone"
    extra = {"cost": cost, "gain": gain, "both": cost + gain, "site": np.repeat(site, data.lengths)}
    return replace(data, extra=extra)


@pytest.mark.parametrize("method", ["wpdis", "average-dice-tabular", "average-dice-features"])
def test_the_value_of_a_sum_is_the_sum_of_the_values(log, method):
    """For methods that are linear in the reward; also on every bootstrap resample, because all share them."""
    found = ad.evaluate(
        log, MDP.policy, 0.9, estimators=method, rewards=["cost", "gain", "both"], bootstrap=6, seed=5
    ).rewards
    assert found["both"].value == pytest.approx(found["cost"].value + found["gain"].value, rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(
        found["both"].replicates, found["cost"].replicates + found["gain"].replicates, rtol=1e-9, atol=1e-12
    )
    assert np.ptp(found["both"].replicates) > 0


def test_each_reward_is_as_if_it_were_the_only_one(log):
    several = ad.evaluate(log, MDP.policy, 0.9, estimators=["recommended"], rewards="reward, cost", bootstrap=4)
    assert list(several.rewards) == ["reward", "cost"]
    for name, answer in several.rewards.items():
        its_own = log.with_reward(log.reward_named(name))
        alone = ad.evaluate(its_own, MDP.policy, 0.9, estimators=["recommended"], bootstrap=4)
        assert answer.value == alone.value
        assert answer.interval == alone.interval
        assert answer.verdict == alone.verdict
        assert answer.behaviour == alone.behaviour
        assert answer.against_behaviour == alone.against_behaviour
    assert several.value == several.rewards["reward"].value


def test_the_first_reward_is_that_of_the_evaluation(log):
    found = ad.evaluate(log, MDP.policy, 0.9, rewards=["cost"], estimators="wpdis", bootstrap=0)
    alone = ad.evaluate(log.with_reward(log.extra["cost"]), MDP.policy, 0.9, estimators="wpdis", bootstrap=0)
    assert found.reward == "cost"
    assert found.value == alone.value
    content = found.to_dict()
    assert content["dataset"]["sha256"] == log.sha256
    assert content["dataset"]["rewards"] == alone.to_dict()["dataset"]["rewards"]
    assert "The reward is column cost." in content["definition"]


def test_each_group_is_as_if_it_were_the_log(log):
    found = ad.evaluate(log, MDP.policy, 0.9, estimators="fqe", by="site", bootstrap=4)
    assert {name: one.episodes for name, one in found.groups.items()} == {"alone": 1, "north": 20, "south": 19}
    of_episodes = log.extra["site"][log.starts]
    for name, answer in found.groups.items():
        part = log.select_episodes(np.flatnonzero(of_episodes == name))
        alone = ad.evaluate(part, MDP.policy, 0.9, estimators="fqe", bootstrap=4)
        assert answer.value == alone.value
        assert answer.interval == alone.interval
        assert answer.verdict.level == alone.verdict.level
        assert answer.against_behaviour == alone.against_behaviour
    lone = found.groups["alone"]
    assert lone.interval is None
    assert ad.NoteCode.NO_INTERVAL in {note.code for note in lone.estimate.notes}
    assert lone.diagnostics.heaviest[0].episode == 7  # by its number in the whole log
    text = " ".join(str(found).split())
    assert "alone: not supported, because" in text
    assert "no interval: the log has one episode" in text


def test_the_json_and_the_page_have_rewards_and_groups(log, tmp_path):
    found = ad.evaluate(log, MDP.policy, 0.9, rewards="reward,cost", by="site", estimators="wpdis", bootstrap=2)
    content = found.to_dict()
    assert [one["reward"] for one in content["rewards"]] == ["reward", "cost"]
    assert [(one["group"], one["episodes"]) for one in content["groups"]] == [
        ("alone", 1),
        ("north", 20),
        ("south", 19),
    ]
    assert [one["value"] for one in content["groups"]] == [one.value for one in found.groups.values()]
    keys = {"value", "lower", "upper", "return", "verdict", "behaviour", "against_behaviour", "no_difference"}
    assert all(set(one) > keys for one in (*content["rewards"], *content["groups"]))
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count('<section id="rewards">') == page.count('<section id="groups">') == 1
    assert "4 values with their intervals. all episodes:" in page
    without = ad.evaluate(log, MDP.policy, 0.9, estimators="wpdis", bootstrap=0)
    assert without.to_dict()["rewards"] == without.to_dict()["groups"] == []
    without.to_html(tmp_path / "page.html")
    assert "<h2>Rewards</h2>" not in (tmp_path / "page.html").read_text()


def test_reasons_stand_below_the_table_once_for_all_that_share_them():
    weak = {"level": "weak", "reasons": ["little overlap; 1 of 9 follows", "few episodes; 1 of 9 follows"]}
    fine = {"level": "supported", "reasons": ["all checks passed"]}
    verdicts = {"cost": weak, "stay": fine, "outcome": weak}
    rows = [{"name": name, "verdict": one, "value": 1.0, "interval": "t"} for name, one in verdicts.items()]
    assert doubts(rows) == [("cost, outcome", "weak, because little overlap; 1 of 9 follows; few episodes")]


def test_diagnostics_of_another_reward(log, key):
    problem = ad.Problem(log, MDP.policy, 0.9)
    other = problem.with_reward(log.extra["cost"])
    assert with_reward(diagnose(problem, key=key), other) == diagnose(
        ad.Problem(other.dataset, MDP.policy, 0.9), key=key
    )


def test_problems_with_other_rewards_share_what_does_not_depend_on_them(log, key):
    problem = ad.Problem(log, MDP.policy, 0.9)
    before = problem.log_product
    other = problem.with_reward(log.extra["cost"])
    assert other.log_product is before
    kept = problem.keep_for_other_rewards()
    other = problem.with_reward(log.extra["cost"])
    assert LoggedStateActions.of(problem, 30, key) is LoggedStateActions.of(other, 30, key)
    assert len(kept) == 1
    apart = ad.Problem(other.dataset, MDP.policy, 0.9)
    assert FittedQ().fit(other).value == FittedQ().fit(apart).value != FittedQ().fit(problem).value


def test_a_ratio_is_fitted_once_for_all_rewards(log, monkeypatch):
    fits, original = [], FourierFeatures._features_and_fit

    def spied(self, regression, key):
        fits.append(1)
        return original(self, regression, key)

    monkeypatch.setattr(FourierFeatures, "_features_and_fit", spied)
    ask = {"estimators": ["average-dice-features"], "bootstrap": 4}
    one = ad.evaluate(log, MDP.policy, 0.9, rewards=["cost"], **ask)
    number = len(fits)
    fits.clear()
    three = ad.evaluate(log, MDP.policy, 0.9, rewards=["cost", "gain", "both"], **ask)
    assert three.value == one.value
    assert len(fits) == number  # nothing more for two more rewards


def test_errors_before_the_work(log):
    started = []
    with pytest.raises(ad.SettingError, match="Did you mean cost"):
        ad.evaluate(log, MDP.policy, 0.9, rewards=["reward", "costs"], starting=started.append)
    with pytest.raises(ad.SettingError, match="Did you mean site"):
        ad.evaluate(log, MDP.policy, 0.9, by="sight", starting=started.append)
    with pytest.raises(ad.SettingError, match="give the name of at least one reward"):
        ad.evaluate(log, MDP.policy, 0.9, rewards=[], starting=started.append)
    with pytest.raises(ad.SettingError, match="give a policy, or a log with a target_log_prob column"):
        ad.evaluate(log, None, 0.9, starting=started.append)
    assert not started
    with pytest.raises(ad.SettingError, match="not a baseline"):
        ad.evaluate(log, MDP.policy, 0.9, by="site", estimators="average-reward", bootstrap=0)


def test_a_horizon_counts_for_every_reward_and_group(log):
    found = ad.evaluate(
        log, MDP.policy, 0.9, rewards="cost,gain", by="site", estimators="wpdis", horizon=2, bootstrap=0
    )
    problem = ad.Problem.up_to(log, MDP.policy, 0.9, horizon=2)
    method = ad.estimators.ImportanceSampling.weighted_per_decision()
    rows = log.step < 2
    gain = method.fit(problem.with_reward(log.extra["gain"][rows]), key=jax.random.key(0)).value
    assert found.rewards["gain"].value == gain
    south = np.flatnonzero(log.extra["site"][log.starts] == "south")
    cost = problem.with_reward(log.extra["cost"][rows])
    assert found.groups["south"].value == method.fit(cost.select_episodes(south)).value
