"""The distribution of the return, drawn from its JSON form: for a terminal, and as a part of a page."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from rich.console import Group
from rich.table import Table
from rich.text import Text

from average_dice.report.bands import band
from average_dice.report.formatting import interval, percent, short
from average_dice.report.terminal import COLOURS

Content = Mapping[str, Any]


def name_of(one: Content) -> str:
    """A number of the distribution in words."""
    at = one["at"]
    match one["kind"]:
        case "quantile":
            return "median" if at == 0.5 else f"{percent(at)} quantile"
        case "cvar":
            return f"CVaR {percent(at)}"
        case "below":
            return f"P(return < {at:g})"
    return "mean"


def definition(content: Content) -> str:
    """What the numbers are about."""
    discounted = "Σ r" if content["discount"] in (0, 1) else f"Σ γᵗ r at γ = {content['discount']:g}"
    what = "the reward of one step" if content["discount"] == 0 else f"the return {discounted} of an episode"
    tail = "highest" if content["costs"] else "lowest"
    share = next(one["at"] for one in content["statistics"] if one["kind"] == "cvar")
    horizon = "" if content["horizon"] is None else f" Only the first {content['horizon']} steps count."
    return (
        f"Distribution of {what}, by episodes weighted with products of importance ratios. CVaR is the mean of the "
        f"{tail} {percent(share)}.{horizon}"
    )


def truncation(content: Content) -> str | None:
    """What truncated episodes miss; None if nothing."""
    low, high = content["missing"]
    if low == high == 0:
        return None
    return (
        "Returns of truncated episodes are those up to truncation. The rest could change such a return, and so any "
        f"quantile and the CVaR, by {short(low)} to {short(high)}."
    )


def draw(content: Content) -> Group:
    """The verdict, and the numbers with those of the behaviour policy."""
    verdict = content["verdict"]
    table = Table(title="Return of an episode", title_justify="left")
    table.add_column("", justify="left")
    for heading in ("policy", f"{percent(content['level'])} interval", "behaviour policy"):
        table.add_column(heading, justify="right")
    for one in content["statistics"]:
        table.add_row(Text(name_of(one)), short(one["value"]), interval(one), short(one["behaviour"]))
    lines = [Text(f"  · {reason}") for reason in verdict["reasons"]]
    lines += [Text(f"  → {remedy}", style="dim") for remedy in verdict["remedies"]]
    missing = truncation(content)
    return Group(
        Text(f"Verdict on the distribution: {verdict['level']}", style=f"bold {COLOURS[verdict['level']]}"),
        *lines,
        table,
        Text(definition(content), style="dim"),
        *([] if missing is None else [Text(missing, style="dim")]),
        *(Text(f"Note: {note}", style="dim") for note in content["notes"]),
        Text(_source(content), style="dim"),
    )


def _source(content: Content) -> str:
    return (
        f"{content['episodes']:,} episodes, effective number {content['effective_episodes']:.1f} · "
        f"{content['resamples']} bootstrap resamples of episodes · seed {content['seed']}"
    )


def chart(content: Content) -> str:
    """The distribution function with its band; the dashed one is that of the behaviour policy."""
    found = content["function"]
    if len(found["returns"]) < 2:
        return ""
    own = found["behaviour"]
    return band(
        found["returns"],
        found["lower"] or found["probability"],
        found["upper"] or found["probability"],
        x_name="return",
        y_name="probability of a return up to x",
        described="Distribution function of the return, with a band; dashed: the behaviour policy.",
        middle=found["probability"],
        ends=(own, own),
        stairs=True,
    )


def fragment(content: Content) -> str:
    """A section of a page, without styles of its own."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"short": short, "percent": percent, "name_of": name_of}
    text = (files("average_dice.report") / "distribution.html").read_text(encoding="utf-8")
    return environment.from_string(text).render(
        content=content,
        chart=Markup(chart(content)),
        definition=definition(content),
        truncation=truncation(content),
        source=_source(content),
    )
