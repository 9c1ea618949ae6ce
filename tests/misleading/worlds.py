"""Finite worlds whose answers are known exactly, with hidden states: a clock, a context, a memory.

What a log gets wrong (an `edit`) is done to its columns after sampling.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import average_dice as ad

Columns = dict[str, np.ndarray]
Edit = Callable[[Columns, np.random.Generator], Columns]
Noise = Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]  # of mean 0, from state and action


@dataclass(frozen=True)
class Made:
    """A log, and what it is asked for."""

    dataset: ad.LoggedDataset
    policy: ad.Policy
    discount: float
    truth: float
    world: "World | Line"  # what the truth is the truth of


@dataclass(frozen=True, eq=False)
class World:
    """A finite MDP with hidden states. What is missing from the sum of a transition terminates."""

    transition: np.ndarray  # [state, action, next state]
    reward: np.ndarray  # [state, action]
    start: np.ndarray  # [state]
    target: np.ndarray  # [state, action]; the same for states that look the same
    behaviour: np.ndarray  # [state, action]
    discount: float
    cuts: tuple[int, ...] = (40,)  # the steps after which an episode is truncated, all equally likely
    seen: np.ndarray | None = None  # [state]: the number of its observation; all different if None
    codes: np.ndarray | None = None  # [observation + 1, width], the last one of the end; one-hot and zeros if None
    recorded: np.ndarray | None = None  # [state, action]: the probabilities in the log; those of μ if None
    hazard: np.ndarray | None = None  # [state]: how probably an episode is truncated when it arrives there
    noise: Noise | None = None

    @property
    def truth(self) -> float:
        return float((1 - self.discount) * self.start @ self.values)

    @property
    def values(self) -> np.ndarray:
        """Σ γᵗ E_π[r_t] from each state."""
        moves = np.einsum("sa,sat->st", self.target, self.transition)
        earned = np.einsum("sa,sa->s", self.target, self.reward)
        return np.linalg.solve(np.eye(len(moves)) - self.discount * moves, earned)

    @property
    def symbols(self) -> np.ndarray:
        """[state]"""
        return np.arange(len(self.start)) if self.seen is None else np.asarray(self.seen)

    @property
    def code_table(self) -> np.ndarray:
        if self.codes is not None:
            return self.codes
        width = int(self.symbols.max()) + 1
        return np.vstack([np.eye(width), np.zeros(width)])

    @property
    def policy(self) -> ad.CategoricalPolicy:
        """π, which looks for the nearest code in the first columns of an observation."""
        codes = self.code_table[:-1]
        table = np.zeros((len(codes), self.target.shape[1]))
        table[self.symbols] = self.target
        with np.errstate(divide="ignore"):
            logits = np.log(table)

        def look_up(observations: np.ndarray) -> np.ndarray:
            seen = observations[:, : codes.shape[1]]
            far = ((seen[:, None, :] - codes) ** 2).sum(axis=2)
            return logits[far.argmin(axis=1)]

        return ad.CategoricalPolicy(look_up)

    def sample(self, num_episodes: int, seed: int, first: np.ndarray | None = None) -> Columns:
        """The columns of a log, all episodes in lockstep; `first` are their states at step 0, if not drawn."""
        generator = np.random.default_rng(seed)
        end = len(self.start)
        outcomes = np.concatenate([self.transition, 1 - self.transition.sum(axis=2, keepdims=True)], axis=2)
        recorded = self.behaviour if self.recorded is None else self.recorded
        hazard = np.append(np.zeros(end) if self.hazard is None else self.hazard, 0.0)
        state = _draw(np.tile(self.start, (num_episodes, 1)), generator) if first is None else np.asarray(first)
        episode, cut = np.arange(num_episodes), generator.choice(self.cuts, size=num_episodes)
        parts = []
        for step in range(max(self.cuts)):
            action = _draw(self.behaviour[state], generator)
            after = _draw(outcomes[state, action], generator)
            reward = self.reward[state, action]
            if self.noise is not None:
                reward = reward + self.noise(generator, state, action)
            parts.append((episode, np.full_like(episode, step), state, action, reward, after))
            on = (after != end) & (cut > step + 1) & (generator.random(len(after)) >= hazard[after])
            episode, cut, state = episode[on], cut[on], after[on]
            if not len(episode):
                break
        episode, step, state, action, reward, after = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((step, episode))
        codes = self.code_table[np.append(self.symbols, len(self.code_table) - 1)]
        columns = {
            "episode": episode,
            "step": step,
            "observation": codes[state],
            "action": action,
            "reward": reward,
            "next_observation": codes[after],
            "terminated": after == end,
            "behaviour_log_prob": np.log(recorded[state, action]),
        }
        return {name: values[order] for name, values in columns.items()}

    def play(self, num_episodes: int, seed: int) -> np.ndarray:
        """(1 − γ) Σ γᵗ r_t of episodes of π itself, to where γᵗ is nothing."""
        long = int(np.ceil(np.log(1e-6) / np.log(self.discount)))
        own = replace(self, behaviour=self.target, recorded=self.target, hazard=None, cuts=(long,))
        return returns(own.sample(num_episodes, seed), self.discount)


def _draw(probabilities: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    cumulative = probabilities.cumsum(axis=1)
    return (generator.random((len(probabilities), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)


def returns(columns: Columns, discount: float) -> np.ndarray:
    return (1 - discount) * np.bincount(columns["episode"], discount ** columns["step"] * columns["reward"])


def _log(columns: Columns) -> ad.LoggedDataset:
    return ad.LoggedDataset.from_arrays(**columns)


def made(
    logged: "World | Line",
    num_episodes: int,
    seed: int,
    *,
    edit: Edit | None = None,
    really: "World | Line | None" = None,
    first: np.ndarray | None = None,
    wanted: Callable[[Columns], bool] | None = None,
) -> Made:
    """A log of one world, edited, and the truth of the same or another; drawn anew until it is as `wanted`."""
    for attempt in range(2_000):
        columns = logged.sample(num_episodes, 1_000_000 * (seed + 1) + attempt, first)
        if wanted is None or wanted(columns):
            break
    else:
        raise ValueError("no draw is as wanted")
    if edit is not None:
        columns = edit(columns, np.random.default_rng((seed, 1)))
    really = really or logged
    return Made(_log(columns), really.policy, really.discount, really.truth, really)


def rows(probabilities: object, num_states: int) -> np.ndarray:
    """The same row for every state."""
    return np.tile(np.asarray(probabilities, float), (num_states, 1))


def ordinary(seed: int, num_states: int = 5, num_actions: int = 2, ends: float = 0.0, discount: float = 0.9) -> World:
    """A random MDP in which nothing is hidden, π and μ half alike."""
    generator = np.random.default_rng(seed)
    target = generator.dirichlet(np.full(num_actions, 3.0), size=num_states)
    return World(
        transition=(1 - ends) * generator.dirichlet(np.ones(num_states), size=(num_states, num_actions)),
        reward=generator.normal(size=(num_states, num_actions)),
        start=generator.dirichlet(np.ones(num_states)),
        target=target,
        behaviour=0.5 * target + 0.5 / num_actions,
        discount=discount,
    )


def staged(reward: np.ndarray, target: object, behaviour: object, **more: object) -> World:
    """A hidden clock: the state is the step, the last one stays, and all look the same. reward: [step, action]"""
    num, num_actions = reward.shape
    transition = np.zeros((num, num_actions, num))
    transition[np.arange(num), :, np.minimum(np.arange(num) + 1, num - 1)] = 1.0
    behaviour = np.asarray(behaviour, float)
    settings = {"discount": 0.9, "seen": np.zeros(num, int), **more}
    return World(
        transition,
        reward,
        np.eye(num)[0],
        rows(target, num),
        behaviour if behaviour.ndim == 2 else rows(behaviour, num),
        **settings,
    )


def contexts(worlds: list[World], shares: object = None, **more: object) -> World:
    """A hidden context for the whole episode: these worlds side by side, each looking like the first."""
    num, size = len(worlds), len(worlds[0].start)
    shares = np.full(num, 1 / num) if shares is None else np.asarray(shares)
    transition = np.zeros((num * size, worlds[0].target.shape[1], num * size))
    for one, world in enumerate(worlds):
        part = slice(one * size, (one + 1) * size)
        transition[part, :, part] = world.transition
    return replace(
        worlds[0],
        transition=transition,
        reward=np.concatenate([world.reward for world in worlds]),
        start=np.concatenate([share * world.start for share, world in zip(shares, worlds, strict=True)]),
        target=np.concatenate([world.target for world in worlds]),
        behaviour=np.concatenate([world.behaviour for world in worlds]),
        seen=np.concatenate([world.symbols for world in worlds]),
        **more,
    )


def one_state(reward: object, target: object, behaviour: object, **more: object) -> World:
    """A bandit that goes on for ever."""
    return staged(np.atleast_2d(np.asarray(reward, float)), target, behaviour, **more)


def normal_noise(size: float) -> Noise:
    return lambda generator, state, action: generator.normal(0, size, len(state))
