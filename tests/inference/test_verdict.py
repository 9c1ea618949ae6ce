"""The verdict: never "supported" on a log with a fault, and the reasons name the fault."""

from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.demo import load_demo
from average_dice.estimators import Estimate, Interval
from average_dice.inference.verdict import judge
from average_dice.testing.exact_mdps import as_policy, early_termination, random_mdp, support_hole, unseen_action
from conftest import columns_of
from made_up import SOUND


def changed(log, **columns):
    return ad.LoggedDataset(**columns_of(log) | columns)


def of_mdp():
    mdp = early_termination()
    return mdp.sample(150, seed=0), mdp.policy, mdp.discount


def of_demo(name):
    demo = load_demo(name)
    return demo.dataset.select_episodes(np.arange(25)), demo.policy, demo.discount


LOGS = {
    "exact MDP": of_mdp,
    "CartPole-v1": lambda: of_demo("CartPole-v1"),
    "Hopper-v5": lambda: of_demo("Hopper-v5"),
}


@pytest.fixture(scope="module", params=LOGS.values(), ids=LOGS)
def case(request):
    return request.param()


def verdict_on(log, policy, discount, bootstrap=0):
    return ad.evaluate(log, policy, discount, estimators=["recommended"], bootstrap=bootstrap).verdict


def test_a_sound_log_supports_its_number(case):
    found = verdict_on(*case, bootstrap=5)
    assert found.level == "supported"
    assert found.reasons[0].startswith("all checks passed: ")
    assert found.rules == ()
    assert found.remedies == ()


def test_no_overlap_discrete():
    """The log takes action 0 alone, the policy action 1."""
    mdp = early_termination()
    log = mdp.sample(150, seed=0)
    first = changed(log, action=np.zeros_like(log.action), behaviour_log_prob=np.zeros(len(log.step)))
    found = verdict_on(first, as_policy(np.tile([0.0, 1.0], (5, 1))), 0.9)
    assert found.level == "not supported"
    assert any("never occur in the log" in reason for reason in found.reasons)
    assert any("closer to the logged behaviour" in remedy for remedy in found.remedies)


def test_no_overlap_continuous():
    """The log's actions lie ten standard deviations from the policy's."""
    demo = load_demo("Hopper-v5")
    log = demo.dataset
    spread = np.exp(demo.policy.log_std)
    found = verdict_on(changed(log, action=log.action + 10 * spread), demo.policy, 0.95)
    assert found.level == "not supported"
    assert any("instead of 1" in reason for reason in found.reasons)
    assert any("overlap between the policy and the log is only" in reason for reason in found.reasons)


def test_one_episode_holds_all_the_weight(case):
    log, policy, discount = case
    lucky = log.episode == log.episode[log.lengths[:5].sum()]  # in the sixth, μ gives its actions a small probability
    unlikely = log.behaviour_log_prob - np.where(lucky & (log.step < 4), 5.0, 0.0)
    found = verdict_on(changed(log, behaviour_log_prob=unlikely), policy, discount)
    assert found.level != "supported"
    assert any("alone carries" in reason or "average" in reason for reason in found.reasons)


@pytest.mark.parametrize("factor", [0.5, 0.8])
def test_wrong_probabilities_by_a_constant_factor(case, factor):
    log, policy, discount = case
    wrong = changed(log, behaviour_log_prob=log.behaviour_log_prob + np.log(factor))
    found = verdict_on(wrong, policy, discount)
    assert found.level == "not supported"
    assert "instead of 1" in found.reasons[0]
    assert "check behaviour_log_prob" in found.remedies[0]


def test_copies_of_episodes(case):
    log, policy, discount = case
    twice = log.select_episodes(np.repeat(np.arange(log.num_episodes), 2))
    found = verdict_on(twice, policy, discount)
    assert found.level != "supported"
    assert any("copies of others" in reason for reason in found.reasons)


def test_an_extreme_reward(case):
    log, policy, discount = case
    reward = log.reward.copy()
    reward[17] += 1_000 * (1 + np.abs(reward).max())
    found = verdict_on(changed(log, reward=reward), policy, discount)
    assert found.level != "supported"
    assert any("a single row accounts for" in reason for reason in found.reasons)


def test_early_truncation(case):
    log, policy, _ = case
    short = log.step < 3
    columns = {name: column[short] for name, column in columns_of(log).items()}
    columns["truncated"] = (columns["step"] == 2) & ~columns["terminated"]
    found = verdict_on(ad.LoggedDataset(**columns), policy, 0.99)
    assert found.level == "not supported"
    assert any("lies after truncation" in reason for reason in found.reasons)
    assert any("longer episodes" in remedy for remedy in found.remedies)


def test_few_episodes(case):
    log, policy, discount = case
    found = verdict_on(log.select_episodes(np.arange(8)), policy, discount)
    assert found.level == "not supported"
    assert "the log has only 8 episodes" in found.reasons


def test_a_missing_action_at_one_step():
    log, policy, discount = of_mdp()
    start = log.step == 0
    columns = {
        "action": np.where(start, 0, log.action),
        "behaviour_log_prob": np.where(start, 0.0, log.behaviour_log_prob),
    }
    found = verdict_on(changed(log, **columns), policy, discount)
    assert found.level == "not supported"
    assert any("at step 0 importance ratios average" in reason for reason in found.reasons)


def test_unknown_probabilities(case):
    log, policy, discount = case
    columns = columns_of(log)
    del columns["behaviour_log_prob"]
    found = verdict_on(ad.LoggedDataset(**columns), policy, discount)
    assert found.level != "supported"
    assert any("probabilities of the logged actions are unknown" in reason for reason in found.reasons)


def test_every_limit_by_hand():
    sound = SOUND

    def level(values=1.0, width=0.2, noise=0.12, **changes):
        parts = {"by_values": values, "by_products": 1.0, "reference_error": noise}
        estimate = Estimate(1.0, Interval(1.0 - width / 2, 1.0 + width / 2, 0.95, "made up"), diagnostics=parts)
        return judge(estimate, replace(sound, **changes), 40)

    assert level().level == level(values=1.5).level == "supported"  # within five times the noise of the products
    assert "larger than chance explains" in level(values=1.7).reasons[0]
    assert level(values=1.5, noise=0.09).level == "weak"
    assert level(values=1.15, noise=0.01).level == "supported"  # within the interval's own width
    assert level(values=1.015, width=0.001).level == "supported"  # a gap of 1.5% is significant, but small
    assert level(values=1.03, width=0.001).level == "weak"
    assert [level(beyond_truncation=share).level for share in (0.04, 0.2, 0.35)] == [
        "supported",
        "weak",
        "not supported",
    ]
    assert "violates the flow equation" in level(flow_residual=1.2).reasons[0]
    unseen = level(unseen_actions=0.1, overlap=0.1)
    assert unseen.level == "not supported"
    assert len(unseen.reasons) == 2
    less, more = (level(mean_ratio=mean, mean_ratio_distance=9.0) for mean in (0.7, 1.3))
    assert "or the policy takes actions that the log never takes" in less.reasons[0]
    assert more.reasons[0].endswith("probabilities are wrong")
    assert [
        level(worst_step=3, worst_step_ratio=mean, worst_step_distance=far).level
        for mean, far in ((0.5, 4.0), (0.9, 6.0), (0.5, 6.0))
    ] == ["supported", "weak", "not supported"]
    masses = [{"missing_mass": 0.5, "excess_mass": 0.0}, {"missing_mass": 0.01, "excess_mass": 0.0}]
    assert [level(balance=6.0, **mass).level for mass in masses] == ["not supported", "weak"]
    assert level(balance=4.0, **masses[0]).level == "supported"
    assert "leaves the support of the log" in level(balance=6.0, **masses[0]).reasons[0]
    assert "more than 1" in level(balance=6.0, missing_mass=0.0, excess_mass=0.2).reasons[0]
    for name in ("memory", "truncation", "trend", "neighbours"):
        assert [level(**{name: far}).level for far in (4.9, 5.1)] == ["supported", "weak"]
    assert "every bootstrap resample" in level(width=0.0).reasons[0]
    assert level(width=0.0, reward_range=0.0).level == "supported"  # all rewards are the same, and not 0
    zero = judge(Estimate(0.0, Interval(0.0, 0.0, 0.95, "made up")), replace(sound, reward_range=0.0), 40)
    assert zero.reasons == ("every reward in the log is 0",)
    assert level(flow_residual=1e60).reasons[0].endswith("by 1e+03 standard deviations of a state feature")


@pytest.mark.parametrize("mdp", [support_hole(), unseen_action()], ids=lambda mdp: mdp.name)
def test_a_policy_that_leaves_the_support_is_not_supported(mdp):
    found = verdict_on(mdp.sample(100, seed=0), mdp.policy, mdp.discount)
    assert found.level == "not supported"
    assert any("the policy leaves the support of the log" in reason for reason in found.reasons)
    assert any("evaluate a policy closer to the logged behaviour" in remedy for remedy in found.remedies)


def test_only_baselines():
    log, policy, discount = of_mdp()
    found = ad.evaluate(log, policy, discount, estimators="average-reward,behaviour-return", bootstrap=2)
    assert found.verdict.level == "not supported"
    assert found.judged is None
    assert found.against_behaviour is None
    other = ad.evaluate(log, policy, discount, estimators="average-reward,wpdis", bootstrap=2)
    assert other.judged == "wpdis"
    assert "Verdict, of wpdis: " in str(other)


def test_a_method_that_does_not_apply_supports_nothing():
    mdp = early_termination()
    columns = columns_of(mdp.sample(50, seed=0))
    columns["target_log_prob"] = columns.pop("behaviour_log_prob")
    found = ad.evaluate(ad.LoggedDataset(**columns), None, 0.9, estimators=["recommended"]).verdict
    assert found.level == "not supported"
    assert "not applicable" in found.reasons[0]


def greedy(mdp, explored):
    """π takes the action with the larger reward; μ does, too, except for a share of uniform actions."""
    num_actions = mdp.reward.shape[1]
    target = np.eye(num_actions)[mdp.reward.argmax(axis=1)]
    return replace(mdp, target=target, behaviour=(1 - explored) * target + explored / num_actions)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_deterministic_policy_with_good_coverage_is_supported(seed):
    mdp = greedy(random_mdp(), 0.3)
    found = ad.evaluate(mdp.sample(60, seed), mdp.policy, mdp.discount, estimators=["recommended"], bootstrap=30)
    assert found.verdict.level == "supported"
    assert found.recommended_estimate.lower <= mdp.value <= found.recommended_estimate.upper
    shown = next(check for check in found.checks if check.name == "followed-episodes")
    follows = np.isfinite(ad.Problem(mdp.sample(60, seed), mdp.policy, mdp.discount).final_log_product).sum()
    assert shown.value.startswith(f"{follows} of 60, ")


def test_too_little_coverage_of_a_deterministic_policy_is_called_coverage():
    """Uniform actions among twenty: the policy's is rare, and probabilities are right."""
    generator = np.random.default_rng(0)
    reward = generator.normal(size=(5, 20))
    mdp = replace(
        random_mdp(),
        transition=generator.dirichlet(np.ones(5), size=(5, 20)),
        reward=reward,
        target=np.eye(20)[reward.argmax(axis=1)],
        behaviour=np.full((5, 20), 0.05),
        truncation=10,
    )
    found = ad.evaluate(mdp.sample(30, 0), mdp.policy, mdp.discount, estimators=["recommended"], bootstrap=0)
    assert found.verdict.level == "not supported"
    assert "overlap" in found.verdict.rules
    reasons = "; ".join(found.verdict.reasons)
    assert "none of the 30 episodes follows the policy to the end" in reasons
    assert "wrong" not in reasons
    assert not any("behaviour_log_prob" in remedy for remedy in found.verdict.remedies)


def test_a_log_without_the_policys_actions_says_so():
    mdp = greedy(random_mdp(), 0.3)
    log = mdp.sample(30, 0)
    other = as_policy(1 - mdp.target)
    rows = np.isneginf(mdp.policy.log_prob(log.observation, log.action))
    assert 0 < rows.mean() < 0.5
    mixed = ad.LoggedDataset(**columns_of(log) | {"action": mdp.target.argmax(axis=1)[log.observation.argmax(axis=1)]})
    found = ad.evaluate(mixed, other, mdp.discount, estimators=["recommended"], bootstrap=0)
    assert found.verdict.level == "not supported"
    reasons = "; ".join(found.verdict.reasons)
    assert "the log has no row with the policy's action" in reasons
    assert "the log has no episode whose first action is the policy's" in reasons
    assert "wrong" not in reasons
