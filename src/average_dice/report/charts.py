"""Charts as inline SVG: strings of a few shapes, coloured by the classes of the page they stand on.

Every text that comes from outside is escaped here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from average_dice.report.formatting import short

Number = int | float

WIDTH = 480
LONGEST_NAME = 22
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 40


@dataclass(frozen=True)
class Scale:
    """From numbers to places on the page."""

    low: Number
    high: Number
    start: Number
    end: Number

    def __call__(self, value: Number) -> Number:
        span = self.high - self.low
        return self.start + (value - self.low) / span * (self.end - self.start) if span > 0 else self.start

    def ticks(self, number: int = 4) -> list[Number]:
        """About so many round numbers."""
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


def forest(estimates: Sequence[Mapping[str, Any]], recommended: str, baseline: Number | None) -> str:
    """A line for each estimate: its value as a dot, its interval as a bar; what is far off is an arrow at the edge."""
    known = [one for one in estimates if one["value"] is not None]
    if not known:
        return ""
    low, high = _range_of_forest(known, recommended, baseline)
    left, row = 150, 24
    height = TOP + row * len(known) + BOTTOM
    x = Scale(low, high, left, WIDTH - 70)
    shapes = [_x_axis(x, height, "J(π), a reward per step")]
    if baseline is not None and low <= baseline <= high:
        shapes.append(_line(x(baseline), TOP, x(baseline), height - BOTTOM, "baseline"))
        shapes.append(_text(x(baseline), TOP - 2, "behaviour", "small", "middle"))
    for place, one in enumerate(known):
        y = TOP + row * (place + 0.5)
        kind = "accent" if one["estimator"] == recommended else "plain"
        name = one["estimator"] if len(one["estimator"]) <= LONGEST_NAME else one["estimator"][: LONGEST_NAME - 1] + "…"
        shapes.append(_text(left - 8, y + 4, name, kind, "end"))
        shapes.append(_text(WIDTH - 62, y + 4, short(one["value"]), kind, "start"))
        if one["lower"] is not None:
            ends = [min(max(x(one[end]), x.start), x.end) for end in ("lower", "upper")]
            shapes.append(_line(ends[0], y, ends[1], y, f"bar {kind}"))
        if low <= one["value"] <= high:
            shapes.append(f'<circle cx="{x(one["value"]):.1f}" cy="{y:.1f}" r="4" class="{kind}"/>')
        else:
            shapes.append(
                _text(
                    x.end if one["value"] > high else x.start,
                    y + 4,
                    "▸" if one["value"] > high else "◂",
                    kind,
                    "middle",
                )
            )
    described = f"Forest plot of {len(known)} estimates with intervals; {recommended} is marked."
    return _svg(height, shapes, described)


def bars(values: Sequence[Number], x_name: str, y_name: str, described: str, most: int = 60) -> str:
    """Bars in the order given; the first so many of them."""
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
    """One or several lines, each with its name at its end."""
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
    """Points on two axes, darker where the ratio is larger."""
    height = 300
    x = Scale(*_with_margin(xs), LEFT, WIDTH - RIGHT)
    y = Scale(*_with_margin(ys), height - BOTTOM, TOP)
    shapes = [_x_axis(x, height, axes[0]), _y_axis(y, axes[1])]
    for a, b, ratio in sorted(zip(xs, ys, colours, strict=True), key=lambda point: point[2]):
        bin_ = int(np.clip(np.floor(np.log2(max(ratio, 1e-9)) + 3), 0, 5))  # below ¼, ½, 1, 2, 4, above
        shapes.append(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" class="ratio{bin_}"/>')
    return _svg(height, shapes, described)


def _range_of_forest(
    known: Sequence[Mapping[str, Any]], recommended: str, baseline: Number | None
) -> tuple[Number, Number]:
    """Wide enough for the recommended interval three times over, and for whatever else is near."""
    first = next((one for one in known if one["estimator"] == recommended), known[0])
    centre = first["value"]
    ends = [end for one in (first,) for end in (one["lower"], one["upper"]) if end is not None]
    values = np.array([one["value"] for one in known] + ([baseline] if baseline is not None else []))
    reach = 3 * max([abs(end - centre) for end in ends] + [float(np.median(np.abs(values - centre)))])
    reach = reach or 0.1 * abs(centre) or 1.0
    near = values[np.abs(values - centre) <= 4 * reach]
    low, high = min(centre - reach, near.min()), max(centre + reach, near.max())
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
