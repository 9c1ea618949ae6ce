"""The tables of the page, as rows of text."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from average_dice.report.formatting import short

MARKS = {"ok": "✓", "weak": "!", "not supported": "✗", "info": "·"}


class CheckRow(NamedTuple):
    """One check, with the mark of its status."""

    mark: str
    status: str
    description: str
    value: str
    good: str


def checks_table(checks: Sequence[Mapping[str, str]]) -> list[CheckRow]:
    """The checks as rows with a mark for their status."""
    return [
        CheckRow(MARKS[one["status"]], one["status"], one["description"], one["value"], one["good"]) for one in checks
    ]


def log_table(dataset: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts about the log."""
    shortest, mean_length, longest = dataset["lengths"]
    smallest, mean_reward, largest = dataset["rewards"]
    return [
        ("transitions", f"{dataset['transitions']:,}"),
        ("episodes", f"{dataset['episodes']:,}, {dataset['terminated']:,} of them terminated, the others truncated"),
        ("length of episodes", f"{shortest} to {longest}, mean {mean_length:.1f}"),
        ("rewards", f"{short(smallest)} to {short(largest)}, mean {short(mean_reward)}"),
        ("observations", f"{dataset['observation']} dimensions{_categorical(dataset.get('categorical'))}"),
        ("actions", dataset["action"] + _described(dataset.get("action_features"))),
        ("behaviour_log_prob", "known" if dataset["behaviour_known"] else "unknown"),
        *((f"metadata: {name}", str(value)) for name, value in dataset["metadata"].items()),
        ("sha256", dataset["sha256"]),
    ]


def _categorical(columns: Sequence[int] | None) -> str:
    return f", categorical: {', '.join(map(str, columns))}" if columns else ""


def _described(number: int | None) -> str:
    return f", with {number} features" if number else ""


def settings_table(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings that reproduce the result."""
    rows = [("discount", f"{content['discount']:g}"), ("seed", str(content["seed"]))]
    rows += [(name, str(version)) for name, version in content["versions"].items()]
    return rows + ([("command", content["command"])] if content["command"] else [])
