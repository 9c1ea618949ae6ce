"""Target policies: trained by the PPO of Stable-Baselines3 (Schulman et al., 2017), exported to our own file format.

Observations are standardised by running statistics, which are part of the exported file. Training writes checkpoints
and continues from the last one. Checkpoints are safetensors files: those of Stable-Baselines3 are pickles, and reading
a pickle can execute code.
"""

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from average_dice.errors import SettingError
from average_dice.files import write_text_whole, written_whole
from average_dice.policies import CategoricalPolicy, GaussianPolicy, Network, save_policy
from average_dice.progress import report
from average_dice.tasks.collection import episode_returns, simulator_versions
from average_dice.tasks.rollouts import fastest_envs
from average_dice.tasks.task import NetworkPolicy, Task

NEVER_CLIP = 1e6  # Stable-Baselines3 clips standardised observations at 10; our policy files have no clipping
STEPS_BETWEEN_CHECKPOINTS = 50_000  # more would lose more work at an interruption, fewer would cost time
EVALUATION_EPISODES = 100  # the standard error of the mean return is a tenth of the returns' standard deviation


@dataclass(frozen=True)
class PPOSettings:
    """Hyperparameters of PPO. The defaults are those of the original implementation for MuJoCo (Schulman et al., 2017;
    Huang et al., 2022), with its 2,048 steps a rollout spread over eight environments."""

    num_steps: int = 2_000_000
    num_envs: int = 8
    rollout: int = 256
    batch_size: int = 64
    num_epochs: int = 10
    learning_rate: float = 3e-4
    discount: float = 0.99
    gae: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    log_std: float = 0.0
    action_repeat: int = 1
    least_variance: float = 1e-8  # added to the variance of each observation


# CartPole and Acrobot: the tuned sets of RL Baselines3 Zoo.
SETTINGS: dict[str, PPOSettings] = {
    "CartPole-v1": PPOSettings(
        num_steps=100_000, rollout=32, batch_size=256, num_epochs=20, learning_rate=1e-3, discount=0.98, gae=0.8
    ),
    "Acrobot-v1": PPOSettings(num_steps=500_000, num_envs=16, num_epochs=4, gae=0.94),
    # Independent Gaussian actions never move the car up the hill. Each is repeated eight times in training.
    "MountainCarContinuous-v0": PPOSettings(
        num_steps=200_000, discount=0.999, gae=0.98, entropy=0.001, action_repeat=8
    ),
    # Contact forces are nearly always 0: standardised, a contact would be a hundred standard deviations. Noise with a
    # standard deviation of 1 costs more control than walking earns. Without an entropy bonus the noise vanishes.
    "Ant-v5": PPOSettings(log_std=-0.5, entropy=0.005, least_variance=0.01),
}  # every other task: the defaults


class RepeatAction(gymnasium.Wrapper):
    """Takes each action several times and adds up the rewards."""

    def __init__(self, env: Any, times: int) -> None:
        super().__init__(env)
        self.times = times

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self.times):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


def train_and_record(task: Task, out: Path, *, seed: int, num_steps: int | None = None) -> dict[str, Any]:
    """Trains the target policy of a task, and writes it with a record of the training and of its mean return."""
    settings = SETTINGS.get(task.name, PPOSettings())
    if num_steps is not None:
        settings = replace(settings, num_steps=num_steps)
    policy = train(task, settings, seed, out.with_suffix(".checkpoint"))
    make_envs = fastest_envs()
    returns = episode_returns(
        task,
        policy,
        discounts=(1.0,),
        num_episodes=EVALUATION_EPISODES,
        max_steps=task.time_limit,
        seed=seed,
        make_envs=make_envs,
    )
    packages = ("stable_baselines3", "torch", "gymnasium", *(("mujoco",) if task.name.endswith("v5") else ()))
    steps = "" if num_steps is None else f" --steps {num_steps}"
    record = {
        "task": task.name,
        "mean_return": float(returns.mean()),
        "standard_error": float(returns.std(ddof=1) / np.sqrt(len(returns))),
        "episodes": EVALUATION_EPISODES,
        "seed": seed,
        "settings": asdict(settings),
        "versions": {package: version(package) for package in packages} | simulator_versions(make_envs),
        "command": f"average-dice train {task.name} --seed {seed}{steps} --out {shlex.quote(out.name)}",
    }
    save_policy(policy, out)
    write_text_whole(out.with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    return record


def train(task: Task, settings: PPOSettings, seed: int, checkpoint: Path) -> NetworkPolicy:
    """Trains the target policy of a task, from the checkpoint if there is one, and returns it in our own form."""
    model, envs = make_model(task, settings, seed)
    if checkpoint.exists():
        _restore(model, envs, settings, seed, checkpoint)
    left = settings.num_steps - model.num_timesteps
    if left > 0:
        save = _SaveAndReport(lambda: _save(model, envs, settings, seed, checkpoint), settings.num_steps)
        model.learn(left, callback=save, reset_num_timesteps=model.num_timesteps == 0)
        _save(model, envs, settings, seed, checkpoint)
    envs.close()
    return export(model, envs, task)


def make_model(task: Task, settings: PPOSettings, seed: int) -> tuple[PPO, VecNormalize]:
    """PPO before its first step, and its environments, which standardise observations."""
    torch.set_num_threads(1)
    envs = make_vec_env(task.name, settings.num_envs, seed=seed, wrapper_class=_wrapper(settings))
    envs = VecNormalize(envs, gamma=settings.discount, clip_obs=NEVER_CLIP, epsilon=settings.least_variance)
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=settings.rollout,
        batch_size=settings.batch_size,
        n_epochs=settings.num_epochs,
        learning_rate=lambda left: settings.learning_rate * left,
        gamma=settings.discount,
        gae_lambda=settings.gae,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        policy_kwargs={"net_arch": [64, 64], "log_std_init": settings.log_std},
        seed=seed,
        device="cpu",
    )
    return model, envs


def _wrapper(settings: PPOSettings) -> Callable[[Any], Any] | None:
    if settings.action_repeat == 1:
        return None
    return lambda env: RepeatAction(env, settings.action_repeat)


class _SaveAndReport(BaseCallback):
    """Saves checkpoints and reports progress after every rollout."""

    def __init__(self, save: Callable[[], None], total: int) -> None:
        super().__init__()
        self.save, self.total, self.saved_at = save, total, 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # Between an update and the next rollout all parts of the state belong together.
        self.saved_at = self.saved_at or self.num_timesteps
        if self.num_timesteps - self.saved_at >= STEPS_BETWEEN_CHECKPOINTS:
            self.save()
            self.saved_at = self.num_timesteps
        report(min(self.num_timesteps, self.total), self.total)


def _save(model: PPO, envs: VecNormalize, settings: PPOSettings, seed: int, path: Path) -> None:
    tensors = {f"policy.{name}": tensor for name, tensor in model.policy.state_dict().items()}
    for index, state in model.policy.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in state.items()}
    for name, statistics in (("observation", envs.obs_rms), ("return", envs.ret_rms)):
        for part in ("mean", "var", "count"):
            tensors[f"{name}.{part}"] = torch.as_tensor(np.asarray(getattr(statistics, part), np.float64))
    metadata = {"run": _run(settings, seed), "num_timesteps": str(model.num_timesteps)}
    with written_whole(path) as temporary:
        save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, temporary, metadata)


def _restore(model: PPO, envs: VecNormalize, settings: PPOSettings, seed: int, path: Path) -> None:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    if metadata["run"] != _run(settings, seed):
        raise SettingError(f"{path}: a checkpoint of other settings or another seed. Remove it, or use those settings.")
    model.num_timesteps = int(metadata["num_timesteps"])
    policy = {name.removeprefix("policy."): tensor for name, tensor in tensors.items() if name.startswith("policy.")}
    model.policy.load_state_dict(policy)
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, part = name.split(".")
            states.setdefault(int(index), {})[part] = tensor
    optimizer = model.policy.optimizer.state_dict()
    model.policy.optimizer.load_state_dict(optimizer | {"state": states})
    for name, statistics in (("observation", envs.obs_rms), ("return", envs.ret_rms)):
        for part in ("mean", "var", "count"):
            value = tensors[f"{name}.{part}"].numpy()
            setattr(statistics, part, float(value) if part == "count" else value)


def _run(settings: PPOSettings, seed: int) -> str:
    return json.dumps(asdict(settings) | {"seed": seed}, sort_keys=True)


def export(model: PPO, envs: VecNormalize, task: Task) -> NetworkPolicy:
    """The trained policy in our own form, with the standardisation of observations."""
    layers = [module for module in model.policy.mlp_extractor.policy_net if isinstance(module, torch.nn.Linear)]
    layers.append(model.policy.action_net)
    network = Network(
        weights=tuple(_numbers(layer.weight) for layer in layers),
        biases=tuple(_numbers(layer.bias) for layer in layers),
        activation="tanh",
        mean=envs.obs_rms.mean.astype(np.float32).astype(np.float64),
        std=np.sqrt(envs.obs_rms.var + envs.epsilon).astype(np.float32).astype(np.float64),
    )
    if task.discrete:
        return CategoricalPolicy(network)
    low, high = (np.asarray(bound, np.float64) for bound in (envs.action_space.low, envs.action_space.high))
    return GaussianPolicy(network, _numbers(model.policy.log_std), low, high)


def _numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.float64)
