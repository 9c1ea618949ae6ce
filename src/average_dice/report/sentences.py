"""The answer in plain sentences, by the verdict: the first thing that a reader of a report sees."""

from collections.abc import Mapping, Sequence
from typing import Any

from average_dice.report.estimands import words_of
from average_dice.report.formatting import interval, percent, short
from average_dice.report.tables import IF_OBSERVED

Content = Mapping[str, Any]

MOST_COMPARED = 3  # supported policies whose pairs are all written out; of more, only those with the best
AGAINST_BEHAVIOUR = {
    "better": ", significantly more than the behaviour policy",
    "worse": ", significantly less than the behaviour policy",
    "no significant difference": ", with no significant difference from the behaviour policy",
    "no interval": "",
    "no conclusion": "",
}
LEVELS = {
    "supported": "This log supports the estimate: {earns}.",
    IF_OBSERVED: (
        "This log supports the estimate, if nothing unobserved drove the actions: {earns}. The probabilities of the "
        "logged actions were estimated."
    ),
    "weak": "This log supports the estimate only weakly: {earns}. Use it with care, because {because}.",
    "not supported": (
        "This log does not support an estimate: no conclusion should be drawn about what the policy would earn, "
        "because {because}."
    ),
}


def answer(content: Content) -> str:
    """What the policy would earn, or that no conclusion should be drawn, and why."""
    verdict, found = content["verdict"], judged_estimate(content)
    level = LEVELS[verdict["level"] if found is not None and found["value"] is not None else "not supported"]
    earns = "" if found is None else f"the policy would earn {_number(found, content)}{_against_behaviour(content)}"
    return level.format(earns=earns, because=_because(verdict["reasons"]))


def judged_estimate(content: Content) -> Content | None:
    """The estimate that the verdict is about; None if only baselines were requested."""
    name = content["judged"] or content["recommended"]
    return next((one for one in content["estimates"] if one["estimator"] == name), None)


def _number(found: Content, content: Content) -> str:
    value = f"{short(found['value'])}{words_of(content['estimand']).unit}"
    return value if found["lower"] is None else f"{value} ({percent(found['level'])} interval {interval(found)})"


def _against_behaviour(content: Content) -> str:
    gain = content["against_behaviour"]
    return "" if gain is None else AGAINST_BEHAVIOUR[gain["judgement"]]


def _because(reasons: Sequence[str]) -> str:
    """The first reason, and how many others there are."""
    if not reasons:
        return "there is no estimate of its value"
    others = len(reasons) - 1
    more = f" (and {others} more reason{'s' if others > 1 else ''} below)" if others else ""
    return f"{reasons[0]}{more}"


def compared(content: Content) -> list[str]:
    """Which policies are better or worse than the behaviour policy and than each other; the most important first."""
    doubted = doubted_policies(content)
    sound = [one for one in content["differences"] if not doubted & {one["policy"], one["other"]}]
    policies = {one["policy"] for one in content["policies"]}
    to_behaviour = [one for one in sound if one["other"] not in policies]
    pairs = [one for one in sound if one["other"] in policies]
    best_first = sorted(to_behaviour, key=lambda one: -one["value"])
    if len(to_behaviour) > MOST_COMPARED:
        pairs = [one for one in pairs if best_first[0]["policy"] in (one["policy"], one["other"])]
    unit = words_of(content["policies"][0]["estimand"]).unit
    found = [_difference(one, "the behaviour policy", unit) for one in best_first]
    found += [_difference(one, one["other"], unit) for one in pairs]
    if not to_behaviour:
        found = ["No conclusion should be drawn: this log does not support the value of any of the policies."]
    elif all(one["judgement"] != "better" for one in to_behaviour):
        found.insert(0, "No policy that this log supports is significantly better than the behaviour policy.")
    for one in content["policies"]:
        if one["policy"] in doubted:
            found.append(f"{one['policy']}: no conclusion, because {_because(one['verdict']['reasons'])}.")
    weak = [one["policy"] for one in content["policies"] if one["verdict"]["level"] == "weak"]
    return found + ([f"The log supports only weakly: {', '.join(weak)}. The reasons are below."] if weak else [])


def doubted_policies(content: Content) -> set[str]:
    """The policies whose values the log does not support."""
    return {one["policy"] for one in content["policies"] if one["verdict"]["level"] == "not supported"}


def _difference(one: Content, other: str, unit: str) -> str:
    ends = "" if one["lower"] is None else f" ({percent(one['level'])} interval {interval(one)})"
    if one["judgement"] in ("better", "worse"):
        by = f"by {short(abs(one['value']))}{unit}{_positive(one)}"
        if one["judgement"] == "worse" and other == one["other"]:  # of two policies the better one comes first
            return f"{other} is better than {one['policy']} {by}."
        return f"{one['policy']} is {one['judgement']} than {other} {by}."
    return f"{one['judgement'].capitalize()} between {one['policy']} and {other}{ends}."


def _positive(one: Content) -> str:
    """The interval of the size of a difference, whichever sign it has."""
    lower, upper = sorted((abs(one["lower"]), abs(one["upper"])))
    return f" ({percent(one['level'])} interval {short(lower)} to {short(upper)})"
