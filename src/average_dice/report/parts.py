"""Values of several rewards and of groups of episodes: rows for tables and charts, in the terminal and on the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from average_dice.report import charts
from average_dice.report.estimands import words_of
from average_dice.report.tables import BEHAVIOUR, IF_OBSERVED

ALL_EPISODES = "all episodes"
POLICY = "policy"
OF_GROUPS = "Each group by {judged}, fitted to the episodes of that group alone."
OF_REWARDS = "Each reward by {judged}, on the same bootstrap resamples of episodes."


def group_rows(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The evaluation of all episodes, then that of each group, under `name`; empty without groups."""
    if not content["groups"]:
        return []
    groups = [{**one, "name": one["group"], "estimator": one["group"]} for one in content["groups"]]
    judged = next(one for one in content["estimates"] if one["estimator"] == content["judged"])
    whole = {
        **judged,
        "episodes": content["dataset"]["episodes"],
        **{name: content[name] for name in ("verdict", "behaviour", "against_behaviour", "no_difference")},
    }
    return [{**whole, "name": ALL_EPISODES, "estimator": ALL_EPISODES}, *groups]


def against(one: Mapping[str, Any]) -> str:
    """The value of an answer against that of the behaviour policy. It may be a cost, so it is not called better."""
    if not one["against_behaviour"]:
        return "not compared"
    judgement = one["against_behaviour"]["judgement"]
    return {"better": "higher", "worse": "lower"}.get(judgement, judgement)


def doubts(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Names of answers and why their values are in doubt. Those with the same reasons come together."""
    found: dict[str, list[str]] = {}
    for one in rows:
        if (why := _doubt(one)) is not None:
            found.setdefault(why, []).append(one["name"])
    return [(", ".join(names), why) for why, names in found.items()]


def _doubt(one: Mapping[str, Any]) -> str | None:
    """Why the value of an answer is not supported, or has no interval; None if it is and has one."""
    verdict = one["verdict"]
    reasons = [] if verdict["level"] in ("supported", IF_OBSERVED) else list(verdict["reasons"])
    if one["value"] is not None and one["interval"] is None:
        reasons += [text for text, code in zip(one["notes"], one["note_codes"], strict=True) if code == "no-interval"]
    clauses = dict.fromkeys(clause for reason in reasons for clause in reason.split("; "))  # each once
    return f"{verdict['level']}, because {'; '.join(clauses)}" if reasons else None


def forest_of_groups(content: Mapping[str, Any]) -> str:
    """A row for all episodes and one for each group."""
    rows = [{**one, "comparable": True} for one in group_rows(content)]
    axis = words_of(content["estimand"]).axis
    return charts.forest(rows, ALL_EPISODES, content["behaviour"]["value"], axis) if rows else ""


def forests_of_rewards(content: Mapping[str, Any]) -> dict[str, str]:
    """For each reward, which has a scale of its own, a row for the policy and one for the behaviour policy."""
    axis = words_of(content["estimand"]).axis
    found = {}
    for one in content["rewards"]:
        rows = [{**one, "name": POLICY, "estimator": POLICY}, {**one["behaviour"], "name": BEHAVIOUR}]
        shown = [{**row, "comparable": True} for row in rows]
        found[one["reward"]] = charts.forest(shown, POLICY, one["behaviour"]["value"], axis)
    return found
