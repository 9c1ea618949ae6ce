"""A newer model of a robot's controller, judged by a log of the older one: Stable-Baselines3 and Gymnasium.

    pip install 'average-dice[train]'
    python examples/robot.py

From a model and an environment to a page in four lines:

    log = ad.collect("Pendulum-v1", older, episodes=100)
    evaluation = ad.evaluate(log, newer, 0.95)
    print(evaluation)
    evaluation.to_html("robot.html")

PPO learns to swing up a pendulum (half a minute). The older model is an early one; it makes the log. The newer one has
trained for longer and is never run, except for the true value that is printed at the end.
"""

from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import average_dice as ad

ENVIRONMENT, DISCOUNT = "Pendulum-v1", 0.95


def main(
    folder: Path = Path("."), steps: tuple[int, int] = (20_000, 20_000), episodes: int = 100, bootstrap: int = 100
) -> tuple[ad.Evaluation, float]:
    """Trains two models, evaluates the newer one by a log of the older one, and writes the page."""
    older, newer = two_models(folder, *steps)

    log = ad.collect(ENVIRONMENT, older, episodes=episodes, seed=0)
    evaluation = ad.evaluate(
        log, newer, DISCOUNT, bootstrap=bootstrap, title="Is the newer model better?", policy_name="newer model"
    )
    evaluation.to_html(folder / "robot.html")
    print(evaluation)

    returns = returns_of(ad.collect(ENVIRONMENT, newer, episodes=200, seed=1))
    truth, error = returns.mean(), returns.std() / np.sqrt(len(returns))
    print(f"\nIn 200 new episodes the newer model earns {truth:.3f} per step (standard error {error:.3f}).")
    return evaluation, truth


def two_models(folder: Path, steps_before: int, steps_after: int) -> tuple[PPO, PPO]:
    """A model after some training, and the same after more."""
    torch.set_num_threads(1)  # faster for small networks
    environments = make_vec_env(ENVIRONMENT, n_envs=4, seed=0)
    settings = {"gamma": 0.9, "learning_rate": 1e-3, "n_steps": 256, "batch_size": 256, "seed": 0, "device": "cpu"}
    newer = PPO("MlpPolicy", environments, **settings).learn(steps_before)
    newer.save(folder / "older.zip")
    newer.learn(steps_after, reset_num_timesteps=False)
    return PPO.load(folder / "older.zip", device="cpu"), newer


def returns_of(log: ad.LoggedDataset) -> np.ndarray:
    """(1 − γ) Σ γᵗ r of each episode. Episodes have 200 steps; what would come later hardly counts."""
    return (1 - DISCOUNT) * np.bincount(log.episode, DISCOUNT**log.step * log.reward)


if __name__ == "__main__":
    main()
