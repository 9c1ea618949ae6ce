"""Data sets of Minari: an object, its episodes, a folder, or the id of a local data set."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from average_dice.data.dataset import LoggedDataset
from average_dice.data.importers import hdf5
from average_dice.data.importers.rows import as_array, as_flags, as_single, as_vectors, from_rows
from average_dice.data.importers.spaces import Layout, actions_of, check_action_space
from average_dice.errors import DatasetError, first_line, needs_extra

LOG_PROBS = ("behaviour_log_prob", "log_prob")  # in the infos of an episode, the first that is there
FILE, METADATA = "main_data.hdf5", "metadata.json"


def from_minari(
    data: Any, *, observation_space: Any = None, action_space: Any = None, extra: Sequence[str] = ()
) -> LoggedDataset:
    """A log from a `minari.MinariDataset`, its folder, the id of a local one, or episodes (`minari.EpisodeData`).

    - Terminations and truncations are taken as they are; an episode that ends without either is truncated.
    - Observations: Box, Discrete (declared categorical), and Dict or Tuple of these, whose columns follow each other.
      Actions: Box, or Discrete (numbered from 0).
    - `infos["behaviour_log_prob"]` or `infos["log_prob"]` is log μ(a|s). With one entry more than steps, the first is
      that of the reset.
    - `extra`: names of other infos to keep, one number for each step, such as `cost`.
    - `observation_space`, `action_space`: for episodes that come without a data set; else those of the data set.

    Nothing is downloaded: `minari download ID` does.

    >>> log = from_minari("D4RL/pen/human-v2")  # doctest: +SKIP
    """
    if isinstance(data, str | Path):
        data = _opened(data)
    observation_space = getattr(data, "observation_space", None) if observation_space is None else observation_space
    action_space = getattr(data, "action_space", None) if action_space is None else action_space
    layout = None if observation_space is None else Layout.of(observation_space)
    episodes = []
    for episode in _episodes(data):
        try:
            episodes.append(_rows(episode, layout, action_space, extra))
        except DatasetError as error:
            raise DatasetError(*(f"episode {len(episodes)}: {text}" for text in error.problems)) from None
    if not episodes:
        raise DatasetError("the data set has no episode. Check how it was written.")
    _check_same(episodes)
    names = [name for name, values in episodes[0].items() if values is not None]
    columns = {name: np.concatenate([episode[name] for episode in episodes]) for name in names}
    codes = columns.pop("is_code")[0]
    others = {name: columns.pop(f"infos {name}") for name in extra}
    return from_rows(
        **columns,
        metadata=_metadata(data),
        categorical=tuple(np.flatnonzero(codes).tolist()),
        names=None if layout is None else layout.names,
        extra=others,
    )


def _rows(episode: Any, layout: Layout | None, action_space: Any, extra: Sequence[str]) -> dict[str, Any]:
    """The rows of one episode; `known` is false where there is no observation after the last step."""
    reward = as_single("rewards", episode.rewards)
    num_rows = len(reward)
    if num_rows == 0:
        raise DatasetError("it has no step. Remove it.")
    observations, codes = _observations(episode.observations, layout, num_rows)
    terminated, truncated = as_flags("terminations", episode.terminations), as_flags("truncations", episode.truncations)
    if not len(terminated) == len(truncated) == num_rows:
        raise DatasetError(
            f"it has {num_rows} rewards, {len(terminated)} terminations and {len(truncated)} truncations."
        )
    if (early := (terminated | truncated)[:-1]).any():
        raise DatasetError(f"step {int(early.argmax())} is terminated or truncated, but the episode goes on. Split it.")
    actions = _actions(episode.actions, action_space, num_rows)
    truncated[-1] |= not terminated[-1]
    known = np.ones(num_rows, bool)
    known[-1] = len(observations) > num_rows
    after = np.roll(observations, -1, axis=0)[:num_rows]
    infos = episode.infos or {}
    log_prob = next((name for name in LOG_PROBS if name in infos), None)
    return {
        "observation": observations[:num_rows],
        "action": actions,
        "reward": reward,
        "terminated": terminated,
        "truncated": truncated,
        "next_observation": after,
        "known": known,
        "behaviour_log_prob": None if log_prob is None else _info(infos, log_prob, num_rows),
        "is_code": codes[None],
        **{f"infos {name}": _info(infos, name, num_rows) for name in extra},
    }


def _observations(values: Any, layout: Layout | None, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """One row for each step and, usually, one after the last; and which columns hold codes."""
    if layout is None:
        if isinstance(values, Mapping | tuple):
            raise DatasetError("observations are nested. Give observation_space, or the data set instead of episodes.")
        array = as_array("observations", values)
        rows = as_vectors("observations", array)
        codes = np.full(rows.shape[1], array.ndim == 1 and array.dtype.kind in "iu")
    else:
        rows = layout.rows(values, _length(values))
        codes = np.isin(np.arange(rows.shape[1]), layout.categorical)
    if len(rows) not in (num_rows, num_rows + 1):
        raise DatasetError(f"it has {num_rows} rewards and {len(rows)} observations. It needs {num_rows + 1}.")
    return rows, codes


def _length(values: Any) -> int:
    """The number of rows, however they are nested."""
    if isinstance(values, Mapping):
        return _length(next(iter(values.values())))
    return _length(values[0]) if isinstance(values, tuple) else len(values)


def _actions(values: Any, space: Any, num_rows: int) -> np.ndarray:
    if space is not None:
        check_action_space(space)
    array = as_array("actions", values)
    if len(array) != num_rows:
        raise DatasetError(f"it has {num_rows} rewards and {len(array)} actions. It needs one action for each step.")
    if space is not None:
        return actions_of(space, array, num_rows)
    return array if array.ndim == 1 else array.reshape(num_rows, -1)


def _info(infos: Mapping[str, Any], name: str, num_rows: int) -> np.ndarray:
    if name not in infos:
        raise DatasetError(f"its infos have no {name}. Check the name.")
    values = as_single(name, infos[name])
    if len(values) not in (num_rows, num_rows + 1):
        raise DatasetError(f"infos[{name!r}] has {len(values)} entries for {num_rows} steps.")
    return values[-num_rows:]  # the first of one more is of the reset


def _check_same(episodes: list[dict[str, Any]]) -> None:
    """Raises unless all episodes have the same columns."""
    shapes = [
        {name: values if values is None else values.shape[1:] for name, values in episode.items()}
        for episode in episodes
    ]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            name = next(one for one in shape if shape[one] != shapes[0][one])
            raise DatasetError(f"episode {number}: {name} is not of the same shape as in episode 0. Correct it.")


def _episodes(data: Any) -> Iterator[Any]:
    """The episodes. What Minari cannot read ends in a `DatasetError`."""
    if not isinstance(data, Iterable):
        raise DatasetError(f"give a data set of Minari, its folder, its id or its episodes, not {type(data).__name__}.")
    try:
        for episode in data:
            if not hasattr(episode, "terminations"):
                raise DatasetError(f"give episodes of Minari (minari.EpisodeData), not {type(episode).__name__}.")
            yield episode
    except (*hdf5.BROKEN, AssertionError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"the data set is not readable ({first_line(error)}). Write it again.") from None


def _opened(given: str | Path) -> Any:
    """The data set in a folder or of an id, looked at before Minari reads it.

    Without its spaces Minari would make the environment that the metadata names, which executes code.
    """
    with needs_extra("minari"):
        import minari
        from minari.storage import get_dataset_path
    folder = Path(given)
    if not folder.is_dir():
        folder = Path(get_dataset_path(str(given)))
    if not (folder / METADATA).is_file():
        folder = folder / "data"
    if not (folder / METADATA).is_file():
        raise DatasetError(
            f"{given}: neither a folder nor the id of a local data set. Download it: minari download {given}"
        )
    try:
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict) or not {"observation_space", "action_space"} <= metadata.keys():
        raise DatasetError(f"{given}: {METADATA} does not hold the spaces. Write the data set again with Minari.")
    if (folder / FILE).is_file():
        with hdf5.opened(folder / FILE) as file:
            hdf5.check_all(file)
    try:
        return minari.MinariDataset(folder)
    except (*hdf5.BROKEN, AssertionError, NotImplementedError) as error:
        raise DatasetError(f"{given}: not a readable data set of Minari ({first_line(error)}).") from None


def _metadata(data: Any) -> dict[str, Any]:
    name = getattr(data, "id", None)
    spec = getattr(data, "env_spec", None)
    known = {"dataset": name, "environment": getattr(spec, "id", None)}
    return {"source": "Minari", **{key: str(value) for key, value in known.items() if value is not None}}
