"""A plan, drawn from its JSON form: in sentences, for a terminal, and as a page."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from average_dice.report.bands import band
from average_dice.report.estimands import words_of
from average_dice.report.formatting import NOTHING, interval, percent, short

Content = Mapping[str, Any]
Rows = list[tuple[str, ...]]

SQUARE_ROOT = "1/√episodes"


def sentences(content: Content) -> list[str]:
    """The answer in plain words, the most important first."""
    found = []
    if not content["more_helps"]:
        reasons = "; ".join(content["verdict"]["reasons"])
        found.append(
            f"More episodes of the same kind do not help: this log does not support the value, because {reasons}. "
            "The widths are those of intervals around a value that cannot be trusted."
        )
    elif content["needed"] is not None:
        found.append(_about_width(content))
    else:
        found.append(f"You have {content['episodes']:,} episodes, with an expected ±{content['half_width']:.2g}.")
    if content["against"] is not None:
        found.append(_about_difference(content))
    if content["verdict"]["level"] == "weak":
        found.append(f"The log supports the value only weakly: {'; '.join(content['verdict']['reasons'])}.")
    return [*found, *_about_law(content), *_about_truncation(content)]


def _about_width(content: Content) -> str:
    needed, have = content["needed"], content["episodes"]
    width = f"±{needed['size']:g}"
    if needed["episodes"] is None:
        return f"No number of episodes that could be logged gives {width}; you have {have:,}."
    number = f"about {_round(needed['episodes'])} episodes{_range(needed)} for {width}; you have {have:,}"
    enough = ", which are enough" if needed["episodes"] <= have else ""
    return f"{number[:1].upper()}{number[1:]}{enough}, with an expected ±{content['half_width']:.2g}."


def _about_difference(content: Content) -> str:
    found, needed = content["against"], content["against"]["needed"]
    if not found["supported"]:
        return f"No conclusion about the difference from {found['policy']}: the log does not support both values."
    size = f"{found['value']:+.3g} from {found['policy']}"
    ends = "" if found["lower"] is None else f" ({percent(content['level'])} interval {interval(found)})"
    if needed["episodes"] is None:
        return f"The pilot log shows no difference from {found['policy']}{ends}: no number of episodes would."
    no_end = ""
    if needed["upper"] is None:
        no_end = " There is no upper end, because the pilot log does not exclude that they earn the same."
    return (
        f"About {_round(needed['episodes'])} episodes{_range(needed)} until a difference of {size}{ends}, as the pilot "
        f"log estimates it, is significant with a probability of {percent(found['power'])}; you have "
        f"{content['episodes']:,}.{no_end}"
    )


def _range(needed: Content) -> str:
    lower, upper = needed["lower"], needed["upper"]
    if lower is None:
        return ""
    return f" (at least {_round(lower)})" if upper is None else f" ({_round(lower)} to {_round(upper)})"


def _round(number: int) -> str:
    """Two significant digits: more would be false precision."""
    return f"{int(float(f'{number:.2g}')):,}" if number > 99 else f"{number}"


def _about_law(content: Content) -> list[str]:
    found = content["exponent"]
    if found is None or content["square_root_holds"]:
        return []
    return [
        f"The standard error of this log falls as episodes^(−{found['value']:.2f}) ({found['lower']:.2f} to "
        f"{found['upper']:.2f}), not as {SQUARE_ROOT}: the numbers for other sizes are rough."
    ]


def _about_truncation(content: Content) -> list[str]:
    """The shortest length that the log supports and that changes the value by less than the half-width for sure."""
    width = content["half_width"]
    shorter = [one for one in content["truncations"] if one["transitions"] < content["transitions"]]
    known = [one for one in shorter if one["lower"] is not None and one["verdict"] != "not supported"]
    small = [one for one in known if max(-one["lower"], one["upper"]) <= width]
    if not shorter:
        return []
    if not small:
        return [
            f"After each of these truncations the log would not support the value, or it may change by more than "
            f"±{width:.2g}: do not truncate earlier."
        ]
    one = small[0]
    share = one["transitions"] / content["transitions"]
    return [
        f"Truncation after {one['steps']} steps keeps {share:.0%} of the transitions, with an expected "
        f"±{one['half_width']:.2g}, and changes the value by less than the present ±{width:.2g}."
    ]


def expected_rows(content: Content) -> Rows:
    """The number of episodes, the expected half-width, its range, and the half-width of the difference, if any."""
    rows: Rows = []
    for one in content["expected"]:
        row = (f"{one['episodes']:,}", f"±{one['half_width']:.3g}", f"{one['lower']:.3g} to {one['upper']:.3g}")
        rows.append(row if one["difference"] is None else (*row, f"±{one['difference']:.3g}"))
    return rows


def expected_headings(content: Content) -> tuple[str, ...]:
    """Of the columns of `expected_rows`."""
    against = content["against"]
    more = () if against is None else (f"difference from {against['policy']}",)
    return ("episodes", f"expected {percent(content['level'])} interval", "range", *more)


TRUNCATION_HEADINGS = (
    "truncated after",
    "transitions",
    "expected interval",
    "value",
    "change",
    "its interval",
    "after",
    "verdict",
)


def truncation_rows(content: Content) -> Rows:
    """What each truncation would give."""
    return [
        (
            f"{one['steps']:,} steps",
            f"{one['transitions']:,}",
            f"±{one['half_width']:.3g}",
            short(one["value"]),
            short(one["change"]),
            interval(one),
            f"{one['after']:.0%}",
            one["verdict"],
        )
        for one in content["truncations"]
    ]


OF_TRUNCATIONS = (
    "Change: the value minus that of the whole log, on the same bootstrap resamples. After: the share of the discount "
    "weight after truncations, where the method extrapolates."
)


def draw(content: Content) -> Group:
    """The sentences and the tables."""
    parts: list[RenderableType] = [Text(one) for one in content["sentences"]]
    parts.append(_table(f"Expected width of the {_value(content)}", expected_headings(content), expected_rows(content)))
    if content["truncations"]:
        parts.append(_table("Earlier truncation", TRUNCATION_HEADINGS, truncation_rows(content)))
        parts.append(Text(OF_TRUNCATIONS, style="dim"))
    return Group(*parts, Text(_source(content), style="dim"))


def _value(content: Content) -> str:
    return f"{words_of(content['estimand']).column} by {content['estimator']}, {short(content['value'])} on this log"


def _table(title: str, headings: tuple[str, ...], rows: Rows) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _source(content: Content) -> str:
    law = content["exponent"]
    falls = NOTHING if law is None else f"{law['value']:.2f} ({law['lower']:.2f} to {law['upper']:.2f})"
    return (
        f"{content['transitions']:,} transitions in {content['episodes']:,} episodes · log {content['sha256'][:12]} · "
        f"verdict {content['verdict']['level']} · standard error {content['standard_error']:.3g}, falls as "
        f"episodes^−p with p = {falls} · {content['resamples']} bootstrap resamples · seed {content['seed']}"
    )


def chart(content: Content) -> str:
    """The expected half-width against the number of episodes, with its range and the wanted one."""
    curve, needed = content["curve"], content["needed"]
    return band(
        [one["episodes"] for one in curve],
        [one["lower"] for one in curve],
        [one["upper"] for one in curve],
        x_name="episodes",
        y_name="half-width",
        described="Expected half-width of the interval against the number of episodes.",
        middle=[one["half_width"] for one in curve],
        reference=None if needed is None else (needed["size"], f"±{needed['size']:g}"),
        mark=(content["episodes"], f"you have {content['episodes']:,}"),
    )


def page(content: Content) -> str:
    """The whole page, which needs no network."""
    folder = files("average_dice.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "planning.html").read_text(encoding="utf-8"))
    return template.render(
        content=content,
        style=Markup((folder / "style.css").read_text(encoding="utf-8")),
        value=_value(content),
        chart=Markup(chart(content)),
        headings=expected_headings(content),
        rows=expected_rows(content),
        truncation_headings=TRUNCATION_HEADINGS,
        truncations=truncation_rows(content),
        of_truncations=OF_TRUNCATIONS,
        source=_source(content),
    )
