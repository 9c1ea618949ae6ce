"""A sensitivity analysis, drawn from its JSON form: for a terminal, as a page, and as a fragment of a page."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from rich.console import Group
from rich.table import Table
from rich.text import Text

from average_dice.data.understood import size_of
from average_dice.report.bands import band
from average_dice.report.estimands import words_of
from average_dice.report.formatting import NOTHING, percent, short

Content = Mapping[str, Any]

MEANING = (
    "If the true odds of each logged action, given also what was not recorded, lie within a factor Γ of the recorded "
    "ones, the value lies between the bounds. The value at Γ = 1 and the bounds are by weighted per-decision "
    "importance sampling (wpdis; memoryless and by state: by a table of values), not by the recommended estimator, so "
    "`evaluate` may give another value."
)


def draw(content: Content) -> Group:
    """The conclusions, and the bounds by Γ as a table for each assumption."""
    return Group(
        *(Text(f"{one[:1].upper()}{one[1:]}") for one in content["conclusions"]),
        *(part for curve in content["curves"] for part in _drawn(content, curve)),
        Text(MEANING, style="dim"),
        *(Text(f"Note: {note}", style="dim") for note in content["notes"]),
        Text(_source(content), style="dim"),
    )


def _drawn(content: Content, curve: Content) -> list[Any]:
    words = words_of(content["estimand"])
    title = f"{words.column}, {curve['name']}; {content['reference_name']}: {short(curve['reference'])}"
    table = Table(title=title, title_justify="left")
    ends = content["resamples"] > 0
    for heading in ("Γ", "lower bound", "upper bound", *([_heading(content)] if ends else [])):
        table.add_column(heading, justify="right")
    for one in curve["bounds"]:
        table.add_row(f"{one['gamma']:g}", short(one["lower"]), short(one["upper"]), *([_ends(one)] if ends else []))
    return [table, Text(f"{curve['assumption']} Tightness: {curve['sharpness']}.", style="dim")]


def _heading(content: Content) -> str:
    return f"with {percent(content['level'])} confidence"


def _ends(one: Content) -> str:
    return NOTHING if one["lower_end"] is None else f"{short(one['lower_end'])} to {short(one['upper_end'])}"


def _source(content: Content) -> str:
    return (
        f"{size_of(content['transitions'], content['episodes'])} · log {content['sha256'][:12]} · "
        f"discount {content['discount']:g} · {content['resamples']} bootstrap resamples of episodes · "
        f"seed {content['seed']}"
    )


def chart(content: Content, curve: Content) -> str:
    """The bounds against Γ, with their confidence ends, the reference and the tipping Γ."""
    bounds = curve["bounds"]
    if len(bounds) < 2:
        return ""
    ends = None
    if bounds[0]["lower_end"] is not None:
        ends = [one["lower_end"] for one in bounds], [one["upper_end"] for one in bounds]
    found = curve["tipping"]["gamma"]
    return band(
        [one["gamma"] for one in bounds],
        [one["lower"] for one in bounds],
        [one["upper"] for one in bounds],
        x_name="Γ",
        y_name=words_of(content["estimand"]).name,
        described=f"Bounds on the value against Γ, {curve['name']}.",
        ends=ends,
        reference=(curve["reference"], content["reference_name"]),
        mark=None if found is None else (found, f"Γ = {found:.3g}"),
    )


def fragment(content: Content) -> str:
    """Conclusions, charts and tables for another page; its styles apply to itself only."""
    return _filled("sensitivity_fragment.html", content)


def page(content: Content) -> str:
    """The whole page."""
    return _filled("sensitivity.html", content)


def _filled(name: str, content: Content) -> str:
    folder = files("average_dice.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"short": short, "percent": percent}
    inner = environment.from_string((folder / "sensitivity_fragment.html").read_text(encoding="utf-8"))
    context = {
        "content": content,
        "style": Markup((folder / "style.css").read_text(encoding="utf-8")),
        "words": words_of(content["estimand"]),
        "charts": [Markup(chart(content, curve)) for curve in content["curves"]],
        "meaning": MEANING,
        "source": _source(content),
    }
    body = inner.render(**context)
    if name == "sensitivity_fragment.html":
        return body
    whole = environment.from_string((folder / name).read_text(encoding="utf-8"))
    return whole.render(**context, body=Markup(body))
