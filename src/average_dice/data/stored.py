"""What a log file stores besides its columns: metadata, what is declared about the columns, names, estimates.

Each is a JSON text under a key of its own. Files with parts of one log must agree on what they declare.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from average_dice.data.dataset import LoggedDataset
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.names import Names
from average_dice.errors import DatasetError, did_you_mean

METADATA = "average_dice"  # the key of our metadata in a Parquet schema and in an archive

# What is declared about the columns, as JSON under keys of their own.
DECLARED = {"categorical": "average_dice.categorical", "action_features": "average_dice.action_features"}
NAMES = "average_dice.names"
BEHAVIOUR = "average_dice.behaviour"  # how the probabilities of the logged actions were estimated
TEXTS = (METADATA, *DECLARED.values(), NAMES, BEHAVIOUR)


def from_store(stored: Mapping[str, str | bytes]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What is declared, by key, and the metadata, from the texts of a file by their keys."""
    declared: dict[str, Any] = {key: _declared(key, stored[key]) for key in DECLARED.values() if key in stored}
    if NAMES in stored:
        declared[NAMES] = Names.from_json(stored[NAMES])
    if BEHAVIOUR in stored:
        declared[BEHAVIOUR] = EstimatedBehaviour.from_json(stored[BEHAVIOUR])
    return declared, _metadata(stored.get(METADATA, "{}"))


def declarations(
    parts: Sequence[Mapping[str, Any]],
    files: Sequence[Path],
    *,
    categorical: Sequence[int | str] | None,
    action_features: Any,
    behaviour_estimated: bool,
) -> dict[str, Any]:
    """What the files declare together, for `LoggedDataset.from_columns`. What the user gives comes first."""
    names = _agreed("names", [part.get(NAMES) for part in parts], files)
    given = {"categorical": _numbers(categorical, names), "action_features": action_features}
    declared = {
        name: _agreed(name, [part.get(key) for part in parts], files) if given[name] is None else given[name]
        for name, key in DECLARED.items()
    }
    declared["categorical"] = () if declared["categorical"] is None else declared["categorical"]
    estimated = _estimated([part.get(BEHAVIOUR) for part in parts], behaviour_estimated)
    return {"names": names, "estimated_behaviour": estimated, **declared}


def to_store(dataset: LoggedDataset) -> dict[str, str]:
    """The metadata and what is declared, as JSON texts by their keys."""
    stored = {METADATA: json.dumps(dict(dataset.metadata), sort_keys=True)}
    if dataset.categorical:
        stored[DECLARED["categorical"]] = json.dumps(list(dataset.categorical))
    if dataset.action_features is not None:
        stored[DECLARED["action_features"]] = json.dumps(dataset.action_features.tolist())
    if dataset.names != Names():
        stored[NAMES] = dataset.names.to_json()
    if dataset.estimated_behaviour is not None:
        stored[BEHAVIOUR] = json.dumps(dataset.estimated_behaviour.to_dict())
    return stored


def joined_metadata(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The metadata that all parts share, or a list of them."""
    return parts[0] if all(part == parts[0] for part in parts) else {"parts": [dict(part) for part in parts]}


def _metadata(text: str | bytes) -> Mapping[str, Any]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise DatasetError(f"its metadata under {METADATA} is not a JSON object. Correct it, or remove it.")
    return metadata


def _declared(key: str, text: str | bytes) -> list[Any]:
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError):
        declared = None
    if not isinstance(declared, list):
        raise DatasetError(f"its metadata under {key} is not a JSON list. Correct it, or remove it.")
    return declared


def _numbers(categorical: Sequence[int | str] | None, names: Names | None) -> list[int] | None:
    """The declared columns by their numbers; names are those of the log."""
    if categorical is None:
        return None
    known = () if names is None else names.observations
    found = []
    for one in categorical:
        if isinstance(one, str) and one in known:
            found.append(known.index(one))
        elif isinstance(one, str) and not one.lstrip("-").isdecimal():
            listed = (
                f" The observations are {', '.join(known)}."
                if known
                else " This log has no names: give numbers, separated by commas."
            )
            raise DatasetError(f"categorical names {one!r}, which is no observation.{did_you_mean(one, known)}{listed}")
        else:
            found.append(int(one))
    return found


def _estimated(records: list[EstimatedBehaviour | None], by_user: bool) -> EstimatedBehaviour | None:
    """The record of the files; if they differ, or only some have one, the estimates of the whole have none."""
    if all(one == records[0] for one in records) and records[0] is not None:
        return records[0]
    return EstimatedBehaviour() if by_user or any(one is not None for one in records) else None


def _agreed(name: str, declared: list[Any], paths: Sequence[str | Path]) -> Any:
    """What all files declare."""
    for path, one in zip(paths, declared, strict=True):
        if one != declared[0]:
            raise DatasetError(
                f"{name} is not the same in {paths[0]} and in {path}. Give it when reading: read_dataset(…, {name}=…)."
            )
    return declared[0]
