"""Every registered estimator passes the checks of `average_dice.testing`, with the tolerance of its case."""

from dataclasses import replace

import numpy as np
import pytest

from average_dice.errors import NotApplicable
from average_dice.estimators import REGISTRY
from average_dice.models import IncrementalLinear
from average_dice.testing import hard_cases
from average_dice.testing._estimating import fit
from average_dice.testing.cases import CASES, CLOSED_FORMS, EXPLICIT, NOT_CHECKED, TRAINED, is_checked
from average_dice.testing.conformance import (
    MDPS,
    check_episode_order,
    check_every_trajectory,
    check_exact_ratio,
    check_missing_inputs,
    check_more_data,
    check_real_space,
    check_recovers_value,
    check_refit,
    check_reward_scale,
    check_rewards_in_another_unit,
    check_row_order,
    check_same_key,
    check_same_policy,
    every_trajectory,
)
from average_dice.testing.exact_mdps import clock, sticky_chain, truncated
from average_dice.testing.real_spaces import REAL_SPACES, every_trajectory_of

WHOLE = [name for name, case in CLOSED_FORMS.items() if case.estimates == "whole"]
IMPORTANCE_SAMPLING = ("is", "pdis", "wis", "wpdis")
SAME_CODE = ("dual-dice", "gen-dice", "gradient-dice", "mwl", "mql")  # as best-dice, with other settings


def long_ones_marked(names, long):
    return [pytest.param(name, marks=pytest.mark.slow) if name in long else name for name in names]


def test_every_registered_estimator_has_a_case():
    assert set(CASES) == {name for name in REGISTRY if is_checked(name)}
    for name in (*EXPLICIT, *NOT_CHECKED):
        assert name in REGISTRY, f"testing/cases.py has {name!r}, which is not registered: remove or rename it there."
    assert len(REGISTRY) >= 20
    assert set(CLOSED_FORMS) | set(TRAINED) == set(CASES)


@pytest.mark.parametrize("mdp_name", MDPS)
def test_the_values_of_both_policies_differ(mdp_name):
    """By several times the tolerance of nearly every case: an estimate of the wrong policy would fail."""
    mdp, _ = MDPS[mdp_name]
    assert abs(replace(mdp, target=mdp.behaviour).value - mdp.value) > 0.15


@pytest.mark.parametrize(
    ("name", "mdp_name"),
    [(name, mdp_name) for name, case in CLOSED_FORMS.items() for mdp_name in MDPS if mdp_name not in case.too_noisy_on],
)
def test_closed_forms_recover_the_value(name, mdp_name):
    check_recovers_value(CLOSED_FORMS[name], mdp_name)


@pytest.mark.parametrize("mdp_name", ["early termination", pytest.param("truncated", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", long_ones_marked(TRAINED, SAME_CODE))
def test_trained_methods_recover_value_and_ratio(name, mdp_name):
    check_recovers_value(TRAINED[name], mdp_name)


@pytest.mark.parametrize("name", long_ones_marked(TRAINED, (*SAME_CODE, "sr-dice")))
def test_trained_methods_give_a_learning_curve(name):
    assert fit(TRAINED[name].quick_method, truncated().problem(30, seed=2)).history is not None


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_where_expectations_are_exact(name):
    check_every_trajectory(CLOSED_FORMS[name])


@pytest.mark.parametrize("mdp_name", REAL_SPACES)
def test_the_values_of_both_policies_differ_on_real_spaces(mdp_name):
    """By a fifth: an estimate of the wrong policy would fail."""
    mdp, _ = REAL_SPACES[mdp_name]
    assert abs(replace(mdp, target=mdp.behaviour).value - mdp.value) > 0.18 * abs(mdp.value)


@pytest.mark.parametrize("mdp_name", REAL_SPACES)
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms_serve_real_spaces(name, mdp_name):
    """All of them apply. The features of the cases are too few for forty actions: there, the registered settings."""
    method = REGISTRY[name].make() if mdp_name == "many actions" else CASES[name].method
    if name == "average-dice-incremental":  # these logs have few rows, and equal episodes side by side
        method = replace(method, model=IncrementalLinear(step_size=0.02, num_passes=2_000))
    check_real_space(method, mdp_name)
    _, problem = every_trajectory_of(mdp_name)
    assert np.isfinite(fit(method, problem).value)


@pytest.mark.slow
@pytest.mark.parametrize("mdp_name", [name for name in REAL_SPACES if name != "many actions"])
@pytest.mark.parametrize("name", [name for name in TRAINED if name not in SAME_CODE])
def test_trained_methods_serve_real_spaces(name, mdp_name):
    """Without forty actions: there, after the steps of a test, sr-dice is 9 % off, and best-dice takes two minutes."""
    check_real_space(TRAINED[name].method, mdp_name, relative_tolerance=0.06)


@pytest.mark.parametrize("name", [name for name in TRAINED if name != "average-dice-neural"])
def test_trained_methods_say_that_they_need_a_discount_below_1(name):
    _, problem = every_trajectory_of("undiscounted")
    with pytest.raises(NotApplicable, match="it needs a discount below 1"):
        fit(TRAINED[name].quick_method, problem)


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_value_where_expectations_are_exact(name):
    check_every_trajectory(CLOSED_FORMS[name], tolerance=2e-4)
    mdp, _ = every_trajectory()
    assert abs(mdp.value_to_truncation - mdp.value) > 0.1


@pytest.mark.parametrize("name", [*IMPORTANCE_SAMPLING, "average-dice-tabular"])
def test_to_rounding_where_expectations_are_exact(name):
    check_every_trajectory(CLOSED_FORMS[name], tolerance=1e-12)


@pytest.mark.parametrize("name", [name for name, case in CLOSED_FORMS.items() if case.ratio_of is not None])
def test_the_exact_ratio_where_expectations_are_exact(name):
    check_exact_ratio(CLOSED_FORMS[name])


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_the_same_policy_gives_the_behaviour_return(name):
    check_same_policy(CLOSED_FORMS[name], tolerance=1e-12 if name in IMPORTANCE_SAMPLING else 0.02)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_rewards_in_another_unit(name):
    check_rewards_in_another_unit(CLOSED_FORMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_networks_do_not_depend_on_the_scale_of_rewards(name):
    check_reward_scale(TRAINED[name])


@pytest.mark.parametrize("name", long_ones_marked(CASES, (*SAME_CODE, "sr-dice")))
def test_same_key_same_answer_and_rows_in_any_order(name):
    check_same_key(CASES[name])
    check_row_order(CASES[name])


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_episodes_in_any_order(name):
    check_episode_order(CLOSED_FORMS[name])


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_a_refit_is_the_fit_to_the_resampled_log(name):
    check_refit(CLOSED_FORMS[name])


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_more_data_are_no_worse(name):
    check_more_data(CLOSED_FORMS[name])


@pytest.mark.parametrize("name", CASES)
def test_a_method_says_what_is_missing(name):
    check_missing_inputs(CASES[name], needs=REGISTRY[name].needs)


UNSEEN = ("lstd-q", "fqe", "mwl-kernel", "dr", "wdr", "average-dice-dr", "average-dice-features", "average-dice-blend")


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_an_unseen_action_has_the_value_of_its_state(name, shift):
    hard_cases.check_unseen_action(CLOSED_FORMS[name].method, shift)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        *((name, 1e-12) for name in (*IMPORTANCE_SAMPLING, "average-dice-tabular", "mis-kernel")),
        *((name, 1e-8) for name in ("lstd-q", "etd", "cop-td-features", "mwl-kernel", "wdr", "average-dice-dr")),
        ("average-dice-blend", 1e-5),
    ],
)
def test_forbidden_actions_where_expectations_are_exact(name, tolerance):
    hard_cases.check_masked_actions(CLOSED_FORMS[name].method, CLOSED_FORMS[name].estimates, tolerance)


@pytest.mark.parametrize(
    ("name", "tolerance"),  # the others are noisier than wpdis and wdr
    [("pdis", 0.07), ("wis", 0.07), ("wpdis", 0.04), ("dr", 0.07), ("wdr", 0.04), ("average-dice-blend", 0.07)],
)
def test_uneven_truncation_where_the_critic_is_wrong(name, tolerance):
    hard_cases.check_uneven_truncation(CLOSED_FORMS[name].method, tolerance)


@pytest.mark.parametrize("name", IMPORTANCE_SAMPLING)
def test_the_same_policy_gives_the_behaviour_return_where_truncation_is_uneven(name):
    hard_cases.check_same_policy_uneven_truncation(CLOSED_FORMS[name].method)


@pytest.mark.parametrize("name", ["wpdis", "average-dice-tabular", "lstd-q", "cop-td-features", "wdr"])
def test_truncation_at_random(name):
    hard_cases.check_random_truncation(CLOSED_FORMS[name].method)


@pytest.mark.parametrize("name", ["cop-td-features", "mis-kernel", "average-dice-lambda"])
def test_flows_at_a_discount_near_one(name):
    hard_cases.check_discount_near_one(CLOSED_FORMS[name].method)


@pytest.mark.parametrize("name", ["lstd-q", "cop-td-features", "mwl-kernel", "mis-kernel", "etd"])
def test_the_sticky_chain(name):
    assert sticky_chain().value == pytest.approx(0.5897, abs=5e-5)
    hard_cases.check_sticky_chain(CLOSED_FORMS[name].method)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_no_method_sees_a_hole_in_the_support(name):
    hard_cases.check_support_hole_is_missed(CLOSED_FORMS[name].method)


@pytest.mark.parametrize("name", ["lstd-q", "cop-td-features", "mwl-kernel"])
def test_a_hidden_clock_misleads_methods_of_states(name):
    hard_cases.check_hidden_clock_misleads(CLOSED_FORMS[name].method)


def test_a_hidden_clock_does_not_mislead_products_of_ratios():
    mdp = replace(clock(), reward=clock().reward + 1)
    found = fit(CLOSED_FORMS["wpdis"].method, mdp.problem(3_000, seed=0)).value
    assert found == pytest.approx(mdp.value, abs=0.03)


@pytest.mark.parametrize("name", ["lstd-q", "mwl-kernel", "td"])
def test_a_policy_of_another_kind_is_refused(name):
    hard_cases.check_policy_of_another_kind(CASES[name].method)


@pytest.mark.parametrize("name", long_ones_marked([*WHOLE, "td", "cop-td", "best-dice", "sr-dice"], ["sr-dice"]))
def test_continuous_actions(name):
    method = CASES[name].method
    if name in ("lstd-q", "fqe", "etd", "cop-td-features"):
        method = replace(method, ridge=1e-3)  # Fourier features of real numbers are nearly collinear
    hard_cases.check_continuous_actions(method)
