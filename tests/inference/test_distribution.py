"""The distribution of the return, compared with exact enumeration: logs of every trajectory in proportion."""

import json
from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.inference.distribution import WeightedReturns, missing_part
from average_dice.problem import Problem
from average_dice.testing.exact_mdps import early_termination, masked, tiny, truncated
from average_dice.testing.exact_returns import exact_returns


@pytest.mark.parametrize("mdp", [tiny(), masked()], ids=lambda mdp: mdp.name)
def test_it_is_exact_on_a_log_of_every_trajectory(mdp):
    returns, chances = exact_returns(mdp, 3, mdp.target)
    cumulative = np.cumsum(chances)
    at = [float(returns[3] + 1e-6), float(np.mean(returns))]
    found = ad.distribution(
        mdp.exhaustive(4), mdp.policy, mdp.discount, thresholds=at, quantiles=(0.1, 0.5, 0.93), cvar=0.2, bootstrap=0
    )
    assert found.find("mean").value == pytest.approx(returns @ chances, abs=1e-9)
    for share in (0.1, 0.5, 0.93):
        assert found.find("quantile", share).value == pytest.approx(returns[cumulative >= share][0], abs=1e-9)
    for threshold in at:
        assert found.find("below", threshold).value == pytest.approx(chances[returns < threshold].sum(), abs=1e-9)
    worst = np.clip(0.2 - (cumulative - chances), 0, chances)
    assert found.find("cvar").value == pytest.approx(worst @ returns / 0.2, abs=1e-9)
    here = np.interp(found.function.returns, returns, cumulative)
    np.testing.assert_allclose(found.function.probability, here, atol=1e-6)  # returns are rounded to ten digits
    own, own_chances = exact_returns(mdp, 3, mdp.behaviour)
    assert found.find("mean").behaviour == pytest.approx(own @ own_chances, abs=1e-9)


def test_costs_have_their_tail_above():
    mdp = tiny()
    log = mdp.exhaustive(4)
    costs = ad.distribution(log, mdp.policy, mdp.discount, cvar=0.3, costs=True, bootstrap=0)
    mirrored = ad.distribution(replace(log, reward=-log.reward), mdp.policy, mdp.discount, cvar=0.3, bootstrap=0)
    assert costs.find("cvar").value == pytest.approx(-mirrored.find("cvar").value, abs=1e-12)
    assert costs.find("cvar").value > costs.find("mean").value


def test_an_atom_at_the_edge_of_the_tail_counts_in_part():
    found = WeightedReturns.of(np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 7.0]))
    assert found.tail_mean(0.2, upper=False) == pytest.approx((0.1 * 0 + 0.1 * 1) / 0.2)
    assert found.tail_mean(0.8, upper=True) == pytest.approx((0.7 * 5 + 0.1 * 1) / 0.8)
    assert found.tail_mean(1.0, upper=True) == pytest.approx(found.mean)
    assert [found.quantile(share) for share in (0.1, 0.100001, 0.3, 0.31)] == [0.0, 1.0, 1.0, 5.0]
    assert found.below(1.0) == pytest.approx(0.1)


def test_a_horizon_is_exact_and_has_nothing_missing():
    mdp = tiny(truncation=3)
    returns, chances = exact_returns(mdp, 2, mdp.target)
    found = ad.distribution(mdp.exhaustive(4), mdp.policy, mdp.discount, horizon=2, bootstrap=0)
    assert found.find("mean").value == pytest.approx(returns @ chances, abs=1e-9)
    assert found.missing == (0.0, 0.0)


def test_the_mean_is_weighted_importance_sampling():
    problem = early_termination().problem(60, seed=0)
    value = ad.evaluate(problem.dataset, problem.policy, 0.9, estimators="wis", bootstrap=0).estimates["wis"].value
    found = ad.distribution(problem.dataset, problem.policy, 0.9, bootstrap=0)
    assert found.find("mean").value == pytest.approx(value / 0.1, rel=1e-10)


def test_what_is_missing_after_truncation_is_bounded_and_said():
    mdp = truncated()
    problem = mdp.problem(100, seed=0)
    low, high = missing_part(problem)
    rewards = problem.dataset.reward
    assert low == pytest.approx(0.95**20 * rewards.min() / 0.05)
    assert high == pytest.approx(0.95**20 * rewards.max() / 0.05)
    found = ad.distribution(problem.dataset, problem.policy, 0.95, bootstrap=0)
    assert "truncation" in found.verdict.rules
    assert "up to truncation" in str(found)
    assert "up to truncation" not in str(ad.distribution(*early(60), bootstrap=0))
    with pytest.raises(ad.SettingError, match="discount of 1 needs episodes that terminate"):
        ad.distribution(problem.dataset, problem.policy, 1.0)


def early(number):
    mdp = early_termination()
    return mdp.sample(number, seed=0), mdp.policy, mdp.discount


def test_verdicts_follow_the_effective_number_of_episodes():
    sound = ad.distribution(*early(600), quantiles=(0.5,), cvar=0.25, bootstrap=0)
    assert sound.verdict.level == "supported"
    thin = ad.distribution(*early(60), bootstrap=0)
    assert thin.verdict.level == "weak"
    assert "tail-episodes" in thin.verdict.rules
    assert "CVaR 5%" in thin.verdict.reasons[0]
    few = ad.distribution(*early(8), bootstrap=0)
    assert few.verdict.level == "not supported"
    assert few.verdict.rules[0] == "effective-episodes"


def test_intervals_contain_their_values_and_certainty_has_a_width():
    found = ad.distribution(*early(100), thresholds=[-1000, 0], bootstrap=200)
    withheld = [one.name for one in found.statistics if one.lower is None]
    assert withheld == ["5% quantile", "95% quantile", "CVaR 5%"]  # fewer than ten effective episodes in the tail
    assert all(name in found.verdict.reasons[0] for name in withheld)
    for one in found.statistics:
        assert one.name in withheld or one.lower <= one.value <= one.upper
    never = found.find("below", -1000)
    assert never.value == 0
    assert never.upper == pytest.approx(1 - 0.025 ** (1 / found.effective_episodes))
    function = found.function
    reach = np.array(function.upper) - np.array(function.probability)
    assert np.ptp(reach[np.array(function.upper) < 1]) < 1e-12  # one width for all of F
    assert (np.array(function.lower) >= 0).all()


def test_a_policy_that_takes_no_logged_action_is_refused():
    log = replace(early(5)[0], target_log_prob=np.full(early(5)[0].num_transitions, -np.inf))
    with pytest.raises(ad.NotApplicable, match="only actions that the policy would take"):
        ad.distribution(log, None, 0.9)


def test_evaluate_shows_it_on_the_page_and_in_the_terminal(tmp_path):
    log, policy, discount = early(60)
    found = ad.evaluate(log, policy, discount, estimators="wpdis", bootstrap=2, distribution=True)
    assert found.distribution == ad.distribution(log, policy, discount)
    assert ad.evaluate(log, policy, discount, estimators="wpdis", bootstrap=2).distribution is None
    found.to_json(tmp_path / "found.json")
    content = json.loads((tmp_path / "found.json").read_text())
    median = found.distribution.find("quantile", 0.5)
    assert content["distribution"]["statistics"][3]["value"] == median.value
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<section id="distribution">' in page
    assert f"{median.value:.4f}" in page
    assert f"{median.value:.4f}" in str(found)


def test_wrong_settings_are_refused():
    with pytest.raises(ad.SettingError, match="quantiles must lie between 0 and 1"):
        ad.distribution(*early(5), quantiles=(0.5, 1.0))
    with pytest.raises(ad.SettingError, match="cvar"):
        ad.distribution(*early(5), cvar=0.0)
    found = ad.distribution(*early(5), bootstrap=0)
    with pytest.raises(ad.SettingError, match=r"no quantile at 0.1"):
        found.find("quantile", 0.1)
    assert Problem(*early(5)).discount == found.discount
