"""Charts as inline SVG: strings of a few shapes, coloured by the style sheet of the page.

Every string from the evaluation is escaped here.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from average_dice.report.formatting import interval, short

Number = int | float

# All sizes in units of the view box, about a pixel each on a phone.
WIDTH = 480
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 40  # margins: tick labels on the left, axis title at the bottom
EDGE, ROW = 10, 36  # of the forest plot: its margins, and the height of a row, which has the name above the bar
LONGEST_NAME = 34  # characters of a name on a phone, where letters are larger, that leave room for the value
LONGEST_LINE, LONGEST_CENTRED = 22, 10  # characters of the name of the dashed line, and of one at the edge
LONGEST_X, LONGEST_Y = 50, 32  # characters that fit along the axes
REACH = 3  # the forest plot shows at least three times the marked interval, so that its width is visible,
NEAR = 4  # and extends to what lies within four times that range or that of half of the values; arrows show the others

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


def _ticks(scale: Scale, number: int = 4) -> list[tuple[Number, str]]:
    """Ticks with labels that have as many digits as it takes to be different."""
    found = scale.ticks(number)
    largest = max((abs(tick) for tick in found), default=0.0)
    step = min((b - a for a, b in pairwise(found)), default=0.0)
    digits = 4 if step <= 0 else max(4, int(np.floor(np.log10(largest)) - np.floor(np.log10(step))) + 1)
    return [(tick, _label(tick, digits)) for tick in found]


def _label(value: Number, digits: int) -> str:
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1_000_000 and digits <= 6 else f"{value:.{digits}g}"


def forest(
    rows: Sequence[Mapping[str, Any]], marked: str, baseline: Number | None, axis: str, line: str = "behaviour"
) -> str:
    """One row per estimate: its value as a dot, its interval as a bar. The dashed line is the behaviour policy.

    `line`: the name of the dashed line, if it is something else.

    The axis contains the whole interval of the marked row and of every row that `matters`, and of the others what is
    near. A value or an end of an interval outside of it is an arrow at the edge, with its number in the tooltip. Rows
    that are not `comparable`, numbers on another scale, are left out.
    """
    known = [one for one in rows if one["value"] is not None and one["comparable"]]
    if not known:
        return ""
    height = TOP + ROW * len(known) + BOTTOM
    x = Scale(*_range_of_forest(known, marked, baseline), EDGE, WIDTH - EDGE)
    shapes = [_x_axis(x, height, axis)]
    if baseline is not None and x.low <= baseline <= x.high:
        shapes.append(_line(x(baseline), TOP, x(baseline), height - BOTTOM, "baseline"))
        anchor = "start" if x(baseline) < WIDTH / 3 else "end" if x(baseline) > 2 * WIDTH / 3 else "middle"
        anchor = "middle" if len(line) <= LONGEST_CENTRED else anchor  # a long name leaves the chart at its edges
        shapes.append(_text(x(baseline), TOP - 2, _shortened(line, LONGEST_LINE), "small", anchor))
    for place, one in enumerate(known):
        kind = "doubtful" if one.get("doubtful") else "accent" if one["estimator"] == marked else "plain"
        shapes.append(_forest_row(one, x, TOP + ROW * place, kind))
    described = f"{len(known)} values with their intervals. " + " ".join(f"{_in_words(one)}." for one in known)
    return _svg(height, shapes, described, f' data-low="{x.low!r}" data-high="{x.high!r}"')


def _in_words(one: Mapping[str, Any]) -> str:
    return f"{one['name']}: {short(one['value'])}" + ("" if one["lower"] is None else f", interval {interval(one)}")


def _forest_row(one: Mapping[str, Any], x: Scale, top: Number, kind: str) -> str:
    """The name and the value in one line, the bar below. The numbers are in data attributes, too, for programs."""
    y = top + 26
    value, lower, upper = (None if one[name] is None else float(one[name]) for name in ("value", "lower", "upper"))
    shapes = [
        f"<title>{escape(_in_words(one))}</title>",
        _text(EDGE, top + 15, _shortened(one["name"], LONGEST_NAME), kind, "start"),
        _text(WIDTH - EDGE, top + 15, short(value), kind, "end"),
        _line(0, top + ROW, WIDTH, top + ROW, "grid"),
    ]
    ends = [number for number in (value, lower, upper) if number is not None]
    if lower is not None and upper is not None and lower <= x.high and upper >= x.low:
        shapes.append(_line(x(max(lower, x.low)), y, x(min(upper, x.high)), y, f"bar {kind}"))
    if value is not None and x.low <= value <= x.high:
        shapes.append(f'<circle cx="{x(value):.2f}" cy="{y:.2f}" r="4" class="{kind}"/>')
    if min(ends) < x.low:
        shapes.append(_arrow(x.start, y, 1, min(ends), kind))
    if max(ends) > x.high:
        shapes.append(_arrow(x.end, y, -1, max(ends), kind))
    numbers = {"value": value, "lower": lower, "upper": upper}
    data = "".join(f' data-{name}="{number!r}"' for name, number in numbers.items() if number is not None)
    return f'<g class="row"{data}>{"".join(shapes)}</g>'


def _arrow(x: Number, y: Number, inwards: int, end: Number, kind: str) -> str:
    """A head with its tip at the edge of the axis, which says how far the interval goes."""
    shape = f'd="M{x:.2f},{y:.2f}l{8 * inwards},-5v10z" class="arrow {kind}" data-end="{end!r}"'
    return f"<path {shape}><title>outside of the chart: {escape(short(end))}</title></path>"


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
    shapes = [_x_axis(x, height, _shortened(axes[0], LONGEST_X)), _y_axis(y, _shortened(axes[1], LONGEST_Y))]
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


def _range_of_forest(known: Sequence[Mapping[str, Any]], marked: str, baseline: Number | None) -> tuple[Number, Number]:
    """REACH times the marked interval around its value, all of what matters, and of the rest what is near."""
    first = next((one for one in known if one["estimator"] == marked), known[0])
    centre = first["value"]
    needed = [] if baseline is None else [baseline]
    for one in (first, *(one for one in known if one.get("matters"))):
        needed += [one[name] for name in ("value", "lower", "upper") if one[name] is not None]
    values = [one["value"] for one in known] + ([] if baseline is None else [baseline])
    ends = [one[end] for one in known for end in ("lower", "upper") if one[end] is not None]
    own_reach = [abs(first[end] - centre) for end in ("lower", "upper") if first[end] is not None]
    reach = REACH * max(own_reach, default=0.0)
    farther = max(reach, REACH * float(np.median(np.abs(np.array(values) - centre))))
    near = [number for number in (*values, *ends) if abs(number - centre) <= NEAR * farther]
    reach = reach or (0.0 if any(number != centre for number in (*near, *needed)) else 0.1 * abs(centre) or 1.0)
    low, high = min(centre - reach, *near, *needed), max(centre + reach, *near, *needed)
    return float(low - 0.04 * (high - low)), float(high + 0.04 * (high - low))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _with_margin(values: Sequence[Number]) -> tuple[Number, Number]:
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _svg(height: Number, shapes: Sequence[str], described: str, data: str = "") -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(described)}"{data}>'
        f"<title>{escape(described)}</title>{''.join(shapes)}</svg>"
    )


def _text(x: Number, y: Number, content: str, kind: str, anchor: str) -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def _line(x1: Number, y1: Number, x2: Number, y2: Number, kind: str) -> str:
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" class="{kind}"/>'


def _x_axis(x: Scale, height: Number, name: str) -> str:
    bottom = height - BOTTOM
    parts = [_line(x.start, bottom, x.end, bottom, "axis")]
    for tick, label in _ticks(x, 5):
        parts.append(_line(x(tick), bottom, x(tick), bottom + 4, "axis"))
        parts.append(_text(x(tick), bottom + 17, label, "small tick", "middle"))
    return "".join([*parts, _text((x.start + x.end) / 2, height - 6, name, "small", "middle")])


def _y_axis(y: Scale, name: str) -> str:
    parts = []
    for tick, label in _ticks(y):
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"))
        parts.append(_text(LEFT - 6, y(tick) + 4, label, "small tick", "end"))
    middle = (y.start + y.end) / 2
    parts.append(
        f'<text x="12" y="{middle:.1f}" class="small" text-anchor="middle" transform="rotate(-90 12 {middle:.1f})">'
        f"{escape(name)}</text>"
    )
    return "".join(parts)
