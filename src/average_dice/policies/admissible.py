"""Admissible actions: π gives probability zero to the actions that the log's mask forbids.

A policy with more weight on a forbidden action than rounding explains is refused. Rounding, such as that of a softmax
in float32, is set to zero, and the other weights are divided by their sum.

The mask belongs to a row's state. The next state of a row has the mask of the next row of the episode; that of an
episode's last row has none. π depends on the observation alone, so an action that is forbidden in one row is never
taken in another row with the same observation.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.data import LoggedDataset
from average_dice.data.validation import PROBABILITY_ROUNDING
from average_dice.errors import PolicyError
from average_dice.policies.base import Observations, Policy
from average_dice.policies.categorical import CategoricalPolicy

Mask = Bool[np.ndarray, "row choice"]


@dataclass(frozen=True, eq=False)
class ForbiddenActions:
    """The mask of each observation of a log."""

    masks: dict[bytes, Bool[np.ndarray, " choice"]]
    num_actions: int

    @staticmethod
    def of(
        data: LoggedDataset, mask: Mask, actions: Int[np.ndarray, "row draw"], weights: Float[np.ndarray, "row draw"]
    ) -> "ForbiddenActions | None":
        """Checks π's weights in the rows of the log. None if all weights of forbidden actions are zero already."""
        num_actions = mask.shape[1]
        if (found := int(actions.max()) + 1) != num_actions:
            raise PolicyError(
                f"the policy has actions 0 to {found - 1}, action_mask has actions 0 to {num_actions - 1}. "
                "Give the policy that belongs to this log, or correct the mask."
            )
        on_forbidden = np.where(np.take_along_axis(mask, actions, axis=1), 0.0, weights)
        wrong = (on_forbidden > PROBABILITY_ROUNDING).any(axis=1)
        if wrong.any():
            row, number = int(wrong.argmax()), int(wrong.sum())
            draw = int(on_forbidden[row].argmax())
            raise PolicyError(
                f"{data.place(row)}: the policy takes action {data.names.action(int(actions[row, draw]))} "
                f"with probability {on_forbidden[row, draw]:.3g}, but action_mask forbids it. In all, it takes "
                f"forbidden actions in {number:,} of {data.num_transitions:,} rows. Give them probability 0 in the "
                "policy, for example by logits of −inf, or correct the mask."
            )
        return ForbiddenActions(_by_observation(data, mask), num_actions) if on_forbidden.any() else None

    def without(
        self, observations: Observations, actions: Int[np.ndarray, "row draw"], weights: Float[np.ndarray, "row draw"]
    ) -> Float[np.ndarray, "row draw"]:
        """The weights, zero where the action is forbidden, with a sum of one in every row of a state in the log."""
        everything = np.ones(self.num_actions, bool)
        mask = np.array([self.masks.get(name, everything) for name in _names(observations)])
        forbidden = ~np.take_along_axis(mask, actions, axis=1)
        kept = np.where(forbidden, 0.0, weights)
        return np.where(forbidden.any(axis=1, keepdims=True), kept / kept.sum(axis=1, keepdims=True), weights)


def admissible(policy: Policy, data: LoggedDataset | None) -> Policy:
    """The policy among admissible actions: at each state of the log, forbidden actions get probability 0, and the other
    probabilities are divided by their sum. Without a mask, and at other states, it is the same.

    Raises a `PolicyError` where the policy takes forbidden actions only.
    """
    if data is None:
        raise PolicyError("the mask is the log's: give it, as_policy(policy, data, mask=True).")
    if data.action_mask is None:
        return policy
    mask = data.action_mask
    found = CategoricalPolicy(MaskedLogits(policy, ForbiddenActions(_by_observation(data, mask), mask.shape[1]), data))
    found.log_probabilities(data.observation)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class MaskedLogits:
    """log π(·|s), −∞ for forbidden actions; `CategoricalPolicy` divides by the sum."""

    policy: Policy
    forbidden: ForbiddenActions
    data: LoggedDataset

    def __call__(self, observations: Observations) -> Float[np.ndarray, "row choice"]:
        actions, weights = self.policy.weighted_actions(observations, num_draws=1, generator=np.random.default_rng(0))
        num_actions = self.forbidden.num_actions
        if weights.shape[1] != num_actions:
            raise PolicyError(f"the policy has {weights.shape[1]} actions, action_mask has {num_actions}. Correct one.")
        everything = np.ones(num_actions, bool)
        allowed = np.array([self.forbidden.masks.get(name, everything) for name in _names(observations)])
        kept = np.where(np.take_along_axis(allowed, actions, axis=1), weights, 0.0)
        wrong = kept.sum(axis=1) <= 0
        if wrong.any():
            rows = np.flatnonzero((self.data.observation == observations[int(wrong.argmax())]).all(axis=1))
            place = self.data.place(int(rows[0])) if len(rows) else "a next state"
            raise PolicyError(
                f"{place}: the policy takes only actions that action_mask forbids, {int(wrong.sum()):,} such rows in "
                "all. Give an allowed action a probability, or correct the mask."
            )
        with np.errstate(divide="ignore"):
            return np.log(kept)

    def __repr__(self) -> str:
        return f"{self.policy!r} among admissible actions"


def _by_observation(data: LoggedDataset, mask: Mask) -> dict[bytes, Bool[np.ndarray, " choice"]]:
    """The actions that every row with this state allows; `next_observation` may differ from it by rounding."""
    before = np.flatnonzero(data.step[1:] > 0)  # rows with a next row in the episode
    observations = np.concatenate([data.observation, data.next_observation[before]])
    masks: dict[bytes, Bool[np.ndarray, " choice"]] = {}
    for name, allowed in zip(_names(observations), np.concatenate([mask, mask[before + 1]]), strict=True):
        masks[name] = masks[name] & allowed if name in masks else allowed
    return masks


def _names(observations: Observations) -> Iterator[bytes]:
    """Equal observations have equal names; 0.0 turns −0.0 into 0.0."""
    return (row.tobytes() for row in np.asarray(observations, np.float64) + 0.0)
