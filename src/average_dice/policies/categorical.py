"""Policies over a finite set of actions: π(a|s) = softmax(logits(s))_a."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice import memory
from average_dice.errors import PolicyError
from average_dice.policies.base import Actions, Observations, WeightedActions, short_name

ROWS_AT_ONCE = 16_384


@dataclass(frozen=True, eq=False)
class CategoricalPolicy:
    """A discrete policy from any function that returns unnormalised log-probabilities.

    `logits` maps observations [row, observation] to [row, action]: a `Network`, or any function of yours. An
    action with a logit of −∞ is never taken.

    >>> table = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> policy = CategoricalPolicy(lambda observations: table[observations[:, 0].astype(int)])
    >>> np.exp(policy.log_prob(np.array([[0.0], [1.0]]), np.array([1, 1]))).round(3).tolist()
    [0.1, 0.8]
    """

    logits: Callable[[Observations], Float[np.ndarray, "row choice"]]

    def log_probabilities(self, observations: Observations) -> Float[np.ndarray, "row choice"]:
        """log π(·|s), one column for each action: logits − log Σ exp logits."""
        logits = np.asarray(self.logits(observations), np.float64)
        if logits.ndim != 2 or len(logits) != len(observations) or logits.shape[1] == 0:
            raise PolicyError(
                f"the policy's logits have shape {logits.shape}. Give one row for each of the {len(observations)} "
                "observations, one column for each action."
            )
        highest = logits.max(axis=1, keepdims=True)
        if np.isnan(logits).any() or not np.isfinite(highest).all():
            raise PolicyError("the policy's logits are NaN, +inf, or −inf for all actions of a state: correct it.")
        shifted = logits - highest
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log π(a|s) of each row."""
        if actions.ndim != 1:
            raise PolicyError(
                "the policy has discrete actions, the log has continuous ones. "
                "Give the policy that belongs to this log."
            )
        found = np.empty(len(actions))
        some = memory.rows_at_once(ROWS_AT_ONCE)  # many rows of many actions take much memory
        for start in range(0, max(len(actions), 1), some):
            rows = slice(start, start + some)
            found[rows] = self._log_prob(observations[rows], actions[rows])
        return found

    def _log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        log_probabilities = self.log_probabilities(observations)
        num_actions = log_probabilities.shape[1]
        if len(actions) and not (actions.min() >= 0 and actions.max() < num_actions):
            raise PolicyError(
                f"the log has action {actions.max() if actions.max() >= num_actions else actions.min()}, "
                f"the policy has actions 0 to {num_actions - 1}. Give the policy that belongs to this log."
            )
        return np.take_along_axis(log_probabilities, actions[:, None], axis=1)[:, 0]

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One action for each row."""
        cumulative = np.exp(self.log_probabilities(observations)).cumsum(axis=1)
        uniform = generator.random((len(observations), 1)) * cumulative[:, -1:]  # below the sum, also after rounding
        return (uniform >= cumulative).sum(axis=1)

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Every action with its probability; nothing is random."""
        probabilities = np.exp(self.log_probabilities(observations))
        actions = np.broadcast_to(np.arange(probabilities.shape[1]), probabilities.shape)
        return actions, probabilities

    def __repr__(self) -> str:
        return f"CategoricalPolicy({short_name(self.logits, 'actions')})"
