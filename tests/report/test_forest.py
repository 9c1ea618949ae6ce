"""The forest plot: what is drawn are the numbers, to a pixel, and what is not drawn has an arrow."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from average_dice.report import page
from average_dice.report.charts import EDGE, WIDTH, Scale, forest
from average_dice.report.formatting import short

PIXEL = 1.0  # units of the view box
START, END = EDGE, WIDTH - EDGE


def one(name, value, lower=None, upper=None, comparable=True, matters=False):
    numbers = {"value": value, "lower": lower, "upper": upper}
    return {"estimator": name, "name": name, "comparable": comparable, "matters": matters} | numbers


class Row:
    """A row of the plot, read back from its drawing."""

    def __init__(self, drawn):
        self.data = {name: float(number) for name, number in re.findall(r' data-(value|lower|upper)="([^"]+)"', drawn)}
        bar = re.search(r'<line x1="([-\d.]+)" y1="[\d.]+" x2="([-\d.]+)" y2="[\d.]+" class="bar', drawn)
        self.bar = None if bar is None else (float(bar[1]), float(bar[2]))
        dot = re.search(r'<circle cx="([-\d.]+)"', drawn)
        self.dot = None if dot is None else float(dot[1])
        arrows = re.findall(r'<path d="M([\d.]+),[\d.]+l(-?)8,-5v10z" class="arrow \w+" data-end="([^"]+)"', drawn)
        self.arrows = {("right" if side else "left"): (float(x), float(end)) for x, side, end in arrows}
        self.tooltips = [unescape(text) for text in re.findall("<title>(.*?)</title>", drawn)]


def read(drawn):
    """The range of the axis, and the rows."""
    low, high = (float(re.search(rf'<svg [^>]*data-{end}="([^"]+)"', drawn)[1]) for end in ("low", "high"))
    rows = [Row(part) for part in re.findall(r'<g class="row".*?</g>', drawn, flags=re.DOTALL)]
    return Scale(low, high, START, END), rows


def assert_drawn_right(row, given, x):
    """Every end lies where it belongs, or outside of the axis, with an arrow that says where."""
    known = {name: given[name] for name in ("value", "lower", "upper") if given[name] is not None}
    assert row.data == known
    inside = {name: x.low <= number <= x.high for name, number in known.items()}
    assert (row.dot is not None) == inside["value"]
    if row.dot is not None:
        assert row.dot == pytest.approx(x(given["value"]), abs=PIXEL)
    if row.bar is not None:
        assert START - PIXEL <= row.bar[0] <= row.bar[1] + 1e-9 <= END + PIXEL
        for place, name, edge in ((row.bar[0], "lower", START), (row.bar[1], "upper", END)):
            assert place == pytest.approx(x(given[name]) if inside[name] else edge, abs=PIXEL)
    elif "lower" in known:
        assert given["lower"] > x.high or given["upper"] < x.low
    smallest, largest = min(known.values()), max(known.values())
    expected = {"left": (START, smallest)} if smallest < x.low else {}
    expected |= {"right": (END, largest)} if largest > x.high else {}
    assert row.arrows == expected
    for _, end in expected.values():
        assert f"outside of the chart: {short(end)}" in row.tooltips
    assert all(short(number) in row.tooltips[0] for number in known.values())


def assert_ticks_are_right(drawn, x):
    """Labels are true and different, whatever `data-low` says."""
    ticks = re.findall(r'<text x="([-\d.]+)" y="[\d.]+" class="small tick" text-anchor="middle">([^<]+)<', drawn)
    assert len({label for _, label in ticks}) == len(ticks) >= 1
    for place, label in ticks:
        assert float(place) == pytest.approx(x(float(label.replace(",", ""))), abs=PIXEL)


@st.composite
def rows_of_a_plot(draw):
    """Between numbers of very different size, with and without intervals."""
    centre = draw(st.floats(-1e3, 1e3))
    rows = []
    for place in range(draw(st.integers(1, 6))):
        scale = 10.0 ** draw(st.integers(-3, 6))
        value = centre + scale * draw(st.floats(-1, 1))
        below, above = (scale * draw(st.floats(0, 3)) for _ in range(2))
        ends = (value - below, value + above) if draw(st.booleans()) else (None, None)
        rows.append(one(f"row {place}", value, *ends, matters=draw(st.booleans())))
    return rows, draw(st.none() | st.floats(-1e3, 1e3))


@given(rows_of_a_plot())
def test_what_is_drawn_are_the_numbers(drawn_from):
    given, baseline = drawn_from
    drawn = forest(given, "row 0", baseline, "axis")
    x, rows = read(drawn)
    assert len(rows) == len(given)
    for row, expected in zip(rows, given, strict=True):
        assert_drawn_right(row, expected, x)
        if expected["matters"] or expected["estimator"] == "row 0":
            assert row.arrows == {}
    assert_ticks_are_right(drawn, x)
    dashed = re.search(r'<line x1="([-\d.]+)"[^>]*class="baseline"', drawn)
    assert (dashed is not None) == (baseline is not None)
    if dashed:
        assert float(dashed[1]) == pytest.approx(x(baseline), abs=PIXEL)


def test_the_reader_finds_a_bar_that_is_cut_off():
    """The test above can fail: a bar that ends before its interval does is found."""
    given = one("best", 1.0, 0.9, 1.1)
    drawn = forest([given], "best", None, "axis")
    x, (row,) = read(drawn)
    assert_drawn_right(row, given, x)
    row.bar = (row.bar[0] + 3, row.bar[1])
    with pytest.raises(AssertionError):
        assert_drawn_right(row, given, x)


def test_the_behaviour_policy_is_shown_in_full_on_the_page(evaluation):
    """As on the embedded log of CartPole, where the interval of behaviour-return is much wider than the others."""
    content = evaluation.to_dict()
    behaviour = {"lower": -40.0, "upper": 40.0, "value": 0.5}
    drawn = page.render(content | {"behaviour": content["behaviour"] | behaviour})
    x, rows = read(drawn[drawn.index("<svg") : drawn.index("</svg>")])
    (row,) = [row for row in rows if row.data == behaviour]
    assert row.arrows == {}
    assert row.bar == pytest.approx((x(-40.0), x(40.0)), abs=PIXEL)


def test_intervals_far_off_have_arrows():
    shown = [one("best", 1.0, 0.9, 1.1), one("low", 1.0, -50.0, 1.05), one("wide", 1.0, -50.0, 50.0), one("far", 1e9)]
    _, rows = read(forest(shown, "best", None, "axis"))
    assert [sorted(row.arrows) for row in rows] == [[], ["left"], ["left", "right"], ["right"]]
    assert forest([one("none", None)], "best", None, "axis") == ""


def test_the_marked_interval_is_wide_enough_to_see():
    """Others that are near but much wider do not hide it entirely; others far off do not hide it at all."""
    _, rows = read(forest([one("best", 1.0, 0.99, 1.01), one("far", 500.0, 0.0, 1000.0)], "best", 1.02, "axis"))
    assert rows[0].bar[1] - rows[0].bar[0] > (END - START) / 10


def test_numbers_on_another_scale_are_left_out():
    drawn = forest([one("other", 50.0, comparable=False), one("own", 1.0, 0.9, 1.1)], "best", None, "the axis")
    x, (row,) = read(drawn)
    assert "other" not in drawn
    assert "the axis" in drawn
    assert x.high < 2  # the range is that of what is shown
    assert row.data["value"] == 1.0
    assert forest([one("other", 50.0, comparable=False)], "best", None, "axis") == ""


def test_ticks_are_round_and_within():
    for low, high in ((0.0, 1.0), (-3e-9, 2e-9), (12345.0, 12399.0), (-1e20, 1e20)):
        ticks = Scale(low, high, 0, 1).ticks()
        assert 2 <= len(ticks) <= 6
        assert all(low - 1e-9 * (high - low) <= tick <= high + 1e-9 * (high - low) for tick in ticks)
    assert Scale(1.0, 1.0, 0, 1).ticks() == [1.0]
