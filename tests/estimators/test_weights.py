"""What exact critics and tables would hide: the weights themselves, and each half of a doubly robust value alone."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import (
    AverageDICELambda,
    Critic,
    DoublyRobust,
    EmphaticTD,
    ImportanceSampling,
    MarginalisedDoublyRobust,
    PreparedClosedForm,
)
from average_dice.estimators.value.emphatic_td import log_emphasis
from average_dice.testing.exact_mdps import tiny, truncated

KEY = jax.random.key(0)


def exhaustive(mdp):
    return ad.Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)


@dataclass(frozen=True)
class Says(ad.Estimator):
    """A critic that gives every state and action the same value."""

    value: float

    def prepare(self, problem, *, key):
        def same(observations, actions=None):
            return np.full(len(observations), self.value)

        return PreparedClosedForm(problem, lambda resample: ad.Fit(self.value, critic=Critic(same, same)))


def test_without_a_critic_doubly_robust_is_importance_sampling():
    problem = truncated().problem(300, seed=0)
    for robust, plain in (
        (DoublyRobust(critic=Says(0.0)), ImportanceSampling.per_decision()),
        (replace(DoublyRobust.weighted(), critic=Says(0.0)), ImportanceSampling.weighted_per_decision()),
        (MarginalisedDoublyRobust(critic=Says(0.0)), ad.AverageDICE()),
    ):
        assert robust.fit(problem, key=KEY).value == pytest.approx(plain.fit(problem, key=KEY).value, rel=1e-9)


def test_a_wrong_critic_is_corrected_up_to_the_cut_and_believed_beyond_it():
    """On every trajectory: J to the cut, plus γᴴ P_π(alive at H) of what the critic says."""
    mdp = tiny()
    alive = mdp.visits(mdp.target, mdp.truncation + 1)[-1].sum()
    expected = mdp.value_to_truncation + mdp.discount**mdp.truncation * alive * 0.7
    assert DoublyRobust(critic=Says(0.7)).fit(exhaustive(mdp), key=KEY).value == pytest.approx(expected, abs=1e-12)


def test_emphasis_is_what_came_before():
    """F_t = γ ρ_{t−1} F_{t−1} + 1; with π = μ, (1 − γ^{t+1}) / (1 − γ)."""
    problem = truncated().problem(20, seed=0)
    data, ratio = problem.dataset, problem.ratio
    emphasis = np.exp(log_emphasis(problem))
    for row, found in enumerate(emphasis):
        before = 0.0 if data.step[row] == 0 else problem.discount * ratio[row - 1] * emphasis[row - 1]
        assert found == pytest.approx(before + 1)
    same = replace(truncated(), target=truncated().behaviour).problem(20, seed=0)
    expected = (1 - 0.95 ** (same.dataset.step + 1)) / 0.05
    np.testing.assert_allclose(np.exp(log_emphasis(same)), expected, rtol=1e-12)


def test_emphasis_weights_the_differences():
    """Where all states look alike, v is one number: (1 − γ) Σ Fρr / Σ Fρ(1 − γm)."""
    problem = truncated().problem(50, seed=0)
    data = problem.dataset
    blind = replace(data, observation=np.zeros_like(data.observation), next_observation=np.zeros_like(data.observation))
    column = replace(blind, target_log_prob=problem.target_log_prob)
    weight = np.exp(log_emphasis(problem)) * problem.ratio
    expected = 0.05 * (weight @ data.reward) / (weight @ problem.flow)
    found = EmphaticTD(5, 1e-9).fit(ad.Problem(column, None, 0.95), key=KEY).value
    assert found == pytest.approx(expected, rel=1e-5)
    assert abs(found - 0.05 * (problem.ratio @ data.reward) / (problem.ratio @ problem.flow)) > 1e-3


@pytest.mark.parametrize("trace", [0.0, 0.4, 0.9])
def test_lambda_where_expectations_are_exact(trace):
    """W = Σ_{t<H} a_t + a_H / (1 − γλ), with a_{t+1} = γ P_πᵀ((1 − λ) w d_t + λ a_t) a₀ = (1 − γ) p₀, is w Σ d_t."""
    mdp = tiny()
    visits = mdp.visits(mdp.behaviour, mdp.truncation)
    flow = mdp.discount * mdp.step_matrix(mdp.target).T

    def mass(ratio):
        arriving = (1 - mdp.discount) * mdp.start
        total = arriving.copy()
        for step in range(mdp.truncation):
            arriving = flow @ ((1 - trace) * ratio * visits[step] + trace * arriving)
            total += arriving / (1 - mdp.discount * trace if step == mdp.truncation - 1 else 1)
        return total

    none, seen = mass(np.zeros(2)), visits.sum(axis=0)
    matrix = np.stack([mass(unit) - none for unit in np.eye(2)], axis=1)
    expected = np.linalg.solve(np.diag(seen) - matrix, none)
    fit = AverageDICELambda(trace, 20, 1e-9).fit(exhaustive(mdp), key=KEY)
    np.testing.assert_allclose(fit.ratio(np.eye(2)), expected * seen.sum(), rtol=1e-3)
    assert ad.NoteCode.TRUNCATION_STAYS in {note.code for note in fit.notes}
