"""The report: one HTML page from the JSON form of an evaluation. It reads results and computes nothing.

The page needs no network and runs no script. Every string from outside is escaped: by the template, and in the charts.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, UndefinedError
from markupsafe import Markup

from average_dice.errors import SettingError
from average_dice.report import charts
from average_dice.report.formatting import NO_DIFFERENCE, short
from average_dice.report.tables import diagnostics_table, settings_table, summary_table

REQUIRED = {"discount", "seed", "dataset", "estimates", "recommended", "verdict", "versions"}


def page(content: Mapping[str, Any]) -> str:
    """The whole page."""
    return _render("page.html", content)


def page_of_file(path: Path) -> str:
    """The whole page, from the JSON file of an evaluation."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SettingError(f"{path} is not a JSON file: {error}.") from None
    if not isinstance(content, dict) or not set(content) >= REQUIRED or not content["estimates"]:
        raise SettingError(f"{path} is not the result of `average-dice evaluate … --json`.")
    try:
        return page(content)
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        raise SettingError(f"{path} is damaged, or from another version: {type(error).__name__}: {error}.") from None


def fragment(content: Mapping[str, Any]) -> str:
    """The answer and the estimates, to stand inside another page."""
    return _render("fragment.html", content)


def _render(name: str, content: Mapping[str, Any]) -> str:
    folder = files(__name__)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["short"] = short
    environment.globals["style"] = Markup((folder / "style.css").read_text(encoding="utf-8"))
    answer = environment.from_string((folder / "answer.html").read_text(encoding="utf-8"))
    template = environment.from_string((folder / name).read_text(encoding="utf-8"))
    context = _context(content)
    return template.render(**context, answer=Markup(answer.render(**context)))


def _context(content: Mapping[str, Any]) -> dict[str, Any]:
    found = {one["estimator"]: one for one in content["estimates"]}
    first = found.get(content.get("judged") or content["recommended"])
    behaviour = content.get("against_behaviour")
    return {
        "content": content,
        "first": first,
        "behaviour": behaviour,
        "no_difference": NO_DIFFERENCE,
        "name": content["dataset"].get("metadata", {}).get("task", "the policy"),
        "forest": Markup(
            charts.forest(content["estimates"], content["recommended"], behaviour and behaviour["baseline"])
        ),
        "charts": _charts(content),
        "diagnostics": diagnostics_table(content.get("diagnostics")),
        "summary": summary_table(content["dataset"]),
        "settings": settings_table(content),
    }


def _charts(content: Mapping[str, Any]) -> dict[str, Markup]:
    """What there is to draw, by name."""
    found = content.get("diagnostics") or {}
    drawn: dict[str, str] = {}
    if found.get("weights"):
        drawn["weights"] = charts.bars(
            found["weights"],
            "episodes, heaviest first",
            "share of the weight",
            "Shares of the weight that episodes carry, heaviest first.",
        )
    if found.get("by_step"):
        drawn["by_step"] = charts.lines(
            {"effective episodes": (range(len(found["by_step"])), found["by_step"])},
            "step",
            "effective episodes",
            "Effective number of episodes at each step.",
        )
    if content.get("states"):
        states = content["states"]
        drawn["states"] = charts.scatter(
            states["x"], states["y"], states["ratio"], states["axes"], "Logged states, coloured by the density ratio."
        )
    if curves := content.get("curves"):
        drawn["curves"] = charts.lines(
            {name: (curve["step"], curve["value"]) for name, curve in curves.items()},
            "training step",
            "value",
            "Value against training steps.",
        )
    return {name: Markup(chart) for name, chart in drawn.items()}
