"""What every registered estimator must do, on MDPs whose answers are known.

Rewards are shifted by 1: every error in the mass (a cut taken for a termination, a ratio that sums to one) shows then
in the value. Closed forms are compared on a log of every trajectory, where expectations are exact; all methods on
sampled logs, within the tolerance that stands beside them.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import (
    REGISTRY,
    SRDICE,
    AverageDICE,
    Blend,
    DoublyRobust,
    FittedQ,
    MarginalisedDoublyRobust,
)
from average_dice.estimators._shared.linear_critic import CriticFeatures
from average_dice.estimators.blend.blend import evenly
from average_dice.models import FourierFeatures, MLPRegression
from exact_mdps import (
    clock,
    early_termination,
    hidden_clock,
    random_mdp,
    rare_state,
    sticky_chain,
    support_hole,
    tiny,
    truncated,
    unseen_action,
)

KEY = jax.random.key(0)
NETWORK = {"hidden": (64,), "num_steps": 3_000, "num_checkpoints": 3}
SADDLE = {**NETWORK, "learning_rate": 3e-4, "num_steps": 6_000}
SUCCESSOR = {"target_rate": 0.05, "num_steps": 3_000, "encoder_steps": 500, "num_checkpoints": 2}
FASTER = {**SADDLE, "learning_rate": 1e-3}  # nothing but the other player holds them back


@dataclass(frozen=True)
class Case:
    """A method on features that span every table, what it estimates where episodes are cut, and how closely."""

    method: ad.Estimator
    estimates: str = "whole"  # or "cut": up to it; "flow": that, flow-normalised; "held": the mass beyond it held
    tolerance: float = 0.03
    moves_within: float = 1e-5  # of what rewards in another unit should give; more where data choose among estimates
    too_noisy_on: tuple[str, ...] = ()  # MDPs on which products over whole episodes have too much variance for a test


def registered(name, **settings):
    return replace(REGISTRY[name].make(), **settings)


def linear(name):
    return registered(name, num_features=20, ridge=1e-9)


FEATURES = FourierFeatures(20, ridges=(1e-9,))
CRITIC = FittedQ(20, 1e-9)
STOPPED = MLPRegression((64,), num_steps=2_000, standardise=True, held_out=0.2)

CLOSED_FORMS = {
    "is": Case(registered("is"), "cut", 0.1, too_noisy_on=("random", "rare state")),
    "pdis": Case(registered("pdis"), "cut", 0.05),
    "wis": Case(registered("wis"), "cut", 0.06, too_noisy_on=("rare state",)),
    "wpdis": Case(registered("wpdis"), "cut"),
    "lstd-q": Case(linear("lstd-q")),
    "fqe": Case(linear("fqe")),
    "etd": Case(linear("etd"), tolerance=0.06),
    "average-dice-tabular": Case(registered("average-dice-tabular"), "flow"),
    "average-dice-linear": Case(registered("average-dice-linear"), "flow"),
    "average-dice-features": Case(AverageDICE(FEATURES), "held"),
    "average-dice-lambda": Case(linear("average-dice-lambda"), "held"),
    "cop-td-features": Case(linear("cop-td-features")),
    "mis-kernel": Case(registered("mis-kernel", num_features=20, ridge=1e-12)),
    "mwl-kernel": Case(registered("mwl-kernel", num_features=20, ridge=1e-12)),
    "dr": Case(DoublyRobust(critic=CRITIC), tolerance=0.05),
    "wdr": Case(replace(DoublyRobust.weighted(), critic=CRITIC)),
    "average-dice-blend": Case(Blend(20, (evenly,), (1e-9, 1e-7), AverageDICE(FEATURES)), moves_within=0.01),
    "average-dice-dr": Case(MarginalisedDoublyRobust(AverageDICE(FEATURES), CRITIC)),
}
TRAINED = {
    "td": Case(registered("td", **NETWORK, target_rate=0.05), tolerance=0.06),
    "average-dice-neural": Case(AverageDICE(STOPPED), "held", 0.06),
    "cop-td": Case(registered("cop-td", **NETWORK, target_rate=0.01), tolerance=0.06),
    "dual-dice": Case(registered("dual-dice", **SADDLE), tolerance=0.06),
    "gen-dice": Case(registered("gen-dice", **SADDLE), tolerance=0.06),
    "gradient-dice": Case(registered("gradient-dice", **SADDLE), tolerance=0.06),
    "best-dice": Case(registered("best-dice", **SADDLE), tolerance=0.06),
    "mwl": Case(registered("mwl", **FASTER), tolerance=0.15),
    "mql": Case(registered("mql", **FASTER), tolerance=0.15),
    "sr-dice": Case(SRDICE((32, 32), 32, **SUCCESSOR), tolerance=0.06),
}
# They estimate the behaviour policy, or (the paper's network, on labels that vanish) need more than a test's time.
ELSEWHERE = {"average-reward", "behaviour-return", "average-dice-paper"}
CASES = CLOSED_FORMS | TRAINED


def test_every_registered_estimator_is_here():
    assert set(CASES) | ELSEWHERE == set(REGISTRY)
    assert len(REGISTRY) >= 20


def with_rent(mdp):
    """Every step pays 1 more."""
    return replace(mdp, reward=mdp.reward + 1.0)


def against_uniform(mdp):
    """π prefers action 1, which pays 2 more, and μ does not: what takes one for the other is off by a fifth."""
    target = np.clip(mdp.target + np.array([-0.15, 0.15]), 0.3, 0.7)
    target /= target.sum(axis=1, keepdims=True)
    return replace(mdp, target=target, behaviour=np.full_like(target, 0.5), reward=mdp.reward + np.array([1.0, 3.0]))


def expected(mdp, estimates):
    """What the method estimates; "held" is close to the whole, which is all that can be said in general."""
    if estimates in ("whole", "held") or mdp.truncation is None or mdp.discount**mdp.truncation < 1e-4:
        return mdp.value
    return mdp.value_to_truncation if estimates == "cut" else mdp.flow_normalised_value


LOGS: dict[str, ad.Problem] = {}


def log_of(mdp, num_episodes):
    """Sampled once for all methods."""
    if mdp.name not in LOGS:
        LOGS[mdp.name] = mdp.problem(num_episodes, seed=3)
    return LOGS[mdp.name]


MDPS = {
    mdp.name: (mdp, num_episodes)
    for mdp, num_episodes in (
        (against_uniform(random_mdp()), 1_500),
        (against_uniform(early_termination()), 6_000),
        (against_uniform(truncated()), 6_000),
        (with_rent(rare_state()), 6_000),
    )
}


@pytest.mark.parametrize("mdp_name", MDPS)
def test_who_takes_the_behaviour_for_the_target_is_found_out(mdp_name):
    """The difference in value is several times the tolerance of nearly every case."""
    mdp, _ = MDPS[mdp_name]
    assert abs(replace(mdp, target=mdp.behaviour).value - mdp.value) > 0.15


@pytest.mark.parametrize(
    ("name", "mdp_name"),
    [(name, mdp_name) for name, case in CLOSED_FORMS.items() for mdp_name in MDPS if mdp_name not in case.too_noisy_on],
)
def test_closed_forms_recover_the_value(name, mdp_name):
    (mdp, num_episodes), case = MDPS[mdp_name], CLOSED_FORMS[name]
    value = case.method.fit(log_of(mdp, num_episodes), key=KEY).value
    assert value == pytest.approx(expected(mdp, case.estimates), abs=case.tolerance)


SAME_CODE = ("dual-dice", "gen-dice", "gradient-dice", "mwl", "mql")  # as best-dice, with other numbers
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in SAME_CODE]
LONGEST = pytest.param("sr-dice", marks=pytest.mark.slow)  # three networks to compile


@pytest.mark.parametrize("mdp_name", ["early termination", pytest.param("truncated", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*LONG, *(name for name in TRAINED if name not in {one.values[0] for one in LONG})])
def test_trained_methods_recover_value_and_ratio(name, mdp_name):
    (mdp, num_episodes), case = MDPS[mdp_name], TRAINED[name]
    fit = case.method.fit(log_of(mdp, num_episodes), key=KEY)
    assert fit.value == pytest.approx(expected(mdp, case.estimates), abs=case.tolerance)
    assert fit.history.value[-1] == pytest.approx(fit.value, abs=1e-5)
    assert np.isfinite(fit.history.loss).all()
    states = np.eye(5)
    if name == "cop-td":
        found, exact, share = fit.ratio(states), mdp.ratio, mdp.logged
    elif fit.ratio_function is not None and case.estimates == "whole":
        found = np.stack([fit.ratio(states, np.full(5, action)) for action in (0, 1)], axis=1)
        exact = mdp.ratio[:, None] * mdp.target / mdp.behaviour
        share = mdp.logged[:, None] * mdp.behaviour
    else:
        return
    # A constant would be off by 0.2 for pairs and, on the first MDP, by 0.05 for states.
    assert np.sqrt(np.sum(share * (found - exact) ** 2)) < 0.04


WHOLE = [name for name, case in CLOSED_FORMS.items() if case.estimates == "whole"]


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_value_where_expectations_are_exact(name):
    """Every trajectory, cut after 3 steps, 27 % of the mass seen: bootstrapping methods still know all of it."""
    mdp = with_rent(tiny())
    problem = ad.Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)
    assert CLOSED_FORMS[name].method.fit(problem, key=KEY).value == pytest.approx(mdp.value, abs=2e-4)
    assert abs(mdp.value_to_truncation - mdp.value) > 0.1


@pytest.mark.parametrize("name", ["is", "pdis"])
def test_importance_sampling_to_rounding_where_expectations_are_exact(name):
    mdp = with_rent(tiny())
    problem = ad.Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)
    assert CLOSED_FORMS[name].method.fit(problem, key=KEY).value == pytest.approx(mdp.value_to_truncation, abs=1e-12)


@pytest.mark.parametrize("name", ["cop-td-features", "mis-kernel", "mwl-kernel"])
def test_the_exact_ratio_where_expectations_are_exact(name):
    mdp = tiny()
    fit = CLOSED_FORMS[name].method.fit(ad.Problem(mdp.exhaustive(4), mdp.policy, mdp.discount), key=KEY)
    states = np.eye(2)
    if name != "mwl-kernel":
        np.testing.assert_allclose(fit.ratio(states), mdp.ratio, rtol=1e-3)
        return
    for action in (0, 1):
        exact = mdp.ratio * mdp.target[:, action] / mdp.behaviour[:, action]
        np.testing.assert_allclose(fit.ratio(states, np.array([action, action])), exact, rtol=1e-3)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_the_same_policy_gives_the_behaviour_value(name):
    mdp = with_rent(replace(early_termination(), target=early_termination().behaviour))
    problem = mdp.problem(500, seed=1)
    plain = ad.BehaviourReturn().fit(problem, key=KEY).value
    exact = name in ("is", "pdis", "wis", "wpdis")
    assert CLOSED_FORMS[name].method.fit(problem, key=KEY).value == pytest.approx(plain, abs=1e-12 if exact else 0.02)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_rewards_in_another_unit(name):
    """k r + b gives k J + b M, with M the mass that the method finds."""
    method = CLOSED_FORMS[name].method
    problem = truncated().problem(200, seed=2)
    data = problem.dataset
    other, ones = (
        ad.Problem(replace(data, reward=reward), problem.policy, problem.discount)
        for reward in (3 * data.reward + 2, np.ones(data.num_transitions))
    )
    value, moved, mass = (method.fit(one, key=KEY).value for one in (problem, other, ones))
    assert moved == pytest.approx(3 * value + 2 * mass, abs=CLOSED_FORMS[name].moves_within)
    assert abs(mass) < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["td", "best-dice", "mql", "sr-dice"])
def test_networks_do_not_mind_the_unit_of_rewards(name):
    settings = {"num_steps": 20} | ({"encoder_steps": 5} if name == "sr-dice" else {})
    method = replace(TRAINED[name].method, **settings)
    problem = truncated().problem(50, seed=2)
    large = ad.Problem(replace(problem.dataset, reward=1e9 * problem.dataset.reward), problem.policy, problem.discount)
    assert method.fit(large, key=KEY).value == pytest.approx(1e9 * method.fit(problem, key=KEY).value, rel=1e-3)


def test_fitted_q_is_the_limit_of_its_iteration():
    """From zero, regression after regression on targets within the bounds, on a log where the bounds are met."""
    mdp = replace(truncated(), reward=np.where(np.arange(10).reshape(5, 2) == 3, 1.0, 0.0))
    problem = mdp.problem(200, seed=0)
    data, (low, high) = problem.dataset, (0.0, 1.0)
    linear = CriticFeatures.of(problem, 20, KEY)
    after = np.zeros(data.num_transitions)
    inverse = np.linalg.inv(linear.logged.T @ linear.logged / len(after) + linear.penalty(0.3))
    for _ in range(1_000):
        targets = 0.05 * data.reward + 0.95 * ~data.terminated * after
        theta = inverse @ linear.logged.T @ targets / len(after)
        after = np.clip(linear.after @ theta, low, high)
    expected = np.clip(linear.start @ theta, low, high).mean()
    assert FittedQ(20, 0.3).fit(problem, key=KEY).value == pytest.approx(expected, abs=1e-4)


UNSEEN = ("lstd-q", "fqe", "mwl-kernel", "dr", "wdr", "average-dice-dr", "average-dice-features", "average-dice-blend")


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("rent", [0.0, 10.0])
def test_an_action_that_the_log_never_shows_has_the_value_of_its_state(name, rent):
    """Valued at 0, it would take 0.4 J off with 10 on every reward, and 0.05 without."""
    mdp = unseen_action()
    problem = replace(mdp, reward=mdp.reward + rent).problem(200, seed=0)
    value = CLOSED_FORMS[name].method.fit(problem, key=KEY).value
    assert value == pytest.approx(mdp.value + rent, abs=0.02)


@pytest.mark.parametrize("name", ["pdis", "wis", "wpdis", "dr", "wdr", "average-dice-blend"])
def test_uneven_truncation_where_the_critic_is_wrong(name):
    """The critic sees one state and the rewards turn at a hidden step 5, after which one episode in six is left.

    With the ratios right all of them must be; left to the critic alone they would be off by 0.2 and by 1.2.
    """
    mdp = hidden_clock()
    tolerance = {"wdr": 0.04, "wpdis": 0.04}.get(
        name, 0.07
    )  # the others are noisier; the part after truncation is 0.024
    value = CLOSED_FORMS[name].method.fit(mdp.problem(4_000, seed=0), key=KEY).value
    assert value == pytest.approx(mdp.value, abs=tolerance)
    even = CLOSED_FORMS[name].method.fit(hidden_clock(()).problem(4_000, seed=0), key=KEY).value
    assert even == pytest.approx(mdp.value, abs=tolerance)


@pytest.mark.parametrize("name", ["is", "pdis", "wis", "wpdis"])
def test_the_same_policy_gives_the_behaviour_return_where_truncation_is_uneven(name):
    mdp = replace(truncated(), early_truncations=(3, 7))
    problem = replace(mdp, target=mdp.behaviour).problem(200, seed=0)
    plain = ad.BehaviourReturn().fit(problem, key=KEY).value
    assert CLOSED_FORMS[name].method.fit(problem, key=KEY).value == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_a_hole_in_the_support_is_not_seen_by_any_method(name):
    """What the verdict is for: all of them miss the state that pays, and none of them fails."""
    mdp = support_hole()
    assert CLOSED_FORMS[name].method.fit(mdp.problem(200, seed=0), key=KEY).value < 0.6 * mdp.value


@pytest.mark.parametrize("name", ["cop-td-features", "mis-kernel", "average-dice-lambda"])
def test_flows_at_a_discount_near_one(name):
    """The noise of the mean ratio, some 0.005, exceeds 1 − γ: undivided, it makes or loses all of the mass."""
    mdp = replace(random_mdp(), discount=0.999, truncation=100)
    for seed in range(5):
        found = CLOSED_FORMS[name].method.fit(mdp.problem(400, seed), key=KEY)
        assert found.value == pytest.approx(mdp.value, abs=0.02)


def test_cuts_at_different_lengths():
    """Half of the episodes are cut after 5 steps, at random: those still watched stand for them."""
    mdp = with_rent(random_mdp())
    data = mdp.sample(2_000, seed=0)
    kept = (data.episode % 2 == 0) | (data.step < 5)
    names = ("episode", "step", "observation", "action", "reward", "next_observation", "behaviour_log_prob")
    ragged = ad.LoggedDataset.from_arrays(
        **{name: getattr(data, name)[kept] for name in names}, terminated=data.terminated[kept]
    )
    problem = ad.Problem(ragged, mdp.policy, mdp.discount)
    for name in ("wpdis", "average-dice-tabular", "lstd-q", "cop-td-features", "wdr"):
        assert CLOSED_FORMS[name].method.fit(problem, key=KEY).value == pytest.approx(mdp.value, abs=0.03), name


def test_a_policy_of_another_kind_is_refused():
    problem = truncated().problem(20, seed=0)
    gaussian = ad.GaussianPolicy(lambda observations: np.zeros((len(observations), 2)), [0.0, 0.0])
    few = ad.CategoricalPolicy(lambda observations: np.zeros((len(observations), 1)))
    for policy in (gaussian, few):
        for name in ("lstd-q", "mwl-kernel", "td"):
            with pytest.raises(ad.PolicyError):
                CASES[name].method.fit(ad.Problem(problem.dataset, policy, 0.9), key=KEY)


@pytest.mark.parametrize("name", [*(name for name in CASES if name not in (*SAME_CODE, "sr-dice")), *LONG, LONGEST])
def test_same_key_same_bytes_and_rows_in_any_order(name):
    method = CASES[name].method
    for setting in ("num_steps", "encoder_steps"):
        if hasattr(method, setting):
            method = replace(method, **{setting: 5})
    if name == "average-dice-neural":
        method = AverageDICE(MLPRegression((8,), num_steps=5))
    problem = truncated().problem(30, seed=2)
    data = problem.dataset
    order = np.random.default_rng(0).permutation(data.num_transitions)
    names = ("episode", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    columns = {column: getattr(data, column)[order] for column in (*names, "behaviour_log_prob")}
    shuffled = ad.Problem(ad.LoggedDataset.from_arrays(**columns), problem.policy, problem.discount)
    value = method.fit(problem, key=KEY).value
    assert method.fit(problem, key=KEY).value == value
    assert method.fit(shuffled, key=KEY).value == value


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_ten_times_the_data_is_no_worse_on_average(name):
    case, mdp = CLOSED_FORMS[name], with_rent(truncated())
    errors = [
        np.mean([abs(case.method.fit(mdp.problem(k, seed), key=KEY).value - mdp.value) for seed in range(10)])
        for k in (30, 300)
    ]
    # What is wrong by its nature beyond the cut stays wrong, whatever the data.
    bias = abs(expected(mdp, case.estimates) - mdp.value)
    assert errors[1] < errors[0] + 0.1 * bias


@pytest.mark.parametrize("name", ["lstd-q", "cop-td-features", "mwl-kernel"])
def test_a_clock_that_is_not_in_the_state_misleads_what_knows_only_states(name):
    """Termination after 15 steps, whatever the state: products of ratios are right, flow through states is not."""
    mdp = with_rent(clock())
    problem = mdp.problem(3_000, seed=0)
    assert CLOSED_FORMS["wpdis"].method.fit(problem, key=KEY).value == pytest.approx(mdp.value, abs=0.03)
    assert abs(CLOSED_FORMS[name].method.fit(problem, key=KEY).value - mdp.value) > 0.1


def test_the_sticky_chain():
    """The whole of it by bootstrapping, from episodes that are cut."""
    problem = sticky_chain().problem(1_500, seed=0)
    for name in ("lstd-q", "cop-td-features", "mwl-kernel", "mis-kernel", "etd"):
        assert CLOSED_FORMS[name].method.fit(problem, key=KEY).value == pytest.approx(0.5897, abs=0.05), name


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing_is_said(name):
    """Without a policy object, or without μ, a method says why not; it never crashes."""
    problem = truncated().problem(20, seed=0)
    data = problem.dataset
    needs = REGISTRY[name].needs
    if " or " in needs:
        return  # it goes on with what there is: its own tests say how
    if "policy" in needs:
        with_column = replace(data, target_log_prob=problem.target_log_prob)
        with pytest.raises(ad.NotApplicable, match="give a policy"):
            CASES[name].method.fit(ad.Problem(with_column, None, 0.9), key=KEY)
    if "μ" in needs:
        without_behaviour = replace(data, behaviour_log_prob=None)
        with pytest.raises(ad.NotApplicable, match="behaviour_log_prob"):
            CASES[name].method.fit(ad.Problem(without_behaviour, problem.policy, 0.9), key=KEY)


@pytest.mark.parametrize("name", [*WHOLE, "td", "cop-td", "best-dice", LONGEST])
def test_continuous_actions(name):
    """The state stays, the reward is the action, π = N(0.5, 1), episodes cut after 6 steps: J = 0.5."""
    policy = ad.GaussianPolicy(lambda observations: np.full((len(observations), 1), 0.5), [0.0])
    wide = ad.GaussianPolicy(lambda observations: np.full((len(observations), 1), 0.3), [0.2])
    generator = np.random.default_rng(0)
    observation = np.tile(generator.normal(size=(1_500, 1)), (1, 6)).reshape(-1, 1)
    action = wide.sample(observation, generator=generator)
    data = ad.LoggedDataset.from_arrays(
        episode=np.repeat(np.arange(1_500), 6),
        observation=observation,
        action=action,
        reward=action[:, 0],
        next_observation=observation,
        terminated=np.zeros(len(action), bool),
        behaviour_log_prob=wide.log_prob(observation, action),
    )
    method = CASES[name].method
    if name in ("lstd-q", "fqe", "etd", "cop-td-features"):
        method = replace(method, ridge=1e-3)
    assert method.fit(ad.Problem(data, policy, 0.9), key=KEY).value == pytest.approx(0.5, abs=0.08)
