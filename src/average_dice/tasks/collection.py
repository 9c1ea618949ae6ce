"""Logs of a behaviour policy, and true values of a target policy, from rollouts.

    J(π) = (1 − γ) E_π[Σ γᵗ r_t]

A time limit is not a termination: true values include the steps after it. Stopping before the discount is negligible
would make them too small.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float

from average_dice.data import LoggedDataset
from average_dice.errors import SettingError
from average_dice.files import write_text_whole
from average_dice.progress import report
from average_dice.tasks.rollouts import MakeEnvs, Step, roll_out
from average_dice.tasks.task import NetworkPolicy, Task
from average_dice.version import __version__

RAREST = 2_000  # episodes for one that is kept: with fewer, a log would take hours
LARGEST_BATCH = 64  # environments at a time: with more, most would wait for the slowest
NEGLIGIBLE = 1e-4  # true values ignore steps whose discount γᵗ is below this,
LEAST_HORIZON = 1_000  # but use at least this many steps: by then γᵗ is negligible for all γ up to 0.99


def collect(
    task: Task,
    target: NetworkPolicy,
    *,
    num_transitions: int,
    max_steps: int,
    noise: float,
    seed: int,
    make_envs: MakeEnvs,
    policy_name: str = "shipped",
    only_full: bool = False,
) -> LoggedDataset:
    """The first whole episodes with at least `num_transitions` in total, each truncated after `max_steps`.

    `only_full`: episodes that end before `max_steps` are thrown away, as in the authors' released code. This conditions
    on survival, and is here only to reproduce it.
    """
    if num_transitions < 1 or max_steps < 1:
        raise SettingError(
            f"a log needs at least one transition and one step an episode, not {num_transitions} and {max_steps}."
        )
    num_envs = min(LARGEST_BATCH, -(-num_transitions // max_steps))
    behaviour = task.behaviour(target, noise)
    steps: list[Step] = []
    lengths: dict[int, int] = {}  # of finished episodes
    found = num_episodes = 0  # transitions and number of the episodes 0, 1, 2, … before the first unfinished one
    wanted: list[int] = []  # of these episodes
    for step in roll_out(task, behaviour, num_envs=num_envs, max_steps=max_steps, seed=seed, make_envs=make_envs):
        steps.append(step)
        for slot in np.flatnonzero(step.live & (step.terminated | step.truncated)):
            lengths[int(step.episode[slot])] = int(step.step[slot]) + 1
        while found < num_transitions and num_episodes in lengths:
            if lengths[num_episodes] == max_steps or not only_full:
                found += lengths[num_episodes]
                wanted.append(num_episodes)
            num_episodes += 1
        if num_episodes > RAREST * (len(wanted) + 1):
            raise SettingError(f"{len(wanted)} of {num_episodes} episodes reach step {max_steps}. Ask for fewer steps.")
        report(min(found, num_transitions), num_transitions)
        if found >= num_transitions:
            break
    kept = np.array([step.live & np.isin(step.episode, wanted) for step in steps])

    def column(name: str) -> np.ndarray:
        return np.array([getattr(step, name) for step in steps])[kept]

    observation, action = column("observation"), column("action")
    return LoggedDataset(
        episode=column("episode"),
        step=column("step"),
        observation=observation,
        action=action,
        reward=column("reward"),
        next_observation=column("next_observation"),
        terminated=column("terminated"),
        truncated=column("truncated"),
        behaviour_log_prob=behaviour.log_prob(observation, action),
        metadata={
            "task": task.name,
            "behaviour": task.describe(noise),
            "policy": policy_name,
            "noise": noise,
            "transitions": num_transitions,
            "max_steps": max_steps,
            "seed": seed,
            **({"only_full": True} if only_full else {}),
            "simulator": make_envs.__name__.removesuffix("_envs"),
            "versions": {"average-dice": __version__, **simulator_versions(make_envs)},
        },
    )


@dataclass(frozen=True)
class Truth:
    """J(π) at a discount, from on-policy episodes."""

    discount: float
    value: float
    standard_error: float


def true_values(
    task: Task,
    policy: NetworkPolicy,
    *,
    discounts: Sequence[float],
    num_episodes: int,
    seed: int,
    make_envs: MakeEnvs,
) -> list[Truth]:
    """J(π) for several discounts at once.

    Episodes ignore the environment's time limit: they run until termination, or until the largest discount makes the
    rest negligible.
    """
    if num_episodes < 2:
        raise SettingError(f"a standard error needs at least two episodes, not {num_episodes}. Ask for more.")
    if not discounts or not all(0 < discount < 1 for discount in discounts):
        raise SettingError(f"discounts must lie between 0 and 1, both excluded, not {list(discounts)}.")
    horizon = max(LEAST_HORIZON, int(np.ceil(np.log(NEGLIGIBLE) / np.log(max(discounts)))))
    returns = episode_returns(
        task,
        policy,
        discounts=discounts,
        num_episodes=num_episodes,
        max_steps=horizon,
        seed=seed,
        make_envs=make_envs,
    )
    values = (1 - np.array(discounts)) * returns
    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(num_episodes)
    return [Truth(*row) for row in zip(discounts, means.tolist(), errors.tolist(), strict=True)]


def episode_returns(
    task: Task,
    policy: NetworkPolicy,
    *,
    discounts: Sequence[float],
    num_episodes: int,
    max_steps: int,
    seed: int,
    make_envs: MakeEnvs,
) -> Float[np.ndarray, "episode discount"]:
    """Σ γᵗ r_t of each episode, for each discount; a discount of 1 gives the plain return."""
    factors = np.asarray(discounts)
    num_envs = min(LARGEST_BATCH, num_episodes)
    returns = np.zeros((num_episodes, len(factors)))
    ended = np.zeros(num_episodes, bool)
    for step in roll_out(task, policy, num_envs=num_envs, max_steps=max_steps, seed=seed, make_envs=make_envs):
        counts = step.live & (step.episode < num_episodes)
        rows = step.episode[counts]
        returns[rows] += factors ** step.step[counts, None] * step.reward[counts, None]
        ended[rows] = (step.terminated | step.truncated)[counts]
        report(int(ended.sum()), num_episodes)
        if ended.all():
            return returns
    raise AssertionError("roll_out never ends by itself")


def simulator_versions(make_envs: MakeEnvs) -> dict[str, str]:
    """The versions that simulated numbers depend on."""
    packages = ("envpool",) if make_envs.__name__ == "envpool_envs" else ("gymnasium", "mujoco")
    return {package: version(package) for package in packages if find_spec(package)}


def write_truth(
    task: Task,
    values: Sequence[Truth],
    num_episodes: int,
    seed: int,
    make_envs: MakeEnvs,
    path: Path,
    policy_name: str | None = None,
) -> None:
    """Writes the true values as a JSON file, with the command that computed them."""
    discounts = "".join(f" --discount {value.discount:g}" for value in values)
    policy = "" if policy_name is None else f" --policy {shlex.quote(policy_name)}"
    record = {
        "task": task.name,
        "values": [asdict(value) for value in values],
        "episodes": num_episodes,
        "seed": seed,
        "versions": simulator_versions(make_envs),
        "command": f"average-dice truth {task.name}{discounts} --episodes {num_episodes} --seed {seed}{policy}",
    }
    write_text_whole(path, json.dumps(record, indent=2) + "\n")
