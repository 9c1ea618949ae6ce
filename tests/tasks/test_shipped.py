"""The shipped policies: above their levels, stochastic, with records and true values."""

import numpy as np
import pytest

from average_dice.demo import load_demo
from average_dice.policies import GaussianPolicy
from average_dice.tasks import DISCOUNTS, TASKS, target_policy, training_record, true_value, truth_record


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_a_policy_above_its_level(name):
    record = training_record(name)
    assert record["mean_return"] > TASKS[name].level
    assert record["episodes"] == 100
    assert record["command"].startswith(f"average-dice train {name} ")
    assert {"stable_baselines3", "torch", "gymnasium"} <= set(record["versions"])


@pytest.mark.parametrize("name", TASKS)
def test_the_policies_are_stochastic(name):
    policy = target_policy(name)
    if isinstance(policy, GaussianPolicy):
        assert (np.exp(policy.log_std) > 0.05 * (policy.high - policy.low) / 2).all()
    else:
        log = load_demo("CartPole-v1").dataset.observation if name == "CartPole-v1" else np.zeros((1, 6))
        assert np.exp(policy.log_probabilities(log)).max(axis=1).mean() < 0.999


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_true_values_with_small_errors(name):
    values = {row["discount"]: row for row in truth_record(name)["values"]}
    assert set(values) == set(DISCOUNTS)
    scale = max(abs(row["value"]) for row in values.values())
    assert values[0.95]["standard_error"] < 0.005 * scale
    assert true_value(name, 0.95) == (values[0.95]["value"], values[0.95]["standard_error"])
