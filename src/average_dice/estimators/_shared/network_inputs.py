"""Inputs of networks on states and actions: the logged pairs, and actions of π at next states and at starts.

Inputs are standardised. All discrete actions of π are used, with their probabilities. Of continuous actions a few are
sampled in advance, and each update step picks one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice import memory
from average_dice.features.logged_state_actions import number_of_actions, target_actions
from average_dice.features.scaling import mean_and_std
from average_dice.features.state_action import join_action
from average_dice.problem import Problem


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """Two groups of rows for minibatches: `transitions` (x, after, after_weight, r, γm) and `starts` (x, weight)."""

    transitions: dict[str, Any]
    starts: dict[str, Any]
    unit: float  # rewards are divided by it, so that networks do not depend on the unit of rewards
    encode: Callable[[np.ndarray, np.ndarray], Array]  # (observations, actions) → inputs
    choices: Callable[[np.ndarray], tuple[Array, Array]]  # observations → inputs [row, choice, input], weights

    @staticmethod
    def of(problem: Problem) -> "NetworkInputs":
        """The inputs for a log and a policy."""
        data, encoding = problem.dataset, problem.dataset.encoding
        num_actions = number_of_actions(problem)
        inputs = encoding.encode(data.observation)
        if num_actions is not None:  # every action beside every observation, as one-hot vectors, twice while it is made
            bytes_needed = 2 * 4 * (len(inputs) + data.num_episodes) * num_actions * (inputs.shape[1] + num_actions)
            memory.require(bytes_needed, f"a network with {num_actions} actions on {data.num_transitions:,} rows")
        mean, std = mean_and_std(join_action(inputs, data.action, num_actions))
        if num_actions is not None:  # not standardised: a rare action would be an outlier
            mean[-num_actions:], std[-num_actions:] = 0.0, 1.0
        unit = float(np.abs(data.reward).max()) or 1.0

        def encode(observations: np.ndarray, actions: np.ndarray) -> Array:
            return single((join_action(encoding.encode(observations), actions, num_actions) - mean) / std)

        def choices(observations: np.ndarray) -> tuple[Array, Array]:
            actions, weights = target_actions(problem, observations)
            columns = [encode(observations, actions[:, choice]) for choice in range(weights.shape[1])]
            return jnp.stack(columns, axis=1), single(weights)

        after, after_weight = choices(data.next_observation)
        start, start_weight = choices(problem.start_observation)
        all_of_them = num_actions is not None
        if not all_of_them:  # each sampled action of a start is a separate row
            start, start_weight = start.reshape(-1, 1, start.shape[-1]), jnp.ones((start_weight.size, 1))
        return NetworkInputs(
            {
                "x": encode(data.observation, data.action),
                "after": after,
                "after_weight": after_weight if all_of_them else None,
                "r": single(data.reward / unit),
                "m": single(problem.discount * ~data.terminated),
            },
            {"x": start, "weight": start_weight},
            unit,
            encode,
            choices,
        )


def pick(
    choices: Float[Array, "row choice input"], weights: Float[Array, "row choice"] | None, key: jax.Array
) -> tuple[Float[Array, "row picked input"], Float[Array, "row picked"]]:
    """All actions of π with their weights; of sampled actions, one for each row."""
    if weights is not None:
        return choices, weights
    rows, number, _ = choices.shape
    chosen = jax.random.randint(key, (rows,), 0, number)
    return choices[jnp.arange(rows), chosen][:, None], jnp.ones((rows, 1))


def mean_over(network: Callable[[Array], Array], choices: Array, weights: Array) -> Array:
    """Σ weight · network(choice) over the choices of each row."""
    outputs = jax.vmap(network)(choices.reshape(-1, choices.shape[-1]))  # one long batch: faster than two axes
    return jnp.einsum("rc,rc...->r...", weights, outputs.reshape(*weights.shape, *outputs.shape[1:]))


def single(values: Any) -> Array:
    """In float32."""
    return jnp.asarray(values, jnp.float32)


def nth(trees: Any, copy: int) -> Any:
    """One of the copies that trained at once."""
    return jax.tree.map(lambda leaf: leaf[copy], trees)
