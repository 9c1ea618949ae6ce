"""Mistakes seen in public implementations of these methods, each with a test that would have caught it.

(Ratios that sum to one: test_saddle_point. The clock: test_conformance. Suffix for prefix products: test_average_dice.)
"""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import LSTDQ, SRDICE, AverageDICELambda, COPTDFeatures, FittedQ, ImportanceSampling
from average_dice.estimators.ratio import sr_dice
from average_dice.estimators.ratio.average_dice import ratio_on_state
from average_dice.labels import as_logged, plain
from average_dice.models import Linear
from average_dice.testing.exact_mdps import as_policy, early_termination, tiny, truncated

KEY = jax.random.key(0)


def problem_of(mdp, data=None):
    return ad.Problem(data or mdp.exhaustive(4), mdp.policy, mdp.discount)


@pytest.mark.parametrize("method", [LSTDQ(20, 1e-9), FittedQ(20, 1e-9), COPTDFeatures(20, 1e-9)])
def test_a_timeout_is_no_terminal_and_a_terminal_no_timeout(method):
    mdp = replace(tiny(), reward=tiny().reward + 1)
    data = mdp.exhaustive(4)
    ends, never = data.terminated | data.truncated, np.zeros(data.num_transitions, bool)
    logs = (
        data,
        replace(data, terminated=ends, truncated=never),
        replace(data, terminated=never, truncated=ends),
    )
    right, all_terminate, none_terminates = (method.fit(problem_of(mdp, log), key=KEY).value for log in logs)
    assert right == pytest.approx(mdp.value, abs=1e-3)
    assert all_terminate < right - 0.15
    assert none_terminates > right + 0.15


def test_cop_td_as_a_regression_over_logged_states_would_miss_what_lies_beyond_the_cut():
    """What arrives after the cut counts: without it the ratio finds less than its mass."""
    mdp = tiny()
    fit = COPTDFeatures(20, 1e-9).fit(problem_of(mdp), key=KEY)
    assert fit.diagnostics["flow_mass"] == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(fit.ratio(np.eye(2)), mdp.ratio, rtol=1e-3)  # and no factor n/K too many


def test_lambda_joins_cop_td_and_average_dice():
    """λ = 0 is COP-TD; λ = 1 on a log without cuts is the regression of plain labels on the same features.

    Flows divide ratios by their mean: here that is 1 to begin with.
    """
    given = early_termination().problem(300, seed=0)
    shifted = given.dataset.behaviour_log_prob + np.log(given.mean_ratio)
    problem = ad.Problem(replace(given.dataset, behaviour_log_prob=shifted), given.policy, given.discount)
    cop_td = COPTDFeatures(20, 1e-9).fit(problem, key=KEY)
    none = AverageDICELambda(0.0, 20, 1e-9).fit(problem, key=KEY)
    np.testing.assert_allclose(none.weights, cop_td.weights, rtol=1e-6)
    full = AverageDICELambda(1.0, 20, 1e-9).fit(problem, key=KEY)
    labels = ad.AverageDICE(Linear(ridge=1e-9, mass_weight=0.0), plain, as_logged, ratio_on_state)
    assert full.value == pytest.approx(labels.fit(problem, key=KEY).value, rel=1e-4)


def test_lambda_between_is_exact_as_the_cut_becomes_late():
    mdp = truncated()
    problem = replace(mdp, truncation=120).problem(3_000, seed=0)
    for trace in (0.0, 0.3, 0.6):
        fit = AverageDICELambda(trace, 20, 1e-9).fit(problem, key=KEY)
        np.testing.assert_allclose(fit.ratio(np.eye(5)), replace(mdp, truncation=120).ratio, rtol=0.1)
    with pytest.raises(ad.SettingError, match="between 0 and 1"):
        AverageDICELambda(1.5)


def test_episodes_that_end_early_count():
    """Throwing them away conditions on survival: the value would rise to that of the survivors."""
    mdp = replace(early_termination(), reward=np.ones((5, 2)), truncation=10)
    problem = mdp.problem(3_000, seed=0)
    survivors = np.isin(problem.dataset.episode, problem.dataset.episode[problem.dataset.truncated])
    assert 0.3 < survivors.mean() < 0.9
    value = ImportanceSampling.weighted_per_decision().fit(problem, key=KEY).value
    assert value == pytest.approx(mdp.value_to_truncation, abs=0.01)
    assert mdp.value_to_truncation + 0.05 < 1 - 0.9**10  # what the survivors alone would say


def test_a_stochastic_policy_is_not_its_best_action():
    mdp = replace(tiny(), target=np.array([[0.4, 0.6], [0.6, 0.4]]))
    greedy = ad.Problem(mdp.exhaustive(4), as_policy(np.array([[1e-9, 1 - 1e-9], [1 - 1e-9, 1e-9]])), mdp.discount)
    stochastic = ad.Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)
    values = [LSTDQ(20, 1e-9).fit(problem, key=KEY).value for problem in (stochastic, greedy)]
    assert values[0] == pytest.approx(mdp.value, abs=1e-3)
    assert abs(values[1] - values[0]) > 0.05


def test_terminated_as_zeros_and_ones_is_a_mask_and_no_index():
    data = tiny().sample(50, seed=0)
    names = ("episode", "step", "observation", "action", "reward", "next_observation", "behaviour_log_prob")
    columns = {name: getattr(data, name) for name in names}
    numbers = ad.LoggedDataset.from_arrays(**columns, terminated=data.terminated.astype(int))
    assert numbers.terminated.dtype == bool
    values = [LSTDQ(20).fit(ad.Problem(log, tiny().policy, 0.9), key=KEY).value for log in (data, numbers)]
    assert values[0] == values[1]


def test_successor_features_have_as_many_outputs_as_features(monkeypatch):
    seen = []
    original = sr_dice._means
    monkeypatch.setattr(sr_dice, "_means", lambda *arguments: seen.append(original(*arguments)) or seen[-1])
    method = SRDICE((16, 16), num_features=12, encoder_steps=5, num_steps=6, num_checkpoints=2)
    fit = method.fit(tiny().problem(20, seed=0), key=KEY)
    assert fit.history.step.tolist() == [5, 8, 11]  # the encoder's steps count
    assert seen[-1].shape == (1, 12)
    assert np.ptp(seen[-1]) > 0


def test_the_discount_is_applied_once():
    """A reward of 1 at every step of an endless process is worth exactly 1, whatever the discount."""
    for discount in (0.5, 0.9, 0.99):
        mdp = replace(truncated(), discount=discount, reward=np.ones((5, 2)))
        endless = replace(mdp, transition=mdp.transition / mdp.transition.sum(axis=2, keepdims=True))
        problem = endless.problem(100, seed=0)
        for method in (LSTDQ(20), FittedQ(20), COPTDFeatures(20)):
            assert method.fit(problem, key=KEY).value == pytest.approx(1.0, abs=1e-6)
