"""The clinic's exact values agree with simulation, with ExactMDP and with the limit; its logs are what they claim."""

import runpy
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from average_dice.errors import PolicyError
from average_dice.testing.clinic import LEVELS, SEDATIVE, STATE_CODE, VASOPRESSOR, VITAL_SIGNS, clinic
from average_dice.testing.exact_mdps import ExactMDP

ROOT = Path(__file__).parents[2]
CLINIC = clinic()
POLICIES = {"behaviour": CLINIC.behaviour, **CLINIC.targets}


@pytest.fixture(scope="module")
def log():
    return CLINIC.sample(2_000, seed=0, observed=STATE_CODE)


def test_probabilities_are_probabilities():
    assert CLINIC.move.min() >= 0
    np.testing.assert_allclose(CLINIC.move.sum(axis=2), 1, atol=1e-12)
    ends = CLINIC.discharged + CLINIC.fatal
    assert ends.min() > 0
    assert ends.max() <= 1
    assert CLINIC.start.min() >= 0
    assert CLINIC.start.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_take_admissible_actions_only(name):
    policy = POLICIES[name]
    assert policy.min() >= 0
    np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-12)
    assert (policy[~CLINIC.mask()] == 0).all()


def test_few_actions_are_admissible_and_the_clinician_takes_all_of_them():
    numbers = CLINIC.mask().sum(axis=1)
    assert numbers.min() >= 1
    assert 5 < numbers.mean() < 7
    assert ((CLINIC.behaviour > 0) == CLINIC.mask()).all()  # so every target has support


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("discount", [1.0, 0.99])
def test_exact_value_is_that_of_simulated_episodes(name, discount):
    policy = POLICIES[name]
    log = CLINIC.sample(20_000, seed=1, policy=policy)
    last = log.starts + log.lengths - 1
    returns = discount ** log.step[last] * log.reward[last]  # no other reward
    assert np.count_nonzero(log.reward) == log.num_episodes
    normaliser = 1 - discount if discount < 1 else 1
    error = normaliser * returns.std(ddof=1) / np.sqrt(len(returns))
    assert abs(normaliser * returns.mean() - CLINIC.value(policy, discount)) < 4 * error


def test_exact_value_is_that_of_the_occupancy():
    """ExactMDP solves for the occupancy, the clinic for the values of states."""
    target = CLINIC.targets["cautious"]
    mdp = ExactMDP("clinic", CLINIC.transition, CLINIC.reward, CLINIC.start, target, CLINIC.behaviour, 0.97)
    assert CLINIC.value(target, 0.97) == pytest.approx(mdp.value, rel=1e-10)


@pytest.mark.parametrize("name", POLICIES)
def test_discount_one_is_the_limit(name):
    total = CLINIC.value(POLICIES[name], 1.0)
    gaps = [
        abs(CLINIC.value(POLICIES[name], discount) / (1 - discount) - total) for discount in (0.999, 0.9999, 0.99999)
    ]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]  # tenfold for each decade
    assert gaps[2] < 1e-3


def test_discount_zero_is_the_first_reward():
    policy = CLINIC.targets["greedy"]
    assert CLINIC.value(policy, 0.0) == pytest.approx(CLINIC.start @ (policy * CLINIC.reward).sum(axis=1))


def test_the_best_policy_is_best_and_softening_costs():
    values = {name: CLINIC.value(policy, 1.0) for name, policy in POLICIES.items()}
    assert max(values, key=values.__getitem__) == "improved"
    best = np.eye(25)[CLINIC._optimal_actions]
    assert CLINIC.value(best, 1.0) > values["improved"]
    q = CLINIC.reward + CLINIC.transition @ CLINIC.state_values(best, 1.0)  # Bellman's optimality equation
    np.testing.assert_allclose(
        np.where(CLINIC.mask(), q, -np.inf).max(axis=1), CLINIC.state_values(best, 1.0), atol=1e-8
    )


def test_every_episode_terminates_with_an_outcome(log):
    last = log.starts + log.lengths - 1
    assert log.terminated[last].all()
    assert not log.truncated.any()
    assert set(log.reward[last]) == {-1.0, 1.0}
    assert (np.delete(log.reward, last) == 0).all()


def test_logged_actions_are_admissible_with_their_probabilities(log):
    state = STATE_CODE.states(log.observation)
    assert CLINIC.mask()[state, log.action].all()
    np.testing.assert_array_equal(log.behaviour_log_prob, np.log(CLINIC.behaviour[state, log.action]))


def test_signs_move_one_level_and_diabetes_stays(log):
    before, after = (LEVELS[STATE_CODE.states(one)] for one in (log.observation, log.next_observation))
    assert np.abs(after - before).max() == 1
    assert (after[:, 4] == before[:, 4]).all()


def test_discharge_needs_low_doses_and_normal_signs_but_for_chance(log):
    after = LEVELS[STATE_CODE.states(log.next_observation)]
    well = (after[:, :4] == (2, 2, 2, 1)).all(axis=1) & ((VASOPRESSOR + SEDATIVE)[log.action] <= 2)
    assert (log.reward[well] != 0).all()  # such a patient does not stay
    assert np.mean(well[log.reward == 1]) > 0.9
    assert np.mean(log.reward[~well] == 1) < 0.004  # the chance is 0.002


def test_both_kinds_of_observation_show_the_same_stays():
    codes, signs = CLINIC.sample(50, 3, STATE_CODE), CLINIC.sample(50, 3, VITAL_SIGNS)
    np.testing.assert_array_equal(STATE_CODE.states(codes.observation), VITAL_SIGNS.states(signs.observation))
    np.testing.assert_array_equal(codes.action, signs.action)
    target = CLINIC.targets["aggressive"]
    by_code = CLINIC.policy(target, STATE_CODE).log_prob(codes.observation, codes.action)
    by_signs = CLINIC.policy(target, VITAL_SIGNS).log_prob(signs.observation, signs.action)
    np.testing.assert_array_equal(by_code, by_signs)
    state = STATE_CODE.states(codes.observation)
    np.testing.assert_allclose(np.exp(by_code), target[state, codes.action], rtol=1e-12)


def test_signs_name_every_state():
    for observed in (STATE_CODE, VITAL_SIGNS):
        np.testing.assert_array_equal(observed.states(observed.table), np.arange(CLINIC.num_states))


def test_an_unknown_observation_is_refused():
    with pytest.raises(PolicyError, match="1 observations are not vital signs"):
        VITAL_SIGNS.states(np.array([[81.0, 90.0, 96.0, 100.0, 0.0], [80.0, 90.0, 96.0, 100.0, 0.0]]))


def test_the_same_seed_gives_the_same_log():
    assert CLINIC.sample(20, 5).sha256 == CLINIC.sample(20, 5).sha256 != CLINIC.sample(20, 6).sha256


def test_stored_results_belong_to_this_clinic_and_the_page_shows_them():
    tool = runpy.run_path(str(ROOT / "tools" / "clinic.py"))
    rows = pq.read_table(ROOT / "results" / "clinic.parquet").to_pylist()
    for (target, discount), truth in {(row["target"], row["discount"]): row["truth"] for row in rows}.items():
        assert truth == pytest.approx(CLINIC.value(CLINIC.targets[target], discount), rel=1e-12)
    page = (ROOT / "docs" / "clinic.md").read_text(encoding="utf-8")
    assert tool["with_tables"](page, rows) == page


def test_the_table_of_errors_is_the_root_mean_square_of_relative_errors():
    tool = runpy.run_path(str(ROOT / "tools" / "clinic.py"))
    task = tool["Task"]("errors", VITAL_SIGNS.name, 500, 1.0, "cautious", 0)
    truth = CLINIC.value(CLINIC.targets["cautious"], 1.0)
    rows = [task._replace(target="greedy").row("fqe", 0.0, value=1.0)]  # too few logs for a number
    rows += [task.row("fqe", 0.0, value=truth * factor) for factor in (1.3, 0.6, 1.3, 0.6)]  # 0.3, −0.4
    table = tool["error_table"](rows, VITAL_SIGNS.name, (1.0, 0.99), (500,))
    line = next(line for line in table.splitlines() if "fqe" in line)
    assert line == "| `fqe` | – / – | 35 / – | – / – | – / – |"
