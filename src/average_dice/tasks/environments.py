"""Logs of any policy in any Gymnasium environment, one step after the other.

A policy sees the columns of the log: a Discrete observation is its code, Dict and Tuple are flattened
(`data/importers/spaces.py`). Of a Box, the log has the actions as the policy gave them, unclipped, with their
log-probability; the environment gets them clipped to its bounds. Discrete actions are numbered from 0, whatever the
environment's first number is.

The logs of the shipped tasks come from `tasks/collection.py`, which runs many environments at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.data.importers.spaces import Layout, check_action_space, first_action, is_discrete
from average_dice.errors import NotApplicable, PolicyError, SettingError, needs_extra
from average_dice.policies import as_policy
from average_dice.progress import listening, report
from average_dice.version import __version__


def collect(
    env: Any,
    policy: Any,
    *,
    episodes: int | None = None,
    transitions: int | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> LoggedDataset:
    """Runs the policy in an environment and logs whole episodes, with the log-probabilities of its actions.

    - `env`: a Gymnasium environment, the id of a registered one, or a function that makes one.
    - `policy`: anything that `as_policy` takes, such as a Stable-Baselines3 model. Where it has no density, as a
      deterministic policy over continuous actions, the log has no behaviour_log_prob.
    - `episodes`: how many; or `transitions`: episodes until there are at least that many.
    - `max_steps`: truncate episodes after this many steps, besides the environment's own limit. Time limits are
      truncation, never termination.
    - `seed`: of the environment and of the actions. The same seed gives the same log.

    >>> log = collect("CartPole-v1", policy, episodes=100)  # doctest: +SKIP
    """
    if (episodes is None) == (transitions is None):
        raise SettingError("give either episodes or transitions: how much to log.")
    for name, number in (("episodes", episodes), ("transitions", transitions), ("max_steps", max_steps)):
        if number is not None and number < 1:
            raise SettingError(f"{name} must be at least 1, not {number}.")
    policy = as_policy(policy)
    with _made(env) as made, _shown() if progress else nullcontext():
        layout = Layout.of(made.observation_space)
        actions = _Actions.of(made.action_space)
        rows = _Rows()
        environment_seed, action_seed = np.random.SeedSequence(seed).generate_state(2)
        generator = np.random.default_rng(action_seed)
        first: dict[str, Any] = {"seed": int(environment_seed)}  # later resets go on with the same random numbers
        done = 0
        while done < (episodes or 1) if transitions is None else len(rows) < transitions:
            observation, _ = made.reset(**first)
            first, before = {}, layout.rows(observation, 1)
            step, ended = 0, False
            while not ended:
                action = actions.checked(policy.sample(before, generator=generator))
                observation, reward, terminated, truncated, _ = made.step(actions.for_environment(action))
                after = layout.rows(observation, 1)
                truncated = bool(truncated) or step + 1 == max_steps
                rows.add(done, step, before, action, float(reward), after, bool(terminated), truncated)
                before, step, ended = after, step + 1, bool(terminated) or truncated
                if transitions is not None:
                    report(min(len(rows), transitions), transitions)
            done += 1
            if episodes is not None:
                report(done, episodes)
        return rows.log(policy, layout, _described(made, seed, max_steps))


@contextmanager
def _made(env: Any) -> Iterator[Any]:
    """The environment. One that is made here is closed at the end; one that was given stays open."""
    with needs_extra("simulate"):
        import gymnasium
    if isinstance(env, gymnasium.Env):
        yield env
        return
    if not isinstance(env, str) and not callable(env):
        raise SettingError(
            f"give a Gymnasium environment, its id, or a function that makes one, not a {type(env).__name__}. "
            "Of a vector environment, give one of its environments."
        )
    try:
        made = gymnasium.make(env) if isinstance(env, str) else env()
    except gymnasium.error.Error as error:
        raise SettingError(f"{env}: Gymnasium cannot make it ({error}). Check the id, or import its package.") from None
    if not isinstance(made, gymnasium.Env):
        raise SettingError(f"the function made a {type(made).__name__}, not a Gymnasium environment.")
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True)
class _Actions:
    """The action space: what the policy must give, and what the environment gets."""

    space: Any
    discrete: bool

    @staticmethod
    def of(space: Any) -> "_Actions":
        check_action_space(space)
        return _Actions(space, is_discrete(space))

    def checked(self, action: np.ndarray) -> np.ndarray:
        """The policy's action for one row, or an error if the environment has other actions."""
        action = np.asarray(action)
        if self.discrete:
            if action.shape != (1,) or action.dtype.kind not in "iu":
                raise PolicyError(f"the policy's action is {_kind(action)}, {self.space} takes one integer.")
            if not 0 <= action[0] < self.space.n:
                raise PolicyError(f"the policy chose action {action[0]}, the environment has 0 to {self.space.n - 1}.")
            return action.astype(np.int64)
        size = int(np.prod(self.space.shape))
        if action.shape != (1, size) or action.dtype.kind != "f":
            raise PolicyError(f"the policy's action is {_kind(action)}, {self.space} takes {size} floats.")
        return action.astype(np.float64)

    def for_environment(self, action: np.ndarray) -> Any:
        if self.discrete:
            return int(action[0]) + first_action(self.space)
        shaped = action[0].reshape(self.space.shape)
        return np.clip(shaped, self.space.low, self.space.high).astype(self.space.dtype)


class _Rows:
    """Rows of the log, one after the other."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, *row: Any) -> None:
        self.rows.append(row)

    def log(self, policy: Any, layout: Layout, metadata: dict[str, Any]) -> LoggedDataset:
        episode, step, before, action, reward, after, terminated, truncated = zip(*self.rows, strict=True)
        observation, actions = np.concatenate(before), np.concatenate(action)
        try:
            log_prob = policy.log_prob(observation, actions)
        except NotApplicable:  # a deterministic policy over continuous actions
            log_prob = None
        return LoggedDataset.from_arrays(
            episode=np.array(episode),
            step=np.array(step),
            observation=observation,
            action=actions,
            reward=np.array(reward),
            next_observation=np.concatenate(after),
            terminated=np.array(terminated),
            truncated=np.array(truncated),
            behaviour_log_prob=log_prob,
            metadata=metadata,
            categorical=layout.categorical,
            names=layout.names,
        )


def _described(env: Any, seed: int, max_steps: int | None) -> dict[str, Any]:
    spec = getattr(env, "spec", None)
    return {
        "environment": type(env.unwrapped).__name__ if spec is None else spec.id,
        "seed": seed,
        "max_steps": max_steps,
        "versions": {"average-dice": __version__, "gymnasium": version("gymnasium")},
    }


@contextmanager
def _shown() -> Iterator[None]:
    """Within this context, progress is shown by a bar."""
    from rich.progress import Progress

    with Progress(transient=True) as bar:
        task = bar.add_task("collecting", total=None)
        with listening(lambda done, total: bar.update(task, completed=done, total=total)):
            yield


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}"
