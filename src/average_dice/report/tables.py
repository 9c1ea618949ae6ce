"""The tables of the page, as rows of text, and the rows that tables and plots of estimates have."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from average_dice.data.model_words import in_words
from average_dice.problem import Estimand
from average_dice.report.formatting import short

IF_OBSERVED = "supported if nothing unobserved drove the actions"  # a level of the verdict, and the status of a check
MARKS = {"ok": "✓", IF_OBSERVED: "?", "weak": "!", "not supported": "✗", "info": "·"}
STAR = "★"
FOOTNOTES = "†‡"  # marks of labels, in the order in which they occur
BEHAVIOUR = "behaviour policy"
MOST_NAMES = 20  # of columns or actions, in the facts about the log


class CheckRow(NamedTuple):
    """One check, with the mark of its status."""

    mark: str
    status: str
    description: str
    value: str
    good: str
    explanation: str


def estimate_rows(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The estimates, with marks under `name`; then the behaviour policy, unless one of them is that number.

    `comparable` is False for a number on another scale than the value. `matters` is True for what a reader compares:
    the recommended estimate, the one that the verdict is about, and the behaviour policy.
    """
    footnotes = footnotes_of(content)
    rows = []
    for one in content["estimates"]:
        star = STAR if one["estimator"] == content["recommended"] else ""
        name = " ".join(filter(None, (one["estimator"], star, footnotes.get(one["label"]))))
        comparable = "other-scale" not in one["note_codes"]
        judged = one["estimator"] in (content["recommended"], content["judged"])
        matters = judged or "behaviour-value" in one["note_codes"]
        rows.append({**one, "name": name, "comparable": comparable, "matters": matters})
    behaviour = content["behaviour"]
    own = {one["estimator"]: one["value"] for one in rows if "behaviour-value" in one["note_codes"]}
    if behaviour["value"] is None or own.get(behaviour["estimator"]) == behaviour["value"]:
        return rows
    about = {"name": BEHAVIOUR, "seconds": None, "notes": [behaviour["source"]], "comparable": True, "matters": True}
    return [*rows, {**behaviour, **about, "estimator": BEHAVIOUR}]


def footnotes_of(content: Mapping[str, Any]) -> dict[str, str]:
    """The labels of the estimates, each with its mark."""
    labels = dict.fromkeys(one["label"] for one in content["estimates"] if one["label"] is not None)
    return dict(zip(labels, FOOTNOTES, strict=False))


def checks_table(checks: Sequence[Mapping[str, str]]) -> list[CheckRow]:
    """The checks as rows with a mark for their status, the worst first."""
    rows = [
        CheckRow(
            MARKS[one["status"]],
            one["status"],
            one["description"],
            one["value"],
            one["good"],
            one.get("explanation", ""),
        )
        for one in checks
    ]
    order = ("not supported", "weak", IF_OBSERVED, "ok", "info")
    return sorted(rows, key=lambda row: order.index(row.status))


def calibration_sentence(estimated: Mapping[str, Any] | None, is_discrete: bool) -> str | None:
    """Which model estimated the behaviour policy, and how to read its chart; None if none did."""
    if not estimated:
        return None
    sentence = f"The log does not record them; they were estimated ({in_words(estimated['model'], is_discrete)})"
    if estimated["calibration"]:
        sentence += ". On held-out episodes its predictions should come true as often as predicted: dots on the line"
    return f"{sentence}."


def log_table(dataset: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts about the log."""
    shortest, mean_length, longest = dataset["lengths"]
    smallest, mean_reward, largest = dataset["rewards"]
    names = dataset.get("names") or {}
    observations = names.get("observations", [])
    return [
        ("transitions", f"{dataset['transitions']:,}"),
        ("episodes", f"{dataset['episodes']:,}, {_ends(dataset)}"),
        *([("length of episodes", f"{shortest} to {longest}, mean {mean_length:.1f}")] if longest > 1 else []),
        ("rewards", f"{short(smallest)} to {short(largest)}, mean {short(mean_reward)}"),
        ("observations", _dimensions(dataset["observation"]) + _named(observations) + _categorical(dataset)),
        ("actions", dataset["action"] + _described(dataset.get("action_features")) + _named(names.get("actions", []))),
        ("behaviour_log_prob", _behaviour(dataset)),
        *((f"metadata: {name}", str(value)) for name, value in dataset["metadata"].items()),
        ("sha256", dataset["sha256"]),
    ]


def has_discrete_actions(dataset: Mapping[str, Any]) -> bool:
    """Of the log; by the JSON form."""
    return str(dataset["action"]).startswith("discrete")


def _behaviour(dataset: Mapping[str, Any]) -> str:
    if dataset.get("behaviour_model"):
        return f"estimated: {in_words(dataset['behaviour_model'], has_discrete_actions(dataset))}"
    return "known" if dataset["behaviour_known"] else "unknown"


def _dimensions(number: int) -> str:
    return "1 dimension" if number == 1 else f"{number} dimensions"


def _categorical(dataset: Mapping[str, Any]) -> str:
    """The categorical columns, by name if they have one."""
    names = (dataset.get("names") or {}).get("observations", [])
    columns = [names[one] if names else str(one) for one in dataset.get("categorical") or ()]
    return f", categorical: {', '.join(columns)}" if columns else ""


def _named(names: Sequence[str]) -> str:
    """The first names in brackets."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f" ({', '.join(names[:MOST_NAMES])}{more})" if names else ""


def _described(number: int | None) -> str:
    return f", with {number} features" if number else ""


def _ends(dataset: Mapping[str, Any]) -> str:
    """How the episodes end."""
    if dataset["terminated"] < dataset["episodes"]:
        return f"{dataset['terminated']:,} of them terminated, the others truncated"
    return "of one step each" if dataset["lengths"][2] == 1 else "all of them terminated"


def settings_table(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings that reproduce the result."""
    unused = content["estimand"] == Estimand.ONE_STEP and content["discount"] > 0
    discount = f"{content['discount']:g}{', not used: every episode has one step' if unused else ''}"
    rows = [("discount", discount)]
    if content["horizon"] is not None:
        rows.append(("horizon", f"{content['horizon']} steps"))
    rows.append(("seed", str(content["seed"])))
    rows += [(name, str(version)) for name, version in content["versions"].items()]
    return rows + ([("command", content["command"])] if content["command"] else [])
