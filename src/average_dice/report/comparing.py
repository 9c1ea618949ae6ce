"""The rows and the matrix of a report that compares policies."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from average_dice.report import charts
from average_dice.report.formatting import NOTHING, interval, short
from average_dice.report.sentences import doubted_policies, judged_estimate
from average_dice.report.tables import MARKS

Content = Mapping[str, Any]

BEHAVIOUR = "behaviour"
MOST_POLICIES = 4  # whose differences are all shown; of more, those from the behaviour policy, and the ranking
NO_CONCLUSION = "no conclusion"
SHORT_JUDGEMENT = {"no significant difference": "not significant"}
OPPOSITE = {"better": "worse", "worse": "better"}


class Cell(NamedTuple):
    """The row's policy minus the column's."""

    column: str
    judgement: str
    value: str
    interval: str


def policy_rows(content: Content) -> list[dict[str, Any]]:
    """The value of each policy by the estimate that its verdict is about, then the behaviour policy.

    A policy that the log does not support is `doubtful`; the others matter.
    """
    doubted, rows = doubted_policies(content), []
    for one in content["policies"]:
        level = one["verdict"]["level"]
        mark = "" if level == "supported" else f" {MARKS[level]}"
        found = judged_estimate(one)
        if found is None:
            raise ValueError(f"no estimate of {one['policy']}")
        doubtful = one["policy"] in doubted
        about = {"name": f"{one['policy']}{mark}", "estimator": one["policy"], "verdict": one["verdict"]}
        rows.append({**found, **about, "comparable": True, "matters": not doubtful, "doubtful": doubtful})
    behaviour = {"name": BEHAVIOUR, "estimator": BEHAVIOUR, "verdict": None, "comparable": True, "matters": True}
    return [*rows, {**content["behaviour"], **behaviour, "doubtful": False}]


def matrix(content: Content) -> list[tuple[str, list[Cell]]]:
    """For each policy its differences from every other policy and from the behaviour policy."""
    names = [one["policy"] for one in content["policies"]]
    doubted = doubted_policies(content)
    known = {(one["policy"], one["other"]): one for one in content["differences"]}
    return [(name, [_cell(name, other, known, doubted) for other in (*names, BEHAVIOUR)]) for name in names]


def _cell(name: str, other: str, known: Mapping[tuple[str, str], Content], doubted: set[str]) -> Cell:
    if name == other:
        return Cell(other, "", NOTHING, "")
    if doubted & {name, other}:
        return Cell(other, NO_CONCLUSION, "", "")
    found = known.get((name, other)) or _reversed(known[other, name])
    judgement = str(SHORT_JUDGEMENT.get(found["judgement"], found["judgement"]))
    return Cell(other, judgement, f"{found['value']:+.4g}", interval(found) if found["lower"] is not None else "")


def _reversed(found: Content) -> dict[str, Any]:
    """The difference the other way round."""
    lower, upper = (None if found[end] is None else -found[end] for end in ("upper", "lower"))
    judgement = OPPOSITE.get(found["judgement"], found["judgement"])
    return {**found, "value": -found["value"], "lower": lower, "upper": upper, "judgement": judgement}


def forest_of_ranking(content: Content, axis: str) -> str:
    """The differences from the first policy of the ranking; empty for a file of an earlier version."""
    first, *others = content.get("ranking") or [None]
    if first is None:
        return ""
    rows = [
        {**one, "name": _with_status(one), "estimator": one["policy"], "value": one["difference"]}
        | {"comparable": True, "matters": one["rank"] is not None, "doubtful": one["rank"] is None}
        for one in others
    ]
    return charts.forest(rows, "", 0.0, axis, line=first["policy"])


def _with_status(one: Content) -> str:
    return f"{one['policy']} ✗" if one["rank"] is None else str(one["policy"])


def ranking_rows(content: Content) -> list[tuple[str, str, str, str, str, str]]:
    """Of each policy: its rank, name, value, difference from the first, the simultaneous interval, and its status."""
    return [
        (
            NOTHING if one["rank"] is None else str(one["rank"]),
            one["policy"],
            short(one["value"]),
            short(one["difference"]),
            interval(one),
            f"{one['status']}{_by(one['excluded_by'])}",
        )
        for one in content.get("ranking") or []
    ]


def _by(better: list[str]) -> str:
    """Which policies are significantly better: one of them, and how many others."""
    if not better:
        return ""
    return f" by {better[0]}" + (f" and {len(better) - 1} more" if len(better) > 1 else "")


def values_of(rows: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Of each policy: its name, value, interval and verdict."""
    return [
        (one["name"], short(one["value"]), interval(one), "" if one["verdict"] is None else one["verdict"]["level"])
        for one in rows
    ]
