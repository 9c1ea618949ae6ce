"""The two simulators, with the shipped policies: the same statistics from both, and correct log-probabilities."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.tasks import TASKS, collect, target_policy
from average_dice.tasks.rollouts import envpool_envs, gymnasium_envs

pytest.importorskip("envpool", reason="EnvPool exists for Linux only")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:gymnasium")  # about spaces, from Gymnasium itself


def log(name, make_envs, seed=0, num_transitions=4_000):
    # Acrobot and the car need more than a hundred steps to arrive.
    return collect(
        TASKS[name],
        target_policy(name),
        num_transitions=num_transitions,
        max_steps=200,
        noise=TASKS[name].noises[-1],
        seed=seed,
        make_envs=make_envs,
    )


def per_episode(data):
    """Return, length and termination of each episode."""
    returns = np.add.reduceat(data.reward, data.starts)
    terminated = np.logical_or.reduceat(data.terminated, data.starts)
    return np.stack([returns, data.lengths, terminated], axis=1).astype(float)


@pytest.mark.parametrize("name", TASKS)
def test_envpool_and_gymnasium_agree_within_four_standard_errors(name):
    one, other = (per_episode(log(name, make_envs)) for make_envs in (envpool_envs, gymnasium_envs))
    difference = one.mean(axis=0) - other.mean(axis=0)
    error = np.sqrt(one.var(axis=0, ddof=1) / len(one) + other.var(axis=0, ddof=1) / len(other))
    assert (np.abs(difference) <= 4 * error).all(), (difference, error)


@pytest.mark.parametrize("name", TASKS)
def test_importance_ratios_average_to_one(name):
    ratio = ad.Problem(log(name, envpool_envs), target_policy(name), 0.95).ratio
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(ratio))
    assert ratio.std() > 0.1


@pytest.mark.parametrize("name", ["CartPole-v1", "Hopper-v5"])
def test_the_same_collection_twice_is_the_same_bytes(name, tmp_path):
    for part in ("one", "two"):
        ad.write_dataset(log(name, envpool_envs, num_transitions=500), tmp_path / f"{part}.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert (
        log(name, envpool_envs, num_transitions=500, seed=1).sha256 != ad.read_dataset(tmp_path / "one.parquet").sha256
    )


def test_the_log_holds_the_unclipped_action_and_the_environment_gets_the_clipped_one():
    """Hopper's cost of control is 0.001 ‖a‖² of the action that it got."""
    data = log("Hopper-v5", gymnasium_envs, num_transitions=500)
    assert np.abs(data.action).max() > 1.0
    policy = target_policy("Hopper-v5")
    expected = TASKS["Hopper-v5"].behaviour(policy, 2.8).log_prob(data.observation, data.action)
    np.testing.assert_allclose(data.behaviour_log_prob, expected, rtol=0, atol=1e-12)
    # Reward = 1 for being upright + the speed − the cost: with the clipped action the residual is smallest.
    speed = 0.5 * (data.observation[:, 5] + data.next_observation[:, 5])

    def unexplained(action):
        residual = (data.reward - 1.0 + 0.001 * (action**2).sum(axis=1) - speed)[~data.terminated]
        return residual.std()

    assert unexplained(policy.clip(data.action)) < unexplained(data.action)
