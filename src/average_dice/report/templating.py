"""Fills the HTML templates of this folder: a page includes the sections, one file each in `sections`.

The result needs no network and runs no script. The templates escape every string from the evaluation; so do the charts.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from average_dice.data.understood import size_of
from average_dice.problem import Estimand
from average_dice.report import charts, comparing, distribution, parts
from average_dice.report.estimands import Words, words_of
from average_dice.report.formatting import interval, percent, short
from average_dice.report.sentences import answer, compared, judged_estimate
from average_dice.report.tables import (
    MARKS,
    calibration_sentence,
    checks_table,
    estimate_rows,
    footnotes_of,
    has_discrete_actions,
    log_table,
    settings_table,
)

Content = Mapping[str, Any]

QUESTION = "What would the policy earn?"
COMPARISON = "Which policy earns more?"


def fill(name: str, content: Content) -> str:
    """The template of this name, filled with the JSON form of an evaluation."""
    return _fill(name, _context(content))


def fill_comparison(content: Content) -> str:
    """The page of a comparison, from its JSON form."""
    return _fill("comparison.html", _context_of_comparison(content))


def _fill(name: str, context: Mapping[str, Any]) -> str:
    text = _environment().get_template(name).render(**context)
    return text.encode("utf-8", "replace").decode()  # names of files may have bytes that are no text


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("average_dice.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "percent": percent, "interval": interval}
    environment.globals["style"] = Markup((files("average_dice.report") / "style.css").read_text(encoding="utf-8"))
    return environment


def _parts(content: Content) -> dict[str, Any]:
    """The values of several rewards, and of groups of episodes."""
    content = {"rewards": [], "groups": [], "by": None, **content}  # files of earlier versions have none
    return {
        "rewards": [{**one, "name": one["reward"]} for one in content["rewards"]],
        "groups": parts.group_rows(content),
        "forests": {name: Markup(chart) for name, chart in parts.forests_of_rewards(content).items()},
        "forest_of_groups": Markup(parts.forest_of_groups(content)),
        "of_rewards": parts.OF_REWARDS.format(judged=content["judged"]),
        "of_groups": parts.OF_GROUPS.format(judged=content["judged"]),
        "against": parts.against,
        "doubts": parts.doubts,
    }


def _context(content: Content) -> dict[str, Any]:
    words, rows, level = words_of(content["estimand"]), estimate_rows(content), content["verdict"]["level"]
    marked = content["judged"] or content["recommended"]
    return {
        "content": content,
        "heading": _heading(content, QUESTION, "policy", content.get("policy")),
        "sentence": answer(content),
        "level": _as_class(level),
        "mark": _mark(level),
        "words": words,
        "rows": rows,
        "footnotes": footnotes_of(content),
        "first": judged_estimate(content),
        "forest": Markup(charts.forest(rows, marked, content["behaviour"]["value"], words.axis)),
        "charts": _charts(content, words),
        "ratio_labels": charts.RATIO_LABELS,
        "calibration": calibration_sentence(
            content.get("behaviour_estimate"), has_discrete_actions(content["dataset"])
        ),
        "checks": checks_table(content["checks"]),
        "log": log_table(content["dataset"]),
        "settings": settings_table(content),
        "distribution": Markup(distribution.fragment(found)) if (found := content.get("distribution")) else "",
        **_parts(content),
    }


def _context_of_comparison(content: Content) -> dict[str, Any]:
    first, rows = content["policies"][0], comparing.policy_rows(content)
    words = words_of(first["estimand"])
    names = ", ".join(one["policy"] for one in content["policies"])
    return {
        "content": content,
        "heading": _heading({**content, "dataset": first["dataset"]}, COMPARISON, "policies", names),
        "sentences": compared(content),
        "words": words,
        "definition": first["definition"],
        "estimator": first["recommended"],
        "forest": Markup(charts.forest(rows, content["best"], content["behaviour"]["value"], words.axis)),
        "values": comparing.values_of(rows),
        "matrix": comparing.matrix(content),
        "many": len(content["policies"]) > comparing.MOST_POLICIES,
        "ranking": comparing.ranking_rows(content),
        "forest_of_ranking": Markup(comparing.forest_of_ranking(content, f"difference in {words.column}")),
        "policies": [
            {
                "name": one["policy"],
                "verdict": one["verdict"],
                "level": _as_class(one["verdict"]["level"]),
                "mark": _mark(one["verdict"]["level"]),
                "checks": checks_table(one["checks"]),
            }
            for one in content["policies"]
        ],
        "log": log_table(first["dataset"]),
        "settings": settings_table({**first, "command": content.get("command")}),
    }


def _heading(content: Content, question: str, kind: str, name: str | None) -> dict[str, Any]:
    """The title, and what the report is about. Files of earlier versions have neither names nor a date."""
    data = content["dataset"]
    log = content.get("log") or data["metadata"].get("task") or "–"
    size = size_of(data["transitions"], data["episodes"], "logged transition")
    facts = [(kind, name or "–"), ("log", f"{log}, {size}")]
    if content.get("date"):
        facts.append(("date", content["date"]))
    return {"title": content.get("title") or question, "name": name or log, "facts": facts}


def _as_class(level: str) -> str:
    return level.replace(" ", "-")


def _mark(level: str) -> str:
    return MARKS["ok" if level == "supported" else level]


def _charts(content: Content, words: Words) -> dict[str, Markup]:
    """The charts that there are data for, by name."""
    found = content["diagnostics"] or {}
    drawn: dict[str, str] = {}
    if found.get("weights"):
        drawn["weights"] = charts.bars(
            found["weights"],
            "episodes, largest weight first",
            "share of the weight",
            "Share of the weight of each episode, largest first.",
        )
    if found.get("by_step") and content["estimand"] != Estimand.ONE_STEP:
        drawn["by_step"] = charts.lines(
            {"effective episodes": (range(len(found["by_step"])), found["by_step"])},
            "step",
            "effective episodes",
            "Effective number of episodes at each step.",
        )
    if states := content["states"]:
        drawn["states"] = charts.scatter(
            states["x"], states["y"], states["ratio"], states["axes"], "Logged states, coloured by the density ratio."
        )
    if (estimated := content.get("behaviour_estimate")) and estimated["calibration"]:
        bins = estimated["calibration"]
        drawn["calibration"] = charts.against_diagonal(
            [one["predicted"] for one in bins],
            [one["observed"] for one in bins],
            ("predicted frequency", "observed frequency"),
            "Observed against predicted frequencies of actions on held-out episodes.",
        )
    if curves := content["curves"]:
        drawn["curves"] = charts.lines(
            {name: (curve["step"], curve["value"]) for name, curve in curves.items()},
            "training step",
            words.name,
            f"{words.name.capitalize()} against training steps.",
        )
    return {name: Markup(chart) for name, chart in drawn.items()}
