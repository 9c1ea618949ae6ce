"""A function of observations as a policy: probabilities, logits, actions, a pair (mean, std) or a distribution."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError, SettingError
from average_dice.policies.adapters.distributions import from_distribution
from average_dice.policies.adapters.failing import explained
from average_dice.policies.adapters.frames import as_frame
from average_dice.policies.adapters.log_names import action_codes, num_actions, place_of_state
from average_dice.policies.adapters.outputs import Kind, Output, read_output
from average_dice.policies.base import Observations, Policy
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.conditional_gaussian import ConditionalGaussianPolicy
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.unbound import UnboundPolicy

PROBED_ROWS = 256  # these show what a function returns
SUM_ROUNDING = 1e-5  # of probabilities in float32

Call = Callable[[Observations], Any]


def from_function(
    function: Call, data: LoggedDataset | None, *, output: str | None = None, frame: bool = False
) -> Policy:
    """A function of observations [row, observation], or of a data frame with the log's names if `frame` is true."""
    name = getattr(function, "__name__", type(function).__name__)
    if data is None and (frame or output is None):
        return UnboundPolicy(partial(from_function, function, output=output, frame=frame), f"function {name}")
    if frame and data is not None:
        log = data
        return from_call(lambda observations: function(as_frame(observations, log)), data, name, output=output)
    return from_call(lambda observations: function(np.array(observations)), data, name, output=output)  # writable


def from_call(
    call: Call, data: LoggedDataset | None, source: str, *, output: str | None = None, logits: bool = False
) -> Policy:
    """A policy from a function whose output is read by `read_output`.

    - `output`: what it returns; by default as the log and the first rows suggest.
    - `logits`: whether rows that are not probabilities are logits; if not, they are refused.
    """
    if output is not None and output not in set(Kind) - {Kind.UNKNOWN, Kind.SQUASHED, Kind.DISTRIBUTION}:
        raise SettingError(f"output is probabilities, logits, actions or gaussian, not {output!r}.")
    if data is None:
        if output is None:
            return UnboundPolicy(lambda data: from_call(call, data, source, logits=logits), source)
        if output == Kind.ACTIONS:
            raise PolicyError(f"{source}: whether its actions are discrete is known from the log: as_policy(x, data).")
        return _built(Output(Kind(output)), call, None, source)
    with explained(source, data):
        probed = read_output(call(data.observation[:PROBED_ROWS]))
    kind = Kind(output) if output is not None else _kind(probed, data, source, logits)
    return _built(Output(kind, probed.arrays, probed.low, probed.high, probed.distribution), call, data, source)


def _built(probed: Output, call: Call, data: LoggedDataset | None, source: str) -> Policy:
    match probed.kind:
        case Kind.PROBABILITIES:
            return CategoricalPolicy(LogProbabilities(call, data, source))
        case Kind.LOGITS:
            return CategoricalPolicy(Logits(call, source))
        case Kind.GAUSSIAN | Kind.SQUASHED:
            return ConditionalGaussianPolicy(partial(_moments, call), probed.low, probed.high, source)
        case Kind.DISTRIBUTION:
            return from_distribution(call, probed.distribution, source)
    assert data is not None
    return actions_policy(lambda observations: read_output(call(observations)).arrays[0], data, source)


def _kind(probed: Output, data: LoggedDataset, source: str, logits: bool) -> Kind:
    """What an array is, by the log: for discrete actions, [row] are actions and [row, action] probabilities."""
    if probed.kind is not Kind.UNKNOWN:
        return probed.kind
    (array,) = probed.arrays
    rows = min(PROBED_ROWS, data.num_transitions)
    if array.ndim not in (1, 2) or len(array) != rows:
        raise PolicyError(
            f"{source} returns an array of shape {array.shape} for {rows} observations. It must return one row for "
            "each observation."
        )
    if not data.is_discrete or array.ndim == 1 or (array.shape[1] == 1 and array.dtype.kind not in "f"):
        return Kind.ACTIONS
    if _are_probabilities(array):
        return Kind.PROBABILITIES
    if logits:
        return Kind.LOGITS
    _require_probabilities(array, data.observation[:PROBED_ROWS], data, source)
    return Kind.PROBABILITIES


def _are_probabilities(array: np.ndarray) -> bool:
    return array.dtype.kind in "fiub" and bool(
        (array >= 0).all() and (np.abs(array.sum(axis=1) - 1) < SUM_ROUNDING).all()
    )


def _require_probabilities(
    array: np.ndarray, observations: Observations, data: LoggedDataset | None, source: str
) -> None:
    if array.ndim != 2 or len(array) != len(observations) or array.dtype.kind not in "fiub":
        raise PolicyError(
            f"{source} returns {array.dtype} of shape {array.shape} for {len(observations)} observations, not "
            "probabilities [row, action]."
        )
    sums = array.sum(axis=1)
    wrong = ~((array >= 0).all(axis=1) & (np.abs(sums - 1) < SUM_ROUNDING))
    if wrong.any():
        row = int(wrong.argmax())
        place = f"row {row}" if data is None else place_of_state(observations[row], data)
        found = f"sum to {sums[row]:.6g}" if (array[row] >= 0).all() else f"have the number {array[row].min():.6g}"
        raise PolicyError(
            f"{place}: the probabilities of {source} {found}. They must be at least 0 and sum to 1; for unnormalised "
            "log-probabilities give output='logits'."
        )


@dataclass(frozen=True, eq=False, repr=False)
class LogProbabilities:
    """The logarithms of the probabilities that a function returns, checked."""

    call: Call
    data: LoggedDataset | None
    source: str

    def __call__(self, observations: Observations) -> np.ndarray:
        (array,) = read_output(self.call(observations)).arrays
        _require_probabilities(array, observations, self.data, self.source)
        with np.errstate(divide="ignore"):
            return np.log(array.astype(np.float64))

    def __repr__(self) -> str:
        return self.source


@dataclass(frozen=True, eq=False, repr=False)
class Logits:
    """The logits that a function returns."""

    call: Call
    source: str

    def __call__(self, observations: Observations) -> np.ndarray:
        (array,) = read_output(self.call(observations)).arrays
        return array.astype(np.float64)

    def __repr__(self) -> str:
        return self.source


def _moments(call: Call, observations: Observations) -> tuple[np.ndarray, np.ndarray]:
    found = read_output(call(observations))
    if len(found.arrays) != 2:
        raise PolicyError("the policy does not return a pair (mean, std).")
    mean, std = found.arrays
    return mean.astype(np.float64), std.astype(np.float64)


def actions_policy(call: Call, data: LoggedDataset, source: str) -> DeterministicPolicy:
    """A deterministic policy: continuous, or discrete by names or numbers, as the log is."""
    if not data.is_discrete:
        width = data.action.shape[1]
        return DeterministicPolicy(Named(lambda observations: _continuous(call(observations), width, source), source))
    with explained(source, data):
        taken = _discrete(call(data.observation), data, source)
    return DeterministicPolicy(
        Named(lambda observations: _discrete(call(observations), data, source), source),
        num_actions=max(num_actions(data), int(taken.max()) + 1),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Named:
    """A function with a short name for people."""

    function: Call
    name: str

    def __call__(self, observations: Observations) -> Any:
        return self.function(observations)

    def __repr__(self) -> str:
        return self.name


def _continuous(found: Any, width: int, source: str) -> np.ndarray:
    array = np.asarray(found)
    array = array[:, None] if array.ndim == 1 else array
    if array.dtype.kind not in "fiu" or array.ndim != 2 or array.shape[1] != width:
        raise PolicyError(
            f"{source} returns {array.dtype} of shape {array.shape}, and the log's actions are rows of {width} "
            "numbers. Give the policy that belongs to this log."
        )
    return array.astype(np.float64)


def _discrete(found: Any, data: LoggedDataset, source: str) -> np.ndarray:
    array = np.asarray(found)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        raise PolicyError(
            f"{source} returns actions of shape {array.shape}. The log's actions are discrete: one a row."
        )
    if array.dtype.kind == "f" and not (array == np.floor(array)).all():
        raise PolicyError(
            f"{source} returns {array[array != np.floor(array)][0]:g}, which is not an action: the log's are discrete."
        )
    labels, rows = np.unique(array, return_inverse=True)
    return action_codes(labels, data, source)[rows.reshape(-1)]
