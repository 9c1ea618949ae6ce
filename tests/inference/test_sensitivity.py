"""Bounds under unrecorded confounding, compared with exact optima, exact truths and the estimator at Γ = 1."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

import average_dice as ad
from average_dice.estimators import REGISTRY
from average_dice.inference.sensitivity import (
    LARGEST_GAMMA,
    LOWER,
    UPPER,
    EveryStep,
    Memoryless,
    OneStep,
    in_odds,
    in_probability,
    largest_mean,
    possible_range,
    tipping_gamma,
)
from average_dice.problem import Problem
from average_dice.resampling import Resample
from average_dice.testing.clinic import VITAL_SIGNS, clinic
from average_dice.testing.confounded import RECORDED, behaviour_given_u, confounded, share_of_u
from average_dice.testing.exact_mdps import as_policy, clock, early_termination, tiny, truncated
from average_dice.testing.misleading.log import sample_log

GAMMAS = np.array([1.0, 1.3, 2.0, 5.0])


def everything(form, problem):
    return form.on(Resample.everything(problem))


# The program


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_mean_is_that_of_a_linear_program(seed):
    """Charnes & Cooper: maximise Σ m y over m = t·weights with Σ m = 1, low t ≤ m ≤ high t."""
    generator = np.random.default_rng(seed)
    values, low = generator.normal(size=7), generator.uniform(0, 1, size=7)
    high = low + generator.uniform(0, 2, size=7)
    within = np.vstack([np.column_stack([np.eye(7), -high]), np.column_stack([-np.eye(7), low])])
    solved = linprog(
        -np.append(values, 0.0), within, np.zeros(14), np.append(np.ones(7), 0.0)[None], [1.0], bounds=(0, None)
    )
    assert largest_mean(values, low[None], high[None])[0] == pytest.approx(-solved.fun, abs=1e-9)


def test_deviations_are_those_of_odds_and_of_probabilities():
    log_probability = np.log([0.25, 1.0])
    low, high = (np.exp(part) for part in in_odds(log_probability, np.array([3.0])))
    odds = 0.25 / 0.75
    np.testing.assert_allclose(low[0], [0.25 / (3 * odds / (1 + 3 * odds)), 1.0])
    np.testing.assert_allclose(high[0], [0.25 / (odds / 3 / (1 + odds / 3)), 1.0])
    low, high = (np.exp(part) for part in in_probability(log_probability, np.array([3.0])))
    np.testing.assert_allclose([low[0], high[0]], [[1 / 3, 1 / 3], [3, 3]])


# Γ = 1


@pytest.mark.parametrize("mdp", [early_termination(), truncated(), clock(), tiny()], ids=lambda mdp: mdp.name)
def test_at_one_the_forms_by_products_are_wpdis(mdp):
    problem = mdp.problem(40, seed=3)
    value = REGISTRY["wpdis"].make().fit(problem, key=jax.random.key(0)).value
    for form in (EveryStep(in_odds), OneStep(in_odds), OneStep(in_odds, step=1)):
        for side in (LOWER, UPPER):
            assert everything(form, problem)(np.ones(1), side)[0] == pytest.approx(value, rel=1e-10)


def test_at_one_they_are_wpdis_with_truncations_at_several_lengths():
    problem = replace(truncated(), early_truncations=(3, 8)).problem(60, seed=1)
    value = REGISTRY["wpdis"].make().fit(problem, key=jax.random.key(0)).value
    for form in (EveryStep(in_odds), OneStep(in_odds)):
        assert everything(form, problem)(np.ones(1), UPPER)[0] == pytest.approx(value, rel=1e-10)


def test_at_one_the_table_gives_the_exact_value():
    """On a log of every trajectory in proportion, tables are expectations."""
    mdp = tiny()
    problem = Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)
    for side in (LOWER, UPPER):
        found = everything(Memoryless.of(in_odds, problem), problem)(np.ones(1), side)[0]
        assert found == pytest.approx(mdp.value, abs=1e-9)


# Sharpness on exact logs


def confounded_log(terminated):
    """Every combination of s, u and action in exact proportion at Γ = 2: b(1|u) is ⅔ or ⅓, and μ = ½.

    State s pays 3 s. The action that agrees with u pays 1 more and leads to state 1; the other leads to state 0.
    """
    rows = [
        (s, action, float(action == u))
        for s in (0, 1)
        for u in (0, 1)
        for action in (0, 1)
        for _ in range(2 if action == u else 1)
    ]
    s, action, agrees = (np.array(column) for column in zip(*rows, strict=True))
    return ad.LoggedDataset.from_arrays(
        observation=np.eye(2)[s],
        action=action,
        reward=3.0 * s + agrees,
        next_observation=np.eye(2)[agrees.astype(int)],
        terminated=np.full(len(rows), terminated),
        episode=np.arange(len(rows)),
        behaviour_log_prob=np.full(len(rows), np.log(0.5)),
    )


POLICY = as_policy(np.array([[0.2, 0.8], [0.7, 0.3]]))


def test_the_table_is_sharp_for_one_step():
    """The truth, where each action agrees with u half of the time, is the lower bound at the true Γ."""
    problem = Problem(confounded_log(terminated=True), POLICY, 0.0)
    bounds = everything(Memoryless.of(in_odds, problem), problem)
    assert bounds(np.array([2.0]), LOWER)[0] == pytest.approx(2.0, abs=1e-12)  # 3 · ½ + ½
    assert bounds(np.array([1.9]), LOWER)[0] > 2.0 + 1e-3
    by_products = everything(EveryStep(in_odds, one_step=True), problem)(np.array([2.0]), LOWER)[0]
    assert by_products < 2.0 - 0.1  # a relaxation: weights need not average to 1 in each state


def test_the_table_is_sharp_for_a_memoryless_cause_of_many_steps():
    """The truth agrees with u half of the time. The upper bound does in ¾: λ is 1.5 for one of two such rows of three.

    With a share p that agrees, E[r|s] = 3 s + p, and the next state is 1 with probability p.
    """
    problem = Problem(confounded_log(terminated=False), POLICY, 0.9)
    bounds = everything(Memoryless.of(in_odds, problem), problem)
    for side, share in ((LOWER, 0.5), (UPPER, 0.75)):
        moves = np.array([[1 - share, share]] * 2)
        values = np.linalg.solve(np.eye(2) - 0.9 * moves, 0.1 * np.array([share, 3 + share]))
        assert bounds(np.array([2.0]), side)[0] == pytest.approx(values.mean(), abs=1e-9)


def test_one_step_by_hand():
    """Two rows with rewards 0 and 1, π = μ = ½, Γ = 3: λ lies between ⅔ and 2, so the mean between ¼ and ¾."""
    log = ad.LoggedDataset.from_arrays(
        observation=np.zeros((2, 1)),
        action=[0, 1],
        reward=[0.0, 1.0],
        next_observation=np.zeros((2, 1)),
        terminated=[True, True],
        episode=[0, 1],
        behaviour_log_prob=np.log([0.5, 0.5]),
        target_log_prob=np.log([0.5, 0.5]),
    )
    found = ad.sensitivity(log, None, 1.0, (1, 3), bootstrap=0, against=0.4)
    assert [one.lower for one in found.curves[0].bounds] == pytest.approx([0.5, 0.25])
    assert [one.upper for one in found.curves[0].bounds] == pytest.approx([0.5, 0.75])
    # the lower bound is (½ + ½/Γ) / (½ + ½/Γ + ½ + ½ Γ) = 1/(1 + Γ), which is 0.4 at Γ = 1.5
    assert found.curves[0].tipping.gamma == pytest.approx(1.5, rel=2e-3)


def test_two_steps_by_hand():
    """One of two actions twice, π = μ = ½, reward 1 at the end for (1, 1) alone: a mean of ¼.

    At Γ = 3 λ of one step lies between ⅔ and 2, products between 4/9 and 4. Every step: 4/(4 + 3·4/9) = ¾. A single
    step, the second: λ = 2 for (1, 1) and ⅔ for the others, 2/(2 + 3·⅔) = ½; the first: the same for the episodes that
    begin with (1, 1), so 2/(2 + 3·⅔), too.
    """
    actions = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    log = ad.LoggedDataset.from_arrays(
        observation=np.zeros((8, 1)),
        action=actions.ravel(),
        reward=[0, 0, 0, 0, 0, 0, 0, 1.0],
        next_observation=np.zeros((8, 1)),
        terminated=[False, True] * 4,
        episode=np.repeat(np.arange(4), 2),
        behaviour_log_prob=np.full(8, np.log(0.5)),
        target_log_prob=np.full(8, np.log(0.5)),
    )
    problem = Problem(log, None, 1.0)
    assert everything(EveryStep(in_odds), problem)(np.array([3.0]), UPPER)[0] == pytest.approx(0.75)
    assert everything(OneStep(in_odds), problem)(np.array([3.0]), UPPER)[0] == pytest.approx(0.5)
    low = (4 / 9) / (4 / 9 + 3 * 4)
    assert everything(EveryStep(in_odds), problem)(np.array([3.0]), LOWER)[0] == pytest.approx(low)


# Order


@pytest.mark.parametrize("persistent", [False, True])
def test_bounds_widen_with_gamma_and_a_single_step_is_within_every_step(persistent):
    log = sample_log(confounded(2.0, steps=True, persistent=persistent), 200, 0)
    problem = Problem(log.dataset, log.policy, log.discount)
    every, single = everything(EveryStep(in_odds), problem), everything(OneStep(in_odds), problem)
    table = everything(Memoryless.of(in_odds, problem), problem)
    for bounds in (every, single, table):
        assert (np.diff(bounds(GAMMAS, LOWER)) < 0).all()
        assert (np.diff(bounds(GAMMAS, UPPER)) > 0).all()
    assert (every(GAMMAS, LOWER) <= single(GAMMAS, LOWER) + 1e-12).all()
    assert (every(GAMMAS, UPPER) >= single(GAMMAS, UPPER) - 1e-12).all()


def test_constant_rewards_leave_nothing_to_bound():
    """Weights are normalised at every step: without terminations, rewards of 1 earn 1 − γᴴ, whatever the Γ."""
    mdp = replace(truncated(), transition=truncated().transition / truncated().transition.sum(axis=2, keepdims=True))
    log = mdp.sample(30, seed=0)
    problem = Problem(replace(log, reward=np.ones(log.num_transitions)), mdp.policy, mdp.discount)
    for form in (EveryStep(in_odds), OneStep(in_odds)):
        for side in (LOWER, UPPER):
            np.testing.assert_allclose(everything(form, problem)(GAMMAS, side), 1 - mdp.discount**20, rtol=1e-9)


def test_long_products_do_not_overflow():
    log = clock().sample(30, seed=0)
    problem = Problem(log, clock().policy, 0.9)
    bounds = everything(EveryStep(in_probability), problem)
    steps = [log.reward[log.step == step] for step in range(15)]
    widest = [sum(0.1 * 0.9**t * end(rewards) for t, rewards in enumerate(steps)) for end in (np.min, np.max)]
    found = [bounds(np.array([1e30]), side)[0] for side in (LOWER, UPPER)]
    assert found == pytest.approx(widest, rel=1e-6)  # each step tends to its smallest and largest reward


# The truth


def test_confounded_processes_record_the_average_and_deviate_by_gamma():
    for gamma in (1.0, 1.5, 4.0):
        given, share = behaviour_given_u(RECORDED, gamma), share_of_u(RECORDED, gamma)
        np.testing.assert_allclose((1 - share) * given[:, 0] + share * given[:, 1], RECORDED)
        odds = given / (1 - given) / (RECORDED / (1 - RECORDED))[:, None]
        np.testing.assert_allclose(odds, [[1 / gamma, gamma]] * 2)


CONFOUNDED = {
    "one step": {"steps": False},
    "steps": {"steps": True},
    "episode": {"steps": True, "persistent": True},
}


@pytest.mark.parametrize("settings", CONFOUNDED.values(), ids=CONFOUNDED)
def test_the_bounds_at_the_true_gamma_contain_the_truth_and_those_at_one_do_not(settings):
    log = sample_log(confounded(3.0, **settings), 4_000, 0)
    found = ad.sensitivity(log.dataset, log.policy, log.discount, (1, 3), bootstrap=0)
    for curve in found.curves:
        at_one, at_three = curve.bounds
        if curve.name != "a single step":  # here every step is confounded
            assert at_three.lower <= log.truth <= at_three.upper
        assert not at_one.lower - 0.02 <= log.truth <= at_one.upper + 0.02


# The result


@pytest.fixture(scope="module")
def result():
    log = sample_log(confounded(2.0, steps=True), 80, 0)
    return ad.sensitivity(log.dataset, log.policy, log.discount, (1, 1.5, 2), bootstrap=10, against=0.05)


def test_confidence_ends_lie_outside_of_the_bounds(result):
    for curve in result.curves:
        for one in curve.bounds:
            assert one.lower_end < one.lower <= one.upper < one.upper_end
        assert curve.tipping.lower <= curve.tipping.gamma


def test_the_tipping_gamma_is_where_the_lower_bound_is_the_reference(result):
    log = sample_log(confounded(2.0, steps=True), 80, 0)
    for curve in result.curves:
        again = ad.sensitivity(log.dataset, log.policy, log.discount, (curve.tipping.gamma,), bootstrap=0, against=0.05)
        same = next(one for one in again.curves if one.name == curve.name)
        assert same.bounds[0].lower == pytest.approx(0.05, abs=2e-3)


def test_tipping_finds_any_monotone_change():
    def bounds(gammas, side):
        return 1.0 + side * np.log(gammas)

    for points in (1, 15):
        assert tipping_gamma(bounds, 0.5, better=True, points=points) == pytest.approx(np.exp(0.5), rel=2e-3)
        assert tipping_gamma(bounds, 1.2, better=False, points=points) == pytest.approx(np.exp(0.2), rel=2e-3)
    assert tipping_gamma(bounds, 1.5, better=True) == 1.0
    assert tipping_gamma(bounds, 1.0 - np.log(2 * LARGEST_GAMMA), better=True) == np.inf


def test_the_behaviour_policy_is_not_affected():
    """π = μ: the reference is the estimate, so no Γ above 1 leaves a conclusion."""
    mdp = early_termination()
    same = replace(mdp, target=mdp.behaviour)
    found = ad.sensitivity(same.sample(50, seed=0), same.policy, 0.9, (1, 2), bootstrap=0)
    assert found.value == pytest.approx(found.reference)


def test_the_same_seed_gives_the_same_result(result):
    log = sample_log(confounded(2.0, steps=True), 80, 0)
    again = ad.sensitivity(log.dataset, log.policy, log.discount, (1, 1.5, 2), bootstrap=10, against=0.05)
    assert again == result


def test_json_terminal_and_page_show_the_bounds(result, tmp_path):
    result.to_json(tmp_path / "found.json")
    content = json.loads((tmp_path / "found.json").read_text())
    assert content["curves"][0]["bounds"][2]["lower"] == result.curves[0].bounds[2].lower
    result.with_command("<script>x</script>").to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == len(result.curves) == 3
    assert "<script" not in page
    number = f"{result.curves[2].bounds[1].upper:.4f}"
    assert number in page
    assert number in str(result)
    assert result.conclusions[0] in page


def test_wrong_settings_are_refused():
    log = early_termination().sample(10, seed=0)
    policy = early_termination().policy
    with pytest.raises(ad.SettingError, match="at least 1"):
        ad.sensitivity(log, policy, 0.9, (0.5, 1))
    with pytest.raises(ad.SettingError, match="no episode reaches step 5000"):
        ad.sensitivity(log, policy, 0.9, step=5000, bootstrap=0)
    with pytest.raises(ad.NotApplicable, match="behaviour_log_prob"):
        ad.sensitivity(replace(log, behaviour_log_prob=None), policy, 0.9)


def test_conclusions_say_what_holds_and_what_does_not(result):
    held = replace(result, curves=(replace(result.curves[0], value=1.0, reference=0.5),))
    found = replace(held.curves[0].tipping, gamma=1.8, lower=1.2, upper=2.0)

    def said(tipping):
        return replace(held, curves=(replace(held.curves[0], tipping=tipping),)).conclusions[0]

    assert said(found) == "every step: above 0.05 up to Γ = 1.8, with 95% confidence up to Γ = 1.2"
    unsure = "up to Γ = 1.8; with 95% confidence it is open already at Γ = 1, by chance alone"
    assert said(replace(found, lower=1.0)).endswith(unsure)
    assert said(replace(found, gamma=None, lower=None)) == "every step: above 0.05 for every Γ up to 20"


def test_few_effective_episodes_are_said():
    mdp = early_termination()
    assert any("too few for the value" in note for note in few_notes(mdp, 5))
    assert not any("too few for the value" in note for note in few_notes(mdp, 60))


def few_notes(mdp, number):
    return ad.sensitivity(mdp.sample(number, seed=0), mdp.policy, mdp.discount, (1, 2), bootstrap=0).notes


def test_bounds_stay_within_the_possible_values():
    """Only the outcome pays, 1 or −1, so that the value lies between them. Each step alone would allow more."""
    problem = clinic().problem(60, 0, "cautious", 1.0, VITAL_SIGNS)
    free = everything(EveryStep(in_odds), problem)
    assert free(np.array([20.0]), UPPER)[0] > 1
    assert free(np.array([20.0]), LOWER)[0] < -1
    found = ad.sensitivity(problem.dataset, problem.policy, 1.0, (1, 1.05, 20), bootstrap=4)
    assert found.possible == (-1.0, 1.0)
    bounds = [one for curve in found.curves for one in curve.bounds]
    assert min(min(one.lower, one.lower_end) for one in bounds) == -1
    assert max(max(one.upper, one.upper_end) for one in bounds) == 1
    within = free(np.array([1.05]), LOWER)[0]
    assert -1 < within < 1
    assert found.curves[0].bounds[1].lower == pytest.approx(within, rel=1e-12)


def test_rewards_that_are_ignored_after_truncation_allow_a_value_of_zero():
    problem = Problem(truncated().sample(20, seed=0), truncated().policy, 0.9)
    shifted = problem.with_reward(problem.dataset.reward - problem.dataset.reward.min() + 5.0)
    assert possible_range(shifted)[0] == 0.0
    assert possible_range(shifted)[1] == shifted.dataset.reward.max()


def test_sentences_say_below_and_name_the_estimator(result):
    curve = replace(result.curves[0], value=0.1, reference=0.5)
    assert replace(result, curves=(curve,)).conclusions[0].startswith("every step: below 0.05")
    equal = replace(result, curves=(replace(curve, value=0.5),))
    assert equal.conclusions[0].startswith("every step: equal to 0.05")
    assert "by weighted per-decision importance" in " ".join(str(result).split())
    assert "not by the recommended estimator" in " ".join(str(result).split())
