"""The tables of the report: names, numbers, and what they should be."""

from collections.abc import Mapping
from typing import Any

from average_dice.report.formatting import short

SURE = "below 5"


def diagnostics_table(found: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """(what, how much, what is good)."""
    if not found:
        return []
    heaviest = ", ".join(f"{one['episode']} ({one['share']:.0%})" for one in found["heaviest"])
    rows = [
        ("overlap of the policy with the log", _share(found["overlap"]), "the more the better; below 30 % little"),
        ("policy's actions that were never logged", _share(found["unseen_actions"]), "0 %"),
        ("mean ratio of actions", _number(found["mean_ratio"], found["mean_ratio_distance"]), "1"),
        ("mean ratio at the step furthest from 1", _at_step(found), "1"),
        ("mean ratio by state and step, from 1", _errors(found.get("balance")), SURE),
        ("times an episode that the policy leaves the log", _lost(found), "0"),
        ("actions that depend on earlier ones", _errors(found.get("memory")), SURE),
        ("truncation that depends on what happened", _errors(found.get("truncation")), SURE),
        ("returns that change over the log", _errors(found.get("trend")), SURE),
        ("episodes that resemble the one before", _errors(found.get("neighbours")), SURE),
        ("effective episodes", short(found["effective_episodes"]), "3 or more"),
        ("Pareto k̂ of the weights", short(found["pareto_k"]), "below 0.7"),
        ("heaviest episodes", heaviest or "–", "no share near 50 %"),
        ("mass that the ratio found", short(found["mass_found"]), "1"),
        ("weight beyond the cut", _share(found["beyond_truncation"]), "below 5 %"),
        ("flow residual on episodes left out", short(found["flow_residual"]), "0; above 1 too much"),
        ("variance of rewards by a single row", _share(found["largest_reward_share"]), "below 20 %"),
        ("episodes that are copies", _share(found["repeated_episodes"]), "0 %"),
    ]
    return [row for row in rows if row[1] != "–"]


def summary_table(dataset: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is in the log."""
    rows = [("transitions", f"{dataset['transitions']:,}"), ("episodes", f"{dataset['episodes']:,}")]
    if "lengths" in dataset:
        shortest, mean, longest = dataset["lengths"]
        low, average, high = dataset["rewards"]
        died = dataset["terminated"]
        rows += [
            ("terminated, truncated", f"{died:,}, {dataset['episodes'] - died:,}"),
            ("length of episodes", f"{shortest} to {longest}, mean {mean:.1f}"),
            ("rewards", f"{short(low)} to {short(high)}, mean {short(average)}"),
            ("observations", f"{dataset['observation']} wide"),
            ("actions", dataset["action"]),
            ("probabilities of the log", "known" if dataset["behaviour_known"] else "unknown"),
        ]
    rows += [(f"metadata: {name}", str(value)) for name, value in dataset.get("metadata", {}).items()]
    return [*rows, ("sha256", dataset["sha256"])]


def settings_table(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How to get the same again."""
    rows = [("discount", f"{content['discount']:g}"), ("seed", str(content["seed"]))]
    rows += [(name, str(version)) for name, version in content["versions"].items()]
    return rows + ([("command", content["command"])] if content.get("command") else [])


def _at_step(found: Mapping[str, Any]) -> str:
    ratio = found.get("worst_step_ratio")
    if ratio is None:
        return "–"
    return f"{_number(ratio, found['worst_step_distance'])}, at step {found['worst_step']}"


def _errors(distance: float | None) -> str:
    return "–" if distance is None else f"{distance:.1f} standard errors"


def _lost(found: Mapping[str, Any]) -> str:
    """Only where it is more than chance: elsewhere the number is noise."""
    balance, missing = found.get("balance"), found.get("missing_mass")
    return "–" if balance is None or missing is None or balance < 5 else f"{max(missing, 0.0):.2g}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _number(value: float | None, distance: float | None) -> str:
    return "–" if value is None or distance is None else f"{value:.3f}, {distance:.1f} standard errors from 1"
