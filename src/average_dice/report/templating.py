"""Fills the HTML templates of this folder.

The result needs no network and runs no script. The templates escape every string from the evaluation; so do the charts.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from average_dice.problem import Estimand
from average_dice.report import charts
from average_dice.report.estimands import Words, words_of
from average_dice.report.formatting import interval, percent, short
from average_dice.report.tables import checks_table, estimate_rows, footnotes_of, log_table, settings_table


def fill(name: str, content: Mapping[str, Any]) -> str:
    """The template of this name, filled with the JSON form of an evaluation."""
    folder = files("average_dice.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"short": short, "percent": percent, "interval": interval}
    environment.globals["style"] = Markup((folder / "style.css").read_text(encoding="utf-8"))
    answer = environment.from_string((folder / "answer.html").read_text(encoding="utf-8"))
    template = environment.from_string((folder / name).read_text(encoding="utf-8"))
    context = _context(content)
    refutation = environment.from_string((folder / "refutation.html").read_text(encoding="utf-8"))
    shown = refutation.render(**context) if content.get("refutations") else ""
    return template.render(**context, answer=Markup(answer.render(**context)), refutation=Markup(shown))


def _context(content: Mapping[str, Any]) -> dict[str, Any]:
    found = {one["estimator"]: one for one in content["estimates"]}
    words, rows = words_of(content["estimand"]), estimate_rows(content)
    return {
        "content": content,
        "words": words,
        "rows": rows,
        "footnotes": footnotes_of(content),
        "first": found.get(content["judged"] or content["recommended"]),
        "name": content["dataset"]["metadata"].get("task", "the policy"),
        "forest": Markup(charts.forest(rows, content["recommended"], content["behaviour"]["value"], words.axis)),
        "charts": _charts(content, words),
        "ratio_labels": charts.RATIO_LABELS,
        "checks": checks_table(content["checks"]),
        "log": log_table(content["dataset"]),
        "settings": settings_table(content),
    }


def _charts(content: Mapping[str, Any], words: Words) -> dict[str, Markup]:
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
    if curves := content["curves"]:
        drawn["curves"] = charts.lines(
            {name: (curve["step"], curve["value"]) for name, curve in curves.items()},
            "training step",
            words.name,
            f"{words.name.capitalize()} against training steps.",
        )
    return {name: Markup(chart) for name, chart in drawn.items()}
