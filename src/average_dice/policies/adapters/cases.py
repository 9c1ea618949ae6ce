"""Policies by cases: a function to the case of each state, and the probabilities of the actions in each case.

Tables of states and rules are of this form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.policies.adapters.log_names import action_codes, num_actions, place_of_state, shown_state
from average_dice.policies.base import Observations
from average_dice.policies.categorical import CategoricalPolicy

NO_CASE = -1
SUM_ROUNDING = 1e-6  # of probabilities written in decimals, such as three times 0.333333


def require_discrete(data: LoggedDataset, source: str) -> None:
    """Raises if the log's actions are continuous."""
    if not data.is_discrete:
        raise PolicyError(f"{source}: probabilities by state need discrete actions, and the log's are continuous.")


def probabilities_of(given: Any, data: LoggedDataset, where: str) -> Float[np.ndarray, " choice"]:
    """From {action: probability}, from a list with a probability for each action, or from one action."""
    size = num_actions(data)
    if isinstance(given, Mapping):
        codes = action_codes(list(given), data, where)
        numbers = _numbers(list(given.values()), where)
        size = max(size, int(codes.max(initial=0)) + 1)
        if len(set(codes.tolist())) < len(codes):
            raise PolicyError(f"{where} has an action twice.")
        found = np.zeros(size)
        found[codes] = numbers
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        found = _numbers(given, where)
    else:
        (code,) = action_codes([given], data, where)
        found = np.zeros(max(size, int(code) + 1))
        found[code] = 1.0
    if not (found >= 0).all() or abs(found.sum() - 1) > SUM_ROUNDING:
        raise PolicyError(
            f"{where}: probabilities must be at least 0 and sum to 1, and these sum to {found.sum():.6g}."
        )
    return found / found.sum()


def _numbers(given: Any, where: str) -> np.ndarray:
    try:
        return np.array([float(one) for one in given])
    except (TypeError, ValueError):
        raise PolicyError(f"{where}: probabilities must be numbers.") from None


@dataclass(frozen=True, eq=False, repr=False)
class Cases:
    """log π(·|s) by the case of s. A state without a case raises, unless it is one after which an episode is over."""

    case_of: Callable[[Observations], Int[np.ndarray, " row"]]
    log_probabilities: Float[np.ndarray, "case choice"]
    data: LoggedDataset
    source: str
    is_final: Callable[[Observations], np.ndarray]
    remedy: str
    notes: tuple[str, ...] = ()

    def __call__(self, observations: Observations) -> Float[np.ndarray, "row choice"]:
        case = self.case_of(observations)
        missing = case == NO_CASE
        if missing.any():
            strange = missing & ~self.is_final(observations)
            if strange.any():
                state, more = observations[int(strange.argmax())], int(strange.sum()) - 1
                others = f" ({more:,} more like it)" if more else ""
                place, shown = place_of_state(state, self.data), shown_state(state, self.data)
                raise PolicyError(f"{place}: no case of {self.source} applies to {shown}.{others} {self.remedy}")
        everywhere = np.zeros(self.log_probabilities.shape[1])  # what π does after the end does not count
        return np.where(missing[:, None], everywhere, self.log_probabilities[case])

    def __repr__(self) -> str:
        cases, choices = self.log_probabilities.shape
        return f"{self.source}: {cases} cases, {choices} actions"


def policy_by_cases(
    case_of: Callable[[Observations], Int[np.ndarray, " row"]],
    probabilities: Sequence[np.ndarray],
    data: LoggedDataset,
    source: str,
    remedy: str,
    notes: Sequence[str] = (),
) -> CategoricalPolicy:
    """The policy, after a check that every state of the log that matters has a case. `remedy`: where one has none."""
    size = max(len(one) for one in probabilities)
    padded = np.array([np.pad(one, (0, size - len(one))) for one in probabilities])
    reached = np.concatenate([data.observation, data.next_observation[~data.terminated]])
    final = {row.tobytes() for row in data.next_observation[data.terminated] + 0.0}
    final -= {row.tobytes() for row in reached + 0.0}
    with np.errstate(divide="ignore"):
        cases = Cases(
            case_of,
            np.log(padded),
            data,
            source,
            lambda observations: np.array([row.tobytes() in final for row in observations + 0.0], bool),
            remedy,
            tuple(notes),
        )
    cases(reached)
    return CategoricalPolicy(cases)
