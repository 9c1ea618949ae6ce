"""check_estimator accepts right estimators, and names the property that a wrong one lacks."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY, Estimator, Fit, PreparedClosedForm
from average_dice.testing import Case, check_case, check_estimator
from average_dice.testing.cases import default_case
from average_dice.testing.conformance import (
    MDPS,
    check_every_trajectory,
    check_exact_ratio,
    check_missing_inputs,
    checks_of,
    expected_value,
)
from average_dice.testing.exact_mdps import random_mdp, truncated


class Simple(Estimator):
    """An estimator that only computes a value."""

    def prepare(self, problem, *, key):
        return PreparedClosedForm(problem, lambda resample: Fit(float(self.value(resample.problem))))


class PerDecision(Simple):
    """J = (1 − γ) E[Σ γᵗ ρ₀⋯ρₜ r_t], a mean over episodes."""

    def log_weights(self, problem):
        return problem.log_product + problem.log_ratio

    def value(self, problem):
        data = problem.dataset
        rewards = problem.discount**data.step * np.exp(self.log_weights(problem)) * data.reward
        return problem.normaliser * rewards.sum() / data.num_episodes


class SuffixProducts(PerDecision):
    """ρₜ⋯ρ_T in place of ρ₀⋯ρₜ."""

    def log_weights(self, problem):
        return problem.final_log_product[problem.episode_index] - problem.log_product


class WithoutSeed(PerDecision):
    """A little noise that does not come from the key."""

    def value(self, problem):
        return super().value(problem) + 1e-9 * np.random.default_rng().normal()


class LaterEpisodesCountMore(PerDecision):
    """Weights that depend on the position in the log."""

    def log_weights(self, problem):
        later = np.linspace(0.9, 1.1, problem.dataset.num_transitions)
        return super().log_weights(problem) + np.log(later)


@dataclass(frozen=True)
class TabularModel(Simple):
    """Transitions and rewards counted from a log with one-hot observations; then J = (1 − γ) p₀ᵀ (I − γ P)⁻¹ r."""

    truncation_terminates: bool = False

    def value(self, problem):
        data, gamma = problem.dataset, problem.discount
        ended = data.terminated | data.truncated if self.truncation_terminates else data.terminated
        weighted = data.observation * problem.ratio[:, None]
        visits = np.diag(weighted.sum(axis=0))
        moves = weighted.T @ (data.next_observation * ~ended[:, None])
        values = np.linalg.lstsq(visits - gamma * moves, weighted.T @ data.reward)[0]  # a log may lack a state
        return problem.normaliser * problem.start_observation.mean(axis=0) @ values


class BehaviourValue(Simple):
    """The value of the wrong policy."""

    def value(self, problem):
        return ad.BehaviourReturn().fit(problem, key=jax.random.key(0)).value


def failure_of(method, **settings):
    with pytest.raises(AssertionError) as failure:
        check_estimator(method, **settings)
    return str(failure.value)


def test_right_estimators_pass():
    check_estimator(PerDecision(), estimates="truncated", tolerance=0.05)
    check_estimator(TabularModel(), tolerance=0.05)


def test_suffix_products_are_found():
    message = failure_of(SuffixProducts(), estimates="truncated", tolerance=0.05)
    assert message.startswith("SuffixProducts fails ")
    assert "the value where expectations are exact, on the MDP 'tiny': found " in message
    assert "recovers the value, on the MDP 'rare state', 6,000 episodes: found " in message
    assert "same key" not in message


def test_truncation_treated_as_termination_is_found():
    message = failure_of(TabularModel(truncation_terminates=True), tolerance=0.05)
    assert "recovers the value, on the MDP 'truncated', 6,000 episodes: found " in message
    assert "This is the value if truncation is treated as termination." in message
    assert "'early termination'" not in message


def test_randomness_without_the_key_is_found():
    message = failure_of(WithoutSeed(), estimates="truncated", tolerance=0.05)
    assert "same key, same answer, on the MDP 'truncated': found " in message
    assert "Use `key` for all randomness." in message
    assert "recovers the value" not in message


def test_dependence_on_the_order_of_the_log_is_found():
    message = failure_of(LaterEpisodesCountMore(), estimates="truncated", tolerance=0.05)
    assert "the same answer for episodes in any order, on the MDP 'truncated': found " in message
    assert "recovers the value" not in message


def test_the_value_of_the_behaviour_policy_is_found():
    message = failure_of(BehaviourValue(), estimates="truncated", tolerance=0.05)
    assert "This is the value of the behaviour policy." in message


def test_nan_is_not_close_to_anything():
    class NotANumber(Simple):
        def value(self, problem):
            return np.nan

    message = failure_of(NotANumber())
    assert "found nan" in message
    assert "Raise NotApplicable instead." in message


def test_a_method_must_ask_for_what_it_needs():
    method = Case(PerDecision(), "truncated", 0.05)
    check_missing_inputs(method, needs="π, μ")
    with pytest.raises(AssertionError, match="without a policy object: it needs it and still gives a value"):
        check_missing_inputs(method, needs="policy, μ")


def test_the_case_of_an_estimator_without_an_entry_is_its_default():
    assert default_case(REGISTRY["lstd-q"]) == Case(REGISTRY["lstd-q"].make())


def test_checks_that_do_not_apply_are_left_out():
    every = len(list(checks_of(Case(PerDecision()))))
    assert len(list(checks_of(Case(PerDecision(), too_noisy_on=("random",))))) == every - 1
    check_case(Case(PerDecision(), "truncated", 0.05, too_noisy_on=tuple(MDPS)))
    with pytest.raises(ValueError, match="set `ratio_of`"):
        check_exact_ratio(Case(PerDecision()))


def test_what_is_expected_after_truncation():
    mdp = truncated()
    found = [expected_value(mdp, estimates) for estimates in ("whole", "held", "truncated", "flow")]
    assert found == [mdp.value, mdp.value, mdp.value_to_truncation, mdp.flow_normalised_value]
    late = replace(random_mdp(), truncation=80)
    assert expected_value(late, "truncated") == late.value  # what is left out is below 10⁻⁴
    assert late.value_to_truncation == pytest.approx(late.value, abs=1e-6)
    with pytest.raises(AssertionError, match="off by"):
        check_every_trajectory(Case(PerDecision(), "whole"))
