"""The tasks. One entry each: an environment, how its behaviour policy is made from the target, and the grids."""

from dataclasses import dataclass

from average_dice.errors import PolicyError, SettingError, did_you_mean
from average_dice.policies import (
    CategoricalPolicy,
    DeterministicPolicy,
    GaussianPolicy,
    Policy,
    mixed_with_uniform,
    with_scaled_variance,
)

NetworkPolicy = CategoricalPolicy | GaussianPolicy


def require_stochastic(policy: Policy) -> NetworkPolicy:
    """The same policy. Raises if it is deterministic: tasks sample actions, and scale their variance."""
    if isinstance(policy, DeterministicPolicy):
        raise PolicyError("tasks need a stochastic policy, and this one is deterministic. Give it a finite log_std.")
    if not isinstance(policy, NetworkPolicy):
        raise PolicyError(f"tasks need a policy of a .safetensors file, or one of a task, not {policy!r}.")
    return policy


# The grids of the robustness experiment, around the main setting of 0.95 and 4,000.
DISCOUNTS = (0.8, 0.9, 0.95, 0.99, 0.995)
TRANSITIONS = (2_000, 4_000, 8_000, 16_000)


@dataclass(frozen=True)
class Task:
    """A Gymnasium environment and a family of behaviour policies.

    - `noise`: how much the behaviour policy differs from the target by default. Discrete actions: the share of uniform
      actions. Continuous actions: the factor on the *variance* of the Gaussian.
    - `time_limit`: the environment's own. Reaching it truncates the episode.
    - `level`: the mean return that the shipped target policy must exceed when it samples its actions.
    - `noises`, `lengths`: the grids of the robustness experiment.
    """

    name: str
    discrete: bool
    time_limit: int
    level: float
    noise: float
    noises: tuple[float, ...]
    lengths: tuple[int, ...]

    def behaviour(self, target: NetworkPolicy, noise: float | None = None) -> NetworkPolicy:
        """The behaviour policy: (1 − x) π + x uniform, or the Gaussian with its variance times x."""
        noise = self.noise if noise is None else noise
        if isinstance(target, CategoricalPolicy) != self.discrete:
            kinds = ("discrete", "continuous") if self.discrete else ("continuous", "discrete")
            raise PolicyError(
                f"{self.name} has {kinds[0]} actions, the policy has {kinds[1]} ones. Give a policy of this task."
            )
        if isinstance(target, CategoricalPolicy):
            return mixed_with_uniform(target, noise)
        return with_scaled_variance(target, noise)

    def describe(self, noise: float) -> str:
        """The behaviour policy in words, for the metadata of a log."""
        if self.discrete:
            return f"{1 - noise:g} target + {noise:g} uniform"
        return f"target with its variance times {noise:g}"


def _discrete(name: str, time_limit: int, level: float) -> Task:
    return Task(name, True, time_limit, level, 0.3, (0.1, 0.2, 0.3, 0.4, 0.5), (20, 40, 80, 100))


def _continuous(name: str, time_limit: int, level: float) -> Task:
    return Task(name, False, time_limit, level, 2.0, (1.4, 1.8, 2.0, 2.4, 2.8), (20, 50, 100, 200))


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _discrete("CartPole-v1", 500, 410.0),
        _discrete("Acrobot-v1", 500, -100.0),
        _continuous("MountainCarContinuous-v0", 999, 85.0),
        _continuous("Hopper-v5", 1000, 1_800.0),
        _continuous("HalfCheetah-v5", 1000, 2_000.0),
        _continuous("Walker2d-v5", 1000, 1_800.0),
        _continuous("Ant-v5", 1000, 1_200.0),
    )
}


def find_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise SettingError(f"unknown task {name}.{did_you_mean(name, TASKS)} Known are {', '.join(TASKS)}.")
    return TASKS[name]
