"""Finite MDPs with hidden states and exactly known values: a hidden step, a hidden context, a hidden memory.

States that share an observation are identical in the log, but the value of π in the MDP is exact:

    J(π) = (1 − γ) p₀ᵀ (I − γ P)⁻¹ r
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from average_dice.policies import CategoricalPolicy
from average_dice.testing._sampling import draw_categorical
from average_dice.testing.misleading.log import Columns, discounted_returns

# Of mean 0, from the states and the actions of the rows.
RewardNoise = Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class HiddenStateMDP:
    """A finite MDP with states that need not be observed.

    - `transition`: P[s, a, s′]. A row may sum to less than one: the rest is the probability of termination.
    - `target`: the same for states that share an observation.
    - `truncations`: every episode is truncated after one of these numbers of steps, all equally likely.
    - `observed_as`: the index of each state's observation; all different if None.
    - `observations`: by index, and as the last row that of the terminated state; one-hot vectors and zeros if None.
    - `recorded`: the probabilities that the log holds; those of μ if None.
    - `truncated_on_arrival`: the probability that an episode is truncated when it arrives in a state; 0 if None.
    """

    transition: Float[np.ndarray, "state action state"]
    reward: Float[np.ndarray, "state action"]
    start: Float[np.ndarray, " state"]
    target: Float[np.ndarray, "state action"]
    behaviour: Float[np.ndarray, "state action"]
    discount: float
    truncations: tuple[int, ...] = (40,)
    observed_as: Int[np.ndarray, " state"] | None = None
    observations: Float[np.ndarray, "code observation"] | None = None
    recorded: Float[np.ndarray, "state action"] | None = None
    truncated_on_arrival: Float[np.ndarray, " state"] | None = None
    reward_noise: RewardNoise | None = None

    @property
    def truth(self) -> float:
        """J(π)."""
        moves = np.einsum("sa,sat->st", self.target, self.transition)
        earned = np.einsum("sa,sa->s", self.target, self.reward)
        values = np.linalg.solve(np.eye(len(moves)) - self.discount * moves, earned)
        return float((1 - self.discount) * self.start @ values)

    @property
    def observation_index(self) -> Int[np.ndarray, " state"]:
        """Which observation each state has."""
        return np.arange(len(self.start)) if self.observed_as is None else self.observed_as

    @property
    def observation_table(self) -> Float[np.ndarray, "code observation"]:
        """Every observation, and as the last row that of the terminated state."""
        if self.observations is not None:
            return self.observations
        width = int(self.observation_index.max()) + 1
        return np.vstack([np.eye(width), np.zeros(width)])

    @property
    def policy(self) -> CategoricalPolicy:
        """π. It depends on the first columns of the observation only, even if an edit added more."""
        known = self.observation_table[:-1]
        table = np.zeros((len(known), self.target.shape[1]))
        table[self.observation_index] = self.target
        with np.errstate(divide="ignore"):
            logits = np.log(table)

        def of_nearest(observations: np.ndarray) -> np.ndarray:
            first = observations[:, : known.shape[1]]
            distance = ((first[:, None, :] - known) ** 2).sum(axis=2)
            return logits[distance.argmin(axis=1)]

        return CategoricalPolicy(of_nearest)

    def sample(self, num_episodes: int, seed: int, first: Int[np.ndarray, " episode"] | None = None) -> Columns:
        """The columns of a log of μ, sampled step by step for all episodes."""
        generator = np.random.default_rng(seed)
        end = len(self.start)
        outcomes = np.concatenate([self.transition, 1 - self.transition.sum(axis=2, keepdims=True)], axis=2)
        stops = np.append(np.zeros(end) if self.truncated_on_arrival is None else self.truncated_on_arrival, 0.0)
        state = draw_categorical(np.tile(self.start, (num_episodes, 1)), generator) if first is None else first
        episode, length = np.arange(num_episodes), generator.choice(self.truncations, size=num_episodes)
        parts = []
        for step in range(max(self.truncations)):
            action = draw_categorical(self.behaviour[state], generator)
            after = draw_categorical(outcomes[state, action], generator)
            reward = self.reward[state, action]
            if self.reward_noise is not None:
                reward = reward + self.reward_noise(generator, state, action)
            parts.append((episode, np.full_like(episode, step), state, action, reward, after))
            goes_on = (after != end) & (length > step + 1) & (generator.random(len(after)) >= stops[after])
            episode, length, state = episode[goes_on], length[goes_on], after[goes_on]
            if not len(episode):
                break
        episode, steps, state, action, reward, after = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((steps, episode))
        table = self.observation_table
        observations = table[np.append(self.observation_index, len(table) - 1)]
        recorded = self.behaviour if self.recorded is None else self.recorded
        columns = {
            "episode": episode,
            "step": steps,
            "observation": observations[state],
            "action": action,
            "reward": reward,
            "next_observation": observations[after],
            "terminated": after == end,
            "behaviour_log_prob": np.log(recorded[state, action]),
        }
        return {name: values[order] for name, values in columns.items()}

    def play(self, num_episodes: int, seed: int) -> Float[np.ndarray, " episode"]:
        """(1 − γ) Σ γᵗ r_t of episodes of π, until γᵗ is negligible."""
        long = int(np.ceil(np.log(1e-6) / np.log(self.discount)))  # 1e-6: far below the sampling error
        own = replace(self, behaviour=self.target, recorded=self.target, truncated_on_arrival=None, truncations=(long,))
        return discounted_returns(own.sample(num_episodes, seed), self.discount)


def in_every_state(probabilities: ArrayLike, num_states: int) -> Float[np.ndarray, "state action"]:
    """The same row for every state."""
    return np.tile(np.asarray(probabilities, float), (num_states, 1))


def ordinary(
    seed: int, num_states: int = 5, num_actions: int = 2, ends: float = 0.0, discount: float = 0.9
) -> HiddenStateMDP:
    """A random MDP in which nothing is hidden. μ is half π, half uniform."""
    generator = np.random.default_rng(seed)
    target = generator.dirichlet(np.full(num_actions, 3.0), size=num_states)
    return HiddenStateMDP(
        transition=(1 - ends) * generator.dirichlet(np.ones(num_states), size=(num_states, num_actions)),
        reward=generator.normal(size=(num_states, num_actions)),
        start=generator.dirichlet(np.ones(num_states)),
        target=target,
        behaviour=0.5 * target + 0.5 / num_actions,
        discount=discount,
    )


def ordinary_with_rewards_near_one(ends: float = 0.0, **settings: Any) -> HiddenStateMDP:
    """A random MDP in which nothing is hidden, with rewards of about 1."""
    mdp = ordinary(8, ends=ends)
    return replace(mdp, reward=1 + 0.3 * mdp.reward, **settings)


def hidden_step(
    reward: Float[np.ndarray, "step action"], target: ArrayLike, behaviour: ArrayLike, **settings: Any
) -> HiddenStateMDP:
    """The state is the step, and all states look the same. The last state repeats itself."""
    num, num_actions = reward.shape
    transition = np.zeros((num, num_actions, num))
    transition[np.arange(num), :, np.minimum(np.arange(num) + 1, num - 1)] = 1.0
    return HiddenStateMDP(
        transition,
        reward,
        np.eye(num)[0],
        in_every_state(target, num),
        in_every_state(behaviour, num),
        **{"discount": 0.9, "observed_as": np.zeros(num, int), **settings},
    )


def one_state(reward: ArrayLike, target: ArrayLike, behaviour: ArrayLike, **settings: Any) -> HiddenStateMDP:
    """One state, in which actions differ only in their rewards."""
    return hidden_step(np.atleast_2d(np.asarray(reward, float)), target, behaviour, **settings)


def hidden_context(mdps: Sequence[HiddenStateMDP], **settings: Any) -> HiddenStateMDP:
    """One of these MDPs for the whole episode, all equally likely. Their states look like those of the first."""
    num, size = len(mdps), len(mdps[0].start)
    transition = np.zeros((num * size, mdps[0].target.shape[1], num * size))
    for index, mdp in enumerate(mdps):
        part = slice(index * size, (index + 1) * size)
        transition[part, :, part] = mdp.transition
    return replace(
        mdps[0],
        transition=transition,
        reward=np.concatenate([mdp.reward for mdp in mdps]),
        start=np.concatenate([1 / num * mdp.start for mdp in mdps]),
        target=np.concatenate([mdp.target for mdp in mdps]),
        behaviour=np.concatenate([mdp.behaviour for mdp in mdps]),
        observed_as=np.concatenate([mdp.observation_index for mdp in mdps]),
        **settings,
    )


def normal_noise(std: float) -> RewardNoise:
    """N(0, std²) on every reward."""
    return lambda generator, state, action: generator.normal(0, std, len(state))
