"""The protocol: everything that estimators need of a policy.

Any object with these three methods is a policy; nothing needs to be inherited. Observations come as
``[row, observation]`` in float64; actions as ``[row]`` integers (discrete) or ``[row, action]`` floats (continuous).
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

Observations = Float[np.ndarray, "row observation"]
Actions = Int[np.ndarray, " row"] | Float[np.ndarray, "row action"]
WeightedActions = tuple[
    Int[np.ndarray, "row draw"] | Float[np.ndarray, "row draw action"], Float[np.ndarray, "row draw"]
]


@runtime_checkable
class Policy(Protocol):
    """A policy π. Where it has no density, as a deterministic one, `log_prob` raises `NotApplicable`."""

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log π(a|s) for each row, in float64; −∞ where π never takes the action."""
        ...

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One action for each row."""
        ...

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Actions and weights with Σ weight · f(s, action) ≈ E_π[f(s, a)] for each row.

        Discrete: every action with its probability; the sum is exact. Continuous: `num_draws` sampled actions of weight
        1/num_draws, in pairs of opposite noise; of a deterministic policy its one action, with weight 1. Rows are
        sampled independently, so that the error of a mean over rows falls with their number. (Noise shared by all rows
        would not average out.)
        """
        ...


def mean_over_actions(
    policy: Policy,
    function: Callable[[Observations, Actions], Float[np.ndarray, " row"]],
    observations: Observations,
    *,
    num_draws: int = 16,  # eight pairs: more are more precise in each row, and cost as much more
    generator: np.random.Generator,
) -> Float[np.ndarray, " row"]:
    """E_π[f(s, a)] for each row, for a function of (observations, actions), discrete or continuous."""
    actions, weights = policy.weighted_actions(observations, num_draws=num_draws, generator=generator)
    columns = [function(observations, actions[:, draw]) for draw in range(weights.shape[1])]
    return np.einsum("rd,rd->r", weights, np.stack(columns, axis=1))


def short_name(function: Any, outputs: str) -> str:
    """What a policy is made of, for people: `17 inputs, 3 actions` of a network, else the name of the function."""
    if hasattr(function, "num_inputs") and hasattr(function, "num_outputs"):
        return f"{function.num_inputs} inputs, {function.num_outputs} {outputs}"
    if hasattr(function, "__qualname__"):
        return f"function {function.__qualname__.split('.')[-1]}"
    return repr(function) if type(function).__module__.startswith("average_dice") else type(function).__name__
