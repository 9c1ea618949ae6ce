"""Charts as inline SVG: strings of a few shapes, coloured by the style sheet of the page.

Every string from the evaluation is escaped here.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from average_dice.report.formatting import short

Number = int | float

# All sizes in units of the view box, about a pixel each on a phone.
WIDTH = 480
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 40  # margins: tick labels on the left, axis title at the bottom
NAMES, VALUES, ROW = 150, 70, 24  # of the forest plot: columns for names and for values, and the height of a row
LONGEST_NAME = 22  # characters that fit into NAMES
REACH = 3  # the forest plot shows three times the recommended interval, so that its width is visible,
NEAR = 4  # and extends to values within four times that range; arrows show the others

RATIO_LIMITS = (0.25, 0.5, 1, 2, 4)  # factors of 2 around 1; six colours are easy to tell
RATIO_LABELS = ("below ¼", "¼ to ½", "½ to 1", "1 to 2", "2 to 4", "above 4")


@dataclass(frozen=True)
class Scale:
    """From numbers to positions in the chart."""

    low: Number
    high: Number
    start: Number
    end: Number

    def __call__(self, value: Number) -> Number:
        span = self.high - self.low
        return self.start + (value - self.low) / span * (self.end - self.start) if span > 0 else self.start

    def ticks(self, number: int = 4) -> list[Number]:
        """Round numbers, about this many."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** np.floor(np.log10(span / number))
        step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= number)
        first = int(np.ceil(self.low / step - 1e-9))
        last = int(np.floor(self.high / step + 1e-9))
        return [round(step * one, 12) for one in range(first, last + 1)]


def _tick(value: Number) -> str:
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1_000_000 else f"{value:.4g}"


def forest(rows: Sequence[Mapping[str, Any]], recommended: str, baseline: Number | None, axis: str) -> str:
    """One row per estimate: its value as a dot, its interval as a bar. The dashed line is the behaviour policy.

    A value or an end of an interval outside the range of the chart is an arrow at its edge. Numbers on another scale
    are left out.
    """
    known = [one for one in rows if one["value"] is not None and one["comparable"]]
    if not known:
        return ""
    height = TOP + ROW * len(known) + BOTTOM
    x = Scale(*_range_of_forest(known, recommended, baseline), NAMES, WIDTH - VALUES)
    shapes = [_x_axis(x, height, axis)]
    if baseline is not None and x.low <= baseline <= x.high:
        shapes.append(_line(x(baseline), TOP, x(baseline), height - BOTTOM, "baseline"))
        shapes.append(_text(x(baseline), TOP - 2, "behaviour", "small", "middle"))
    for place, one in enumerate(known):
        kind = "accent" if one["estimator"] == recommended else "plain"
        shapes += _forest_row(one, x, TOP + ROW * (place + 0.5), kind)
    described = f"Forest plot of {len(known)} estimates with intervals; {recommended} is marked."
    return _svg(height, shapes, described)


def _forest_row(one: Mapping[str, Any], x: Scale, y: Number, kind: str) -> list[str]:
    name = one["name"] if len(one["name"]) <= LONGEST_NAME else one["name"][: LONGEST_NAME - 1] + "…"
    shapes = [
        _text(NAMES - 8, y + 4, name, kind, "end"),
        _text(WIDTH - VALUES + 8, y + 4, short(one["value"]), kind, "start"),
    ]
    points = [one["value"]]
    if one["lower"] is not None:
        points += [one["lower"], one["upper"]]
        start, end = (min(max(x(number), x.start), x.end) for number in (one["lower"], one["upper"]))
        shapes.append(_line(start, y, end, y, f"bar {kind}"))
    if x.low <= one["value"] <= x.high:
        shapes.append(f'<circle cx="{x(one["value"]):.1f}" cy="{y:.1f}" r="4" class="{kind}"/>')
    if min(points) < x.low:
        shapes.append(_text(x.start, y + 4, "◂", kind, "middle"))
    if max(points) > x.high:
        shapes.append(_text(x.end, y + 4, "▸", kind, "middle"))
    return shapes


def bars(values: Sequence[Number], x_name: str, y_name: str, described: str, most: int = 60) -> str:
    """Bars in the order given, at most `most` of them, so that each is wide enough to see."""
    shown = list(values)[:most]
    height = 200
    x = Scale(0, max(len(shown), 1), LEFT, WIDTH - RIGHT)
    y = Scale(0, max([*shown, 1e-12]) * 1.05, height - BOTTOM, TOP)
    shapes = [_y_axis(y, y_name), _line(LEFT, height - BOTTOM, WIDTH - RIGHT, height - BOTTOM, "axis")]
    width = max((x.end - x.start) / max(len(shown), 1) - 1, 0.5)
    for place, value in enumerate(shown):
        top = y(value)
        size = f'width="{width:.1f}" height="{height - BOTTOM - top:.1f}"'
        shapes.append(f'<rect x="{x(place):.1f}" y="{top:.1f}" {size} class="fill"/>')
    rest = f", the first {most} of {len(values)}" if len(values) > most else ""
    shapes.append(_text((LEFT + WIDTH - RIGHT) / 2, height - 8, x_name + rest, "small", "middle"))
    return _svg(height, shapes, described)


def lines(
    curves: Mapping[str, tuple[Sequence[Number], Sequence[Number | None]]], x_name: str, y_name: str, described: str
) -> str:
    """One or several lines; several have their names beside them."""
    points = {name: [(a, b) for a, b in zip(*curve, strict=True) if b is not None] for name, curve in curves.items()}
    every = [point for curve in points.values() for point in curve]
    if not every:
        return ""
    height = 220
    low, high = min(b for _, b in every), max(b for _, b in every)
    margin = 0.05 * (high - low) or 0.5
    right = RIGHT + (110 if len(points) > 1 else 0)
    x = Scale(min(a for a, _ in every), max(max(a for a, _ in every), 1e-12), LEFT, WIDTH - right)
    y = Scale(low - margin if low != 0 else 0.0, high + margin, height - BOTTOM, TOP)
    shapes = [_x_axis(x, height, x_name), _y_axis(y, y_name)]
    for place, (name, curve) in enumerate(points.items()):
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in curve)
        shapes.append(f'<polyline points="{path}" class="line line{place % 6}"/>')
        if len(points) > 1 and curve:
            shapes.append(
                _text(WIDTH - right + 4, TOP + 14 * (place + 1), f"{name}", f"small line{place % 6}", "start")
            )
    return _svg(height, shapes, described)


def scatter(
    xs: Sequence[Number], ys: Sequence[Number], colours: Sequence[Number], axes: Sequence[str], described: str
) -> str:
    """Points on two axes, coloured by the ratio."""
    height = 300
    x = Scale(*_with_margin(xs), LEFT, WIDTH - RIGHT)
    y = Scale(*_with_margin(ys), height - BOTTOM, TOP)
    shapes = [_x_axis(x, height, axes[0]), _y_axis(y, axes[1])]
    for a, b, ratio in sorted(zip(xs, ys, colours, strict=True), key=lambda point: point[2]):
        colour = bisect_right(RATIO_LIMITS, ratio)
        shapes.append(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" class="ratio{colour}"/>')
    return _svg(height, shapes, described)


def against_diagonal(xs: Sequence[Number], ys: Sequence[Number], axes: Sequence[str], described: str) -> str:
    """Frequencies as dots; on the dashed line both are the same."""
    height = 300
    x, y = Scale(0, 1, LEFT, WIDTH - RIGHT), Scale(0, 1, height - BOTTOM, TOP)
    shapes = [_x_axis(x, height, axes[0]), _y_axis(y, axes[1]), _line(x(0), y(0), x(1), y(1), "baseline")]
    shapes += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="4" class="accent"/>' for a, b in zip(xs, ys, strict=True)]
    return _svg(height, shapes, described)


def _range_of_forest(
    known: Sequence[Mapping[str, Any]], recommended: str, baseline: Number | None
) -> tuple[Number, Number]:
    """Around the recommended value: REACH times its interval, and every value and end of an interval that is near."""
    first = next((one for one in known if one["estimator"] == recommended), known[0])
    centre = first["value"]
    values = [one["value"] for one in known] + ([] if baseline is None else [baseline])
    ends = [one[end] for one in known for end in ("lower", "upper") if one[end] is not None]
    own_reach = [abs(first[end] - centre) for end in ("lower", "upper") if first[end] is not None]
    reach = REACH * max([*own_reach, float(np.median(np.abs(np.array(values) - centre)))])
    reach = reach or 0.1 * abs(centre) or 1.0
    near = [number for number in (*values, *ends) if abs(number - centre) <= NEAR * reach]
    low, high = min(centre - reach, *near), max(centre + reach, *near)
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _with_margin(values: Sequence[Number]) -> tuple[Number, Number]:
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _svg(height: Number, shapes: Sequence[str], described: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(described)}">'
        f"<title>{escape(described)}</title>{''.join(shapes)}</svg>"
    )


def _text(x: Number, y: Number, content: str, kind: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def _line(x1: Number, y1: Number, x2: Number, y2: Number, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _x_axis(x: Scale, height: Number, name: str) -> str:
    bottom = height - BOTTOM
    parts = [_line(x.start, bottom, x.end, bottom, "axis")]
    for tick in x.ticks():
        parts.append(_line(x(tick), bottom, x(tick), bottom + 4, "axis"))
        parts.append(_text(x(tick), bottom + 17, _tick(tick), "small", "middle"))
    return "".join([*parts, _text((x.start + x.end) / 2, height - 6, name, "small", "middle")])


def _y_axis(y: Scale, name: str) -> str:
    parts = []
    for tick in y.ticks():
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"))
        parts.append(_text(LEFT - 6, y(tick) + 4, _tick(tick), "small", "end"))
    middle = (y.start + y.end) / 2
    parts.append(
        f'<text x="12" y="{middle:.1f}" class="small" text-anchor="middle" transform="rotate(-90 12 {middle:.1f})">'
        f"{escape(name)}</text>"
    )
    return "".join(parts)
