"""A chart of a band: two curves with the area between them, for bounds against Γ and for distribution functions."""

from collections.abc import Sequence
from itertools import pairwise

from average_dice.report.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Number,
    Scale,
    _line,
    _svg,
    _text,
    _x_axis,
    _y_axis,
)

HEIGHT = 240
Points = Sequence[Number]


def band(
    x: Points,
    lower: Points,
    upper: Points,
    *,
    x_name: str,
    y_name: str,
    described: str,
    middle: Points | None = None,
    ends: tuple[Points, Points] | None = None,
    reference: tuple[Number, str] | None = None,
    mark: tuple[Number, str] | None = None,
    stairs: bool = False,
) -> str:
    """The area between `lower` and `upper`, with further curves.

    - `middle`: a line within the band; `ends`: two dashed lines, the confidence ends.
    - `reference`: a horizontal dashed line with its name; `mark`: a vertical one.
    - `stairs`: the curves are constant between points, as distribution functions are.
    """
    every = [*lower, *upper, *(middle or ()), *(ends[0] if ends else ()), *(ends[1] if ends else ())]
    every += [reference[0]] if reference else []
    low, high = min(every), max(every)
    margin = 0.05 * (high - low) or 0.5
    across = Scale(min(x), max(x), LEFT, WIDTH - RIGHT)
    up = Scale(low - margin, high + margin, HEIGHT - BOTTOM, TOP)
    places = _places(x, lower, across, up, stairs), _places(x, upper, across, up, stairs)
    shapes = [_y_axis(up, y_name), _x_axis(across, HEIGHT, x_name)]
    shapes.append(f'<polygon points="{_joined([*places[0], *places[1][::-1]])}" class="fill" opacity="0.6"/>')
    for line in ends or ():
        dashed = _joined(_places(x, line, across, up, stairs))
        shapes.append(f'<polyline points="{dashed}" fill="none" class="baseline"/>')
    if middle is not None:
        shapes.append(f'<polyline points="{_joined(_places(x, middle, across, up, stairs))}" class="line"/>')
    if reference is not None:
        height = up(reference[0])
        shapes.append(_line(LEFT, height, WIDTH - RIGHT, height, "axis"))
        shapes.append(_text(WIDTH - RIGHT, height - 4, reference[1], "small", "end"))
    if mark is not None and across.low <= mark[0] <= across.high:
        place = across(mark[0])
        shapes.append(_line(place, TOP, place, HEIGHT - BOTTOM, "baseline"))
        near_end = place > WIDTH - 120
        shapes.append(_text(place + (-4 if near_end else 4), TOP + 8, mark[1], "small", "end" if near_end else "start"))
    return _svg(HEIGHT, shapes, described)


def _places(x: Points, y: Points, across: Scale, up: Scale, stairs: bool) -> list[tuple[Number, Number]]:
    found = [(across(a), up(b)) for a, b in zip(x, y, strict=True)]
    if not stairs:
        return found
    steps = [found[0]]
    for before, after in pairwise(found):
        steps += [(after[0], before[1]), after]
    return steps


def _joined(places: Sequence[tuple[Number, Number]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
