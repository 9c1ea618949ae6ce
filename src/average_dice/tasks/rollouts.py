"""Rollouts: many episodes in lockstep, through EnvPool if installed, else through Gymnasium's vector environments.

Observations and actions are rounded to float32 before the policy uses them, so the log-probabilities computed from a
log are exactly those of the actions taken. The environment gets the clipped action, the log the unclipped one.

Episodes are numbered before they begin, and a log keeps the first ones. Keeping those that finish first would prefer
short episodes.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from average_dice.errors import PolicyError, SettingError
from average_dice.policies import GaussianPolicy
from average_dice.tasks.task import NetworkPolicy, Task


@dataclass(frozen=True, eq=False)
class Step:
    """One step of every environment; `live` is false where the environment was only being reset."""

    episode: np.ndarray
    step: np.ndarray
    live: np.ndarray
    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


MakeEnvs = Callable[[str, int, int, int], Any]  # (name, number, longest episode, seed) → vector environment


def envpool_envs(name: str, num_envs: int, max_steps: int, seed: int) -> Any:
    """EnvPool's C++ environments, on several threads."""
    import envpool

    # EnvPool would give environment i the seed seed + i: neighbouring seeds would share most of their episodes.
    seeds = (np.random.SeedSequence(seed).generate_state(num_envs) >> 1).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EnvPool rounds its own float64 bounds to float32
        envs = envpool.make(
            name, env_type="gymnasium", num_envs=num_envs, env_seed=seeds, seed=seeds[0], max_episode_steps=max_steps
        )
        _ = envs.observation_space  # created now: later it would warn
        return envs


def gymnasium_envs(name: str, num_envs: int, max_steps: int, seed: int) -> Any:
    """Gymnasium's environments, stepped one after the other."""
    import gymnasium

    seeds = np.random.SeedSequence(seed).generate_state(num_envs).tolist()
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make(name, max_episode_steps=max_steps)] * num_envs,
        autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP,
    )
    return _Seeded(envs, seeds)


class _Seeded:
    """A Gymnasium vector environment that holds its seeds, as EnvPool's do."""

    def __init__(self, envs: Any, seeds: list[int]) -> None:
        self.envs, self.seeds, self.step, self.close = envs, seeds, envs.step, envs.close
        self.action_space = envs.single_action_space

    def reset(self) -> Any:
        return self.envs.reset(seed=self.seeds)


def fastest_envs() -> MakeEnvs:
    """EnvPool if it is installed, else Gymnasium, else an error that says what to install."""
    if find_spec("envpool"):
        return envpool_envs
    if find_spec("gymnasium"):
        return gymnasium_envs
    raise SettingError(
        "rolling out a policy needs a simulator. Install the extra: pip install 'average-dice[simulate]', "
        "or pip install -e '.[simulate]' in a clone."
    )


def roll_out(
    task: Task,
    policy: NetworkPolicy,
    *,
    num_envs: int,
    max_steps: int,
    seed: int,
    make_envs: MakeEnvs,
) -> Iterator[Step]:
    """Steps of the policy without end: episode after episode in every environment, each truncated after `max_steps`.

    Environment i runs the episodes i, i + num_envs, i + 2 num_envs, …
    """
    environment_seed, action_seed = np.random.SeedSequence(seed).generate_state(2)
    generator = np.random.default_rng(action_seed)
    envs = make_envs(task.name, num_envs, max_steps, int(environment_seed))
    try:
        observation = _single(envs.reset()[0])
        low, high = _bounds(task, policy, envs.action_space, observation)
        episode, step = np.arange(num_envs), np.zeros(num_envs, np.int64)
        live = np.ones(num_envs, bool)
        while True:
            action = policy.sample(observation, generator=generator)
            if isinstance(policy, GaussianPolicy):
                action = _single(action)
                outcome = envs.step(np.clip(action, low, high))
            else:
                outcome = envs.step(action)
            after, reward, terminated, truncated, _ = outcome
            after = _single(after)
            yield Step(
                episode=episode,
                step=step,
                live=live,
                observation=observation,
                action=action,
                reward=np.asarray(reward, np.float64),
                next_observation=after,
                terminated=terminated,
                truncated=truncated,
            )
            # An environment that was being reset has not moved: its episode begins with the next step.
            step = np.where(live, step + 1, 0)
            episode = np.where(live, episode, episode + num_envs)
            live = ~live | ~(terminated | truncated)
            observation = after
    finally:
        envs.close()


def _bounds(task: Task, policy: NetworkPolicy, space: Any, observation: np.ndarray) -> tuple[Any, Any]:
    """The environment's bounds on actions; raises if the policy has other actions than the environment."""
    if isinstance(policy, GaussianPolicy):
        if task.discrete or space.shape[-1] != len(policy.log_std):
            takes = "discrete actions" if task.discrete else f"actions of {space.shape[-1]}"
            raise PolicyError(
                f"the policy has actions of {len(policy.log_std)} numbers, {task.name} has {takes}. "
                "Give a policy of this task."
            )
        return space.low, space.high
    num_actions = policy.log_probabilities(observation).shape[1]
    if not task.discrete or int(space.n) != num_actions:
        takes = f"{space.n}" if task.discrete else "continuous ones"
        raise PolicyError(
            f"the policy chooses among {num_actions} actions, {task.name} has {takes}. Give a policy of this task."
        )
    return None, None


def _single(values: np.ndarray) -> np.ndarray:
    """Rounded to float32, in float64."""
    return np.asarray(values, np.float32).astype(np.float64)
