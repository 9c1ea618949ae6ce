"""LoggedDataset: whole episodes in flat columns, sorted, checked, without padding."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.data.action_features import as_action_features
from average_dice.data.categories import advice, as_categorical, check_categorical, looks_categorical
from average_dice.data.columns import OPTIONAL, REQUIRED, as_columns
from average_dice.data.encoding import Encoding
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.extra import as_extra
from average_dice.data.names import EPISODE_NAME, Names
from average_dice.data.validation import check, place_of
from average_dice.errors import DatasetError, SettingError, did_you_mean


@dataclass(frozen=True, eq=False, kw_only=True)
class LoggedDataset:
    """Logged transitions of a behaviour policy μ, one row for each transition.

    Rows may be given in any order; they are stored sorted by episode and step. Every LoggedDataset is valid: invalid
    input raises a `DatasetError` that names the row and the remedy. The arrays are read-only.

    - `terminated`: the environment ended the episode, and every later reward is zero.
    - `truncated`: recording stopped, but the episode would have continued. If both flags are set, it is terminated.
    - `behaviour_log_prob`: log μ(a|s) of the logged action (a density for continuous actions); None if unknown.
    - `target_log_prob`: log π(a|s) of the logged action, if the log has it; −∞ where π never takes that action.
    - `action_mask`: which discrete actions are allowed in each row, one flag for each action; None if all of them are.
    - `metadata`: where the log comes from; JSON values, not part of the content hash.
    - `categorical`: indices of observation columns whose numbers are codes of categories.
    - `action_features`: numbers that describe the discrete actions, one row for each; None if there are none.
    - `names`: what columns, actions and codes are called.
    - `estimated_behaviour`: how `behaviour_log_prob` was estimated; None if it was recorded, or is unknown.
    - `extra`: other columns by name, numbers or texts, such as a second reward or the site of a patient; not part of
      the content hash. `episode_name`, if there is one, is the user's own identifier of the episode.
    """

    episode: Int[np.ndarray, " transition"]
    step: Int[np.ndarray, " transition"]
    observation: Float[np.ndarray, "transition observation"]
    action: Int[np.ndarray, " transition"] | Float[np.ndarray, "transition action"]
    reward: Float[np.ndarray, " transition"]
    next_observation: Float[np.ndarray, "transition observation"]
    terminated: Bool[np.ndarray, " transition"]
    truncated: Bool[np.ndarray, " transition"]
    behaviour_log_prob: Float[np.ndarray, " transition"] | None = None
    target_log_prob: Float[np.ndarray, " transition"] | None = None
    action_mask: Bool[np.ndarray, "transition choice"] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    categorical: tuple[int, ...] = ()
    action_features: Float[np.ndarray, "choice feature"] | None = None
    names: Names = Names()
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    estimated_behaviour: EstimatedBehaviour | None = None

    def __post_init__(self) -> None:
        try:
            json.dumps(dict(self.metadata), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DatasetError(f"metadata must be names with JSON values: {error}.") from None
        columns = as_columns({name: getattr(self, name) for name in (*REQUIRED, *OPTIONAL)})
        order = np.lexsort((columns["step"], columns["episode"]))
        columns = {name: values[order] for name, values in columns.items()}
        extra = {name: values[order] for name, values in as_extra(self.extra, len(order)).items()}
        check(columns | {name: values for name, values in extra.items() if name == EPISODE_NAME})
        for name, values in columns.items():
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        object.__setattr__(self, "categorical", as_categorical(self.categorical))
        check_categorical(self.categorical, columns)
        if self.action_features is not None:
            features = as_action_features(self.action_features, columns["action"])
            features.flags.writeable = False
            object.__setattr__(self, "action_features", features)
        self.names.check(columns["observation"], columns["action"])
        for values in extra.values():
            values.flags.writeable = False
        object.__setattr__(self, "extra", extra)
        if self.behaviour_log_prob is None:
            object.__setattr__(self, "estimated_behaviour", None)

    @staticmethod
    def from_columns(
        columns: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        *,
        categorical: Sequence[int] = (),
        action_features: Any = None,
        names: Names | None = None,
        extra: Mapping[str, Any] | None = None,
        estimated_behaviour: EstimatedBehaviour | None = None,
    ) -> "LoggedDataset":
        """A log from its columns by name, each an array or a list."""
        given: dict[str, Any] = {**as_columns(columns), "categorical": as_categorical(categorical)}
        if action_features is not None:
            given["action_features"] = as_action_features(action_features, given["action"])
        given["extra"] = as_extra(extra or {}, len(given["episode"]))
        given["estimated_behaviour"] = estimated_behaviour
        return LoggedDataset(**given, metadata=metadata or {}, names=names or Names())

    @staticmethod
    def from_arrays(
        *,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any,
        terminated: Any,
        truncated: Any = None,
        episode: Any = None,
        step: Any = None,
        episode_ends: Any = None,
        behaviour_log_prob: Any = None,
        target_log_prob: Any = None,
        action_mask: Any = None,
        metadata: Mapping[str, Any] | None = None,
        categorical: Sequence[int] = (),
        action_features: Any = None,
        names: Names | None = None,
        extra: Mapping[str, Any] | None = None,
        behaviour_estimated: bool = False,
    ) -> "LoggedDataset":
        """A log from arrays or lists, with an episode number for each row or with the last rows of episodes.

        - `episode`: a number for each row. Without `step`, the rows of an episode must be in order of time.
        - `episode_ends`: instead of `episode`; a boolean for each row, true on the last row of an episode, or the
          positions of these rows. All rows must be in order of time.
        - `truncated`: if left out, an episode that is not terminated is truncated on its last row.
        - `categorical`: indices of observation columns whose numbers are codes of categories.
        - `action_features`: for discrete actions, one row of numbers for each action; similar actions share values.
        - `names`: what columns, actions and codes are called. `extra`: other columns, such as a second reward.
        - `behaviour_estimated`: `behaviour_log_prob` holds your own estimates, not what was recorded.

        >>> log = LoggedDataset.from_arrays(
        ...     observation=[[0.0], [1.0], [0.0]], action=[1, 0, 0], reward=[0.0, 1.0, 0.0],
        ...     next_observation=[[1.0], [0.0], [0.0]], terminated=[False, True, False],
        ...     episode_ends=[1, 2], behaviour_log_prob=[-0.7, -0.7, -0.7])
        >>> log.num_transitions, log.num_episodes
        (3, 2)
        """
        if (episode is None) == (episode_ends is None):
            both = "both are given" if episode is not None else "neither is given"
            raise DatasetError(f"give either episode (one number per row) or episode_ends (the last rows): {both}.")
        if episode is None:
            if step is not None:
                raise DatasetError("step cannot be combined with episode_ends. Give episode and step, or neither.")
            episode = _episodes_from_ends(episode_ends, num_rows=len(reward))
        episode = np.asarray(episode)
        if episode.ndim != 1:
            raise DatasetError(f"episode must be one integer per row, but has shape {episode.shape}.")
        if step is None:
            step = _count_within(episode)
        if truncated is None:
            truncated = _unterminated_ends(episode, np.asarray(step), np.asarray(terminated))
        columns = {
            "episode": episode,
            "step": step,
            "observation": observation,
            "action": action,
            "reward": reward,
            "next_observation": next_observation,
            "terminated": terminated,
            "truncated": truncated,
            "behaviour_log_prob": behaviour_log_prob,
            "target_log_prob": target_log_prob,
            "action_mask": action_mask,
        }
        return LoggedDataset.from_columns(
            columns,
            metadata,
            categorical=categorical,
            action_features=action_features,
            names=names,
            extra=extra,
            estimated_behaviour=EstimatedBehaviour() if behaviour_estimated else None,
        )

    @staticmethod
    def from_dataframe(frame: Any, **columns: Any) -> "LoggedDataset":
        """A log from a data frame; the same as `average_dice.from_dataframe`, with the same arguments."""
        from average_dice.data.tables import from_dataframe

        return from_dataframe(frame, **columns)

    def __repr__(self) -> str:
        return f"LoggedDataset({self.in_short})"

    @property
    def in_short(self) -> str:
        """Its size in words, such as 4,000 transitions, 40 episodes, 17 observations, 3 discrete actions."""
        if self.is_discrete:
            actions = _counted(len(np.unique(self.action)), "discrete action")
        else:
            actions = _counted(self.action.shape[1], "continuous action")
        numbers = {"transition": self.num_transitions, "episode": self.num_episodes}
        parts = [_counted(number, name) for name, number in numbers.items()]
        return ", ".join([*parts, _counted(self.observation.shape[1], "observation"), actions])

    @property
    def num_transitions(self) -> int:
        """The number of rows."""
        return len(self.episode)

    @property
    def num_episodes(self) -> int:
        """The number of episodes."""
        return len(self.starts)

    @property
    def is_discrete(self) -> bool:
        """Whether actions are integers; continuous ones are rows of floats."""
        return self.action.ndim == 1

    @cached_property
    def is_one_step(self) -> bool:
        """Whether every episode is a single step that terminates, as in a log of a bandit."""
        return bool(self.terminated.all()) and self.num_episodes == self.num_transitions

    @cached_property
    def starts(self) -> Int[np.ndarray, " episode"]:
        """The first row of each episode."""
        return np.flatnonzero(self.step == 0)

    @cached_property
    def lengths(self) -> Int[np.ndarray, " episode"]:
        """The number of transitions of each episode."""
        return np.diff(np.append(self.starts, self.num_transitions))

    @cached_property
    def encoding(self) -> Encoding:
        """How observations become inputs of features and networks; a log of some of the episodes has the same."""
        return Encoding.of(self.categorical, self.observation, self.next_observation)

    @cached_property
    def looks_categorical(self) -> tuple[int, ...]:
        """Undeclared observation columns that may be codes: a few different integers, and no counters."""
        return looks_categorical(self.observation, self.step == 0, self.categorical)

    @property
    def categorical_advice(self) -> str | None:
        """A sentence, without a full stop, about the columns that look categorical; None if there are none."""
        places = self.looks_categorical
        return advice(self.observation, places, self.names.observations) if places else None

    def rows_of(self, chosen: Int[np.ndarray, " choice"]) -> Int[np.ndarray, " row"]:
        """The rows of these episodes, one episode after the other. Episodes are numbered from 0 as in `starts`."""
        lengths = self.lengths[chosen]
        first = np.cumsum(lengths) - lengths
        return np.arange(int(lengths.sum())) + np.repeat(self.starts[chosen] - first, lengths)

    def select_episodes(self, chosen: Int[np.ndarray, " choice"]) -> "LoggedDataset":
        """A log of these episodes, numbered from 0 as in `starts`, in this order. They may repeat."""
        if len(chosen) == 0:
            raise DatasetError("a log needs at least one episode.")
        rows = self.rows_of(chosen)
        every = {name: getattr(self, name) for name in (*REQUIRED, *OPTIONAL)}
        columns = {name: None if column is None else column[rows] for name, column in every.items()}
        columns["episode"] = np.repeat(np.arange(len(chosen)), self.lengths[chosen])
        selected = object.__new__(LoggedDataset)  # sorted and checked already: a bootstrap makes thousands of these
        for name, column in columns.items():
            if column is not None:
                column.flags.writeable = False
            object.__setattr__(selected, name, column)
        for name in ("metadata", "categorical", "action_features", "encoding", "names"):
            object.__setattr__(selected, name, getattr(self, name))
        object.__setattr__(selected, "extra", {name: values[rows] for name, values in self.extra.items()})
        record = self.estimated_behaviour
        object.__setattr__(selected, "estimated_behaviour", None if record is None else record.of_episodes(rows))
        return selected

    def reward_named(self, name: str) -> Float[np.ndarray, " transition"]:
        """An extra column of numbers that is used as a reward; `reward` is the log's own."""
        if name == "reward":
            return self.reward
        known = ("reward", *(one for one, values in self.extra.items() if values.dtype.kind == "f"))
        if name not in self.extra:
            raise SettingError(f"the log has no reward {name}.{did_you_mean(name, known)} It has {', '.join(known)}.")
        if name not in known:
            raise SettingError(f"column {name} holds texts, and a reward is a number. The log has {', '.join(known)}.")
        values: np.ndarray = self.extra[name]
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).argmax())
            raise DatasetError(f"{self.place(row)}: {name} is {values[row]}. A reward must be finite: fill it in.")
        return values

    def with_reward(self, reward: Float[np.ndarray, " transition"]) -> "LoggedDataset":
        """The same log with another reward, one finite number for each row, such as `reward_named("cost")`."""
        found = copy(self)  # sorted and checked already
        object.__setattr__(found, "reward", reward)
        found.__dict__.pop("sha256", None)
        return found

    def with_behaviour(self, log_prob: Float[np.ndarray, " transition"]) -> "LoggedDataset":
        """The same log with other estimates of log μ. Only they are checked: a bootstrap makes many of these."""
        if log_prob.shape != self.reward.shape or np.isnan(log_prob).any():
            raise DatasetError("behaviour_log_prob must be one number for each row.")
        changed = object.__new__(LoggedDataset)
        changed.__dict__.update({name: value for name, value in self.__dict__.items() if name != "sha256"})
        changed.__dict__["behaviour_log_prob"] = log_prob
        return changed

    def up_to(self, horizon: int) -> "LoggedDataset":
        """The log of a process that terminates after `horizon` steps. The step becomes the last observation.

        Values up to a horizon depend on the steps that are left, so the step belongs to the state. It is categorical:
        values need not change evenly from step to step.
        """
        if horizon < 1:
            raise DatasetError(f"the horizon must be at least 1 step, not {horizon}.")
        rows = self.step < horizon
        given = {name: getattr(self, name) for name in (*REQUIRED, *OPTIONAL)}
        columns = {name: values[rows] for name, values in given.items() if values is not None}
        step, ends = columns["step"], columns["step"] == horizon - 1
        columns["observation"] = np.column_stack([columns["observation"], step])
        columns["next_observation"] = np.column_stack([columns["next_observation"], step + 1])
        columns["terminated"] = columns["terminated"] | ends
        columns["truncated"] = columns["truncated"] & ~ends
        observed = self.names.observations
        return replace(
            self,
            **columns,
            categorical=(*self.categorical, self.observation.shape[1]),
            names=replace(self.names, observations=(*observed, "step") if observed else ()),
            extra={name: values[rows] for name, values in self.extra.items()},
            estimated_behaviour=None if self.estimated_behaviour is None else self.estimated_behaviour.of_rows(rows),
        )

    def place(self, row: int) -> str:
        """The episode and step of a row, for messages."""
        return place_of(self.episode, self.step, self.extra.get(EPISODE_NAME), row)

    @cached_property
    def sha256(self) -> str:
        """A hash of the content: the same for the same transitions in any file, format or row order."""
        digest = hashlib.sha256()
        for name in (*REQUIRED, *OPTIONAL):
            if (values := getattr(self, name)) is not None:
                little_endian = values.astype(values.dtype.newbyteorder("<"))
                digest.update(f"{name} {values.dtype.kind} {values.shape}\n".encode())
                digest.update(np.ascontiguousarray(little_endian).tobytes())
        if self.categorical:
            digest.update(f"categorical {self.categorical}\n".encode())
        if self.action_features is not None:
            digest.update(f"action_features {self.action_features.shape}\n".encode())
            digest.update(self.action_features.astype("<f8").tobytes())
        return digest.hexdigest()


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _episodes_from_ends(ends: Any, num_rows: int) -> np.ndarray:
    ends = np.asarray(ends)
    if ends.dtype.kind != "b":
        positions, ends = ends, np.zeros(num_rows, bool)
        if positions.shape == (num_rows,) and num_rows > 1 and np.isin(positions, (0, 1)).all():
            raise DatasetError(
                "episode_ends holds only 0 and 1, like flags. Give booleans, or the positions of the last rows."
            )
        if positions.dtype.kind not in "iu" or positions.ndim != 1:
            raise DatasetError("episode_ends must be a boolean for each row, or the positions of the last rows.")
        if len(positions) and not (positions.min() >= 0 and positions.max() < num_rows):
            raise DatasetError(f"episode_ends must lie between 0 and {num_rows - 1}, the last row.")
        ends[positions] = True
    if ends.shape != (num_rows,):
        raise DatasetError(f"episode_ends has {len(ends)} flags for {num_rows} rows. Give one flag per row.")
    if num_rows and not ends[-1]:
        raise DatasetError("episode_ends must include the last row, because the log ends there.")
    return np.append(0, np.cumsum(ends)[:-1]).astype(np.int64)[:num_rows]


def _count_within(episode: np.ndarray) -> np.ndarray:
    """0, 1, 2, … within each episode, in order of appearance."""
    order = np.argsort(episode, kind="stable")
    ordered = episode[order]
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(episode)]
    position = np.arange(len(episode))
    start = np.maximum.accumulate(np.where(first, position, 0)) if len(episode) else position
    step = np.empty(len(episode), np.int64)
    step[order] = position - start
    return step


def _unterminated_ends(episode: np.ndarray, step: np.ndarray, terminated: np.ndarray) -> np.ndarray:
    """True on the last row of each episode that does not terminate."""
    if not episode.shape == step.shape == terminated.shape:
        return np.zeros(len(episode), bool)  # `as_columns` reports the lengths
    order = np.lexsort((step, episode))
    last = np.zeros(len(episode), bool)
    last[order] = np.append(episode[order][1:] != episode[order][:-1], True)[: len(episode)]
    return last & ~terminated.astype(bool)
