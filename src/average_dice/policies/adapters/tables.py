"""Tables of probabilities by state: an array, a mapping, a data frame or a CSV file."""

import csv
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.data.validation import SAME_OBSERVATION
from average_dice.errors import PolicyError
from average_dice.policies.adapters.cases import NO_CASE, policy_by_cases, probabilities_of, require_discrete
from average_dice.policies.adapters.log_names import Unlogged, code_of, column_names, column_number, meant_or_known
from average_dice.policies.base import Observations, Policy
from average_dice.policies.unbound import UnboundPolicy

ACTION, PROBABILITY = "action", "probability"
REMEDY = "Add a row for it; rules in a JSON file can have one for all other states."


def from_array(table: Any, data: LoggedDataset | None) -> Policy:
    """An array [state, action]. The observation is the number of the state."""
    array = np.asarray(table, np.float64)
    source = f"the table of shape {array.shape}"
    if data is None:
        return UnboundPolicy(partial(from_array, array), source)
    if array.ndim != 2 or array.size == 0:
        raise PolicyError(f"{source}: give one row for each state, one column for each action.")
    if data.observation.shape[1] != 1:
        raise PolicyError(
            f"{source} needs an observation of one number, the state, and the log has {data.observation.shape[1]}."
        )
    require_discrete(data, source)
    rows = [probabilities_of(row, data, f"state {state} of {source}") for state, row in enumerate(array)]
    return policy_by_cases(partial(_state_number, len(array)), rows, data, source, REMEDY)


def _state_number(num_states: int, observations: Observations) -> np.ndarray:
    state = np.rint(observations[:, 0])
    known = (np.abs(state - observations[:, 0]) < SAME_OBSERVATION) & (state >= 0) & (state < num_states)
    return np.where(known, state, NO_CASE).astype(np.int64)


def from_mapping(table: Mapping[Any, Any], data: LoggedDataset | None) -> Policy:
    """{state: {action: probability}}. A state is a name or number, or a tuple of them, one for each column."""
    source = f"the table of {len(table)} states"
    if data is None:
        return UnboundPolicy(partial(from_mapping, table), source)
    require_discrete(data, source)
    if not table:
        raise PolicyError("the table of states is empty.")
    width, states, rows, unlogged = data.observation.shape[1], [], [], Unlogged()
    for state, given in table.items():
        values = state if isinstance(state, tuple) else (state,)
        if len(values) != width:
            raise PolicyError(f"{source}: the state {state!r} has {len(values)} values, an observation has {width}.")
        states.append([code_of(value, column, data, source, unlogged) for column, value in enumerate(values)])
        rows.append(probabilities_of(given, data, f"state {state!r}"))
    return _by_states(np.array(states), list(range(width)), rows, data, source, unlogged)


def from_frame(frame: Any, data: LoggedDataset | None) -> Policy:
    """A data frame with the columns of a CSV file."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    columns = {name: [_plain(value) for value in frame[name]] for name in names}
    return from_columns(columns, data, source="the data frame")


def _plain(value: Any) -> Any:
    return value.as_py() if hasattr(value, "as_py") else value


def read_csv(path: Path) -> UnboundPolicy:
    """The policy in a CSV file, to be bound to a log."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PolicyError(f"{path}: not a readable CSV file ({error}).") from None
    if len(lines) < 2:
        raise PolicyError(f"{path}: it needs a line of names, and at least one line of values.")
    names = [name.strip() for name in lines[0]]
    if len(set(names)) < len(names):
        raise PolicyError(f"{path}: two columns have the same name.")
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            raise PolicyError(f"{path}: line {number} has {len(line)} values for {len(names)} columns.")
    columns = {name: [line[place].strip() for line in lines[1:]] for place, name in enumerate(names)}
    return UnboundPolicy(partial(from_columns, columns, source=str(path)), str(path))


def from_columns(columns: Mapping[str, list[Any]], data: LoggedDataset | None, *, source: str) -> Policy:
    """Columns of states, named as in the log, and `action`, perhaps with `probability`, or `p(…)` for each action."""
    if data is None:
        return UnboundPolicy(partial(from_columns, columns, source=source), source)
    require_discrete(data, source)
    by_action = {name[2:-1]: name for name in columns if name.startswith("p(") and name.endswith(")")}
    if (ACTION in columns) == bool(by_action):
        raise PolicyError(
            f"{source}: it must have either a column {ACTION!r} (and perhaps {PROBABILITY!r}) or a column 'p(…)' for "
            "each action."
        )
    observed = [name for name in columns if name not in (ACTION, PROBABILITY, *by_action.values())]
    if not observed:
        names = column_names(data)
        raise PolicyError(f"{source}: it has no column of the state.{meant_or_known('', names)}")
    numbers = [column_number(name, data, source) for name in observed]
    lines = list(zip(*(columns[name] for name in observed), strict=True))
    unlogged = Unlogged()
    states = [
        tuple(
            code_of(value, number, data, f"{source}, row {row}", unlogged)
            for value, number in zip(line, numbers, strict=True)
        )
        for row, line in enumerate(lines, start=1)
    ]
    given: dict[tuple[float, ...], dict[str, Any]] = {}
    for row, state in enumerate(states):
        if by_action:
            here = {action: columns[name][row] for action, name in by_action.items()}
        else:
            here = {str(columns[ACTION][row]): columns.get(PROBABILITY, [1.0] * len(states))[row]}
        before = given.setdefault(state, {})
        if before and (set(before) & set(here) or PROBABILITY not in columns):
            raise PolicyError(
                f"{source}, row {row + 1}: the same state {', '.join(map(str, lines[row]))} a second time."
            )
        before |= here
    first = {state: row for row, state in reversed(list(enumerate(states, start=1)))}
    rows = [probabilities_of(one, data, f"{source}, state of row {first[state]}") for state, one in given.items()]
    return _by_states(np.array(list(given)), numbers, rows, data, source, unlogged)


def _by_states(
    states: np.ndarray,
    columns: list[int],
    rows: list[np.ndarray],
    data: LoggedDataset,
    source: str,
    unlogged: Unlogged,
) -> Policy:
    """Looks states up exactly, and then to the rounding that a log allows between a row and the next."""
    places = {state.tobytes(): place for place, state in enumerate(states + 0.0)}
    if len(places) < len(states):
        raise PolicyError(f"{source} has a state twice.")

    def case_of(observations: Observations) -> np.ndarray:
        wanted = np.ascontiguousarray(observations[:, columns]) + 0.0
        found = np.array([places.get(row.tobytes(), NO_CASE) for row in wanted], np.int64)
        missing = np.flatnonzero(found == NO_CASE)
        if len(missing):
            different, back = np.unique(wanted[missing], axis=0, return_inverse=True)
            found[missing] = np.array([_nearest(state, states) for state in different])[back.reshape(-1)]
        return found

    return policy_by_cases(case_of, rows, data, source, REMEDY, unlogged.notes)


def _nearest(state: np.ndarray, states: np.ndarray) -> int:
    distance = np.abs(states - state) / (1 + np.abs(states))
    near = int(distance.max(axis=1).argmin())
    return near if distance[near].max() <= SAME_OBSERVATION else NO_CASE
