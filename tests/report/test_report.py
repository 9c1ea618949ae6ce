"""The page: its content comes from the JSON form alone, and every string from outside is escaped."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

import average_dice as ad
from average_dice.report import notebook, page
from average_dice.report.charts import NAMES, VALUES, WIDTH, Scale, forest
from average_dice.report.formatting import short
from average_dice.testing.exact_mdps import early_termination

pytestmark = pytest.mark.xdist_group("report")  # on one process, which makes the fixture once


class Tags(HTMLParser):
    """Counts tags, and checks that they close in order."""

    VOID = ("meta", "circle", "line", "rect", "polyline", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(evaluation):
    return page.render(evaluation.to_dict())


def test_it_says_the_answer_first(text, evaluation):
    estimate = evaluation.recommended_estimate
    answer = text.index(f'<p class="value">{short(estimate.value)}')
    assert text.index(f"<strong>{evaluation.verdict.level}</strong>") < answer < text.index("<h2>Estimates</h2>")
    assert f"{short(estimate.lower)} to {short(estimate.upper)}" in text
    for part in ("weights", "diagnostics", "states", "curves", "log", "settings"):
        assert f'<section id="{part}">' in text
    assert evaluation.dataset["sha256"] in text
    assert all(version in text for version in evaluation.versions.values())


def test_it_needs_nothing_from_elsewhere(text):
    tags = Tags(text)
    assert not re.search(r"(src|href|action)\s*=", re.sub(r"&[a-z]+;|&#\d+;[^<]*", "", text))
    assert "url(" not in text
    assert "@import" not in text
    assert not [tag for tag, _ in tags.found if tag in ("script", "img", "link", "iframe", "object")]


def test_strings_from_outside_stay_text(text, evaluation):
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 5  # the task, the metadata, the method in chart and table, the command
    assert "onerror" in text
    assert "<img" not in text
    assert "<script" not in notebook.render(evaluation.to_dict())


def test_charts_have_a_description_for_screen_readers(text):
    charts = [attributes for tag, attributes in Tags(text).found if tag == "svg"]
    assert len(charts) == 5
    assert all(chart["role"] == "img" and len(chart["aria-label"]) > 20 for chart in charts)


def test_from_json_it_is_the_same(text, evaluation, tmp_path):
    evaluation.to_json(tmp_path / "r.json")
    assert page.render(json.loads((tmp_path / "r.json").read_text())) == text
    evaluation.to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == text


@pytest.mark.parametrize(
    "damage",
    [
        {"estimates": [{}]},
        {"estimates": {"a": 1}},
        {"verdict": "weak"},
        {"dataset": {}},
        {"discount": "0.9"},
        {"checks": [{"name": "overlap"}]},
        {"against_behaviour": {"value": 1.0}},
    ],
    ids=str,
)
def test_a_damaged_file(evaluation, tmp_path, damage):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(evaluation.to_dict() | damage))
    with pytest.raises(ad.SettingError, match="damaged, or from another version"):
        page.render_file(path)


@pytest.mark.parametrize(
    "missing",
    ["checks", "no_difference", "judged", "estimand", "behaviour", "estimates[0].return", "estimates[0].interval"],
)
def test_a_file_of_an_earlier_version(evaluation, tmp_path, missing):
    content = evaluation.to_dict() | {"against_behaviour": None, "no_difference": "no difference"}
    if missing.startswith("estimates"):
        del content["estimates"][0][missing.partition(".")[2]]
    else:
        del content[missing]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ad.SettingError, match=r"(?s)damaged, or from another version.*again"):
        page.render_file(path)


def test_the_page_shows_every_check_with_its_status(text, evaluation):
    assert len(evaluation.checks) > 15
    for check in evaluation.to_dict()["checks"]:
        shown = f'aria-label="{check["status"]}">'
        cells = '<th scope="row">{description}</th><td>{value}</td><td class="notes">{good}</td>'
        row = text.partition(cells.format(**{name: escape(words) for name, words in check.items()}))[0]
        assert row.rpartition("<tr>")[2].count(shown) == 1


def test_the_page_shows_the_difference_or_why_there_is_none(text, evaluation):
    content = evaluation.to_dict()
    assert content["no_difference"] is None
    assert f"{content['against_behaviour']['sentence']}." in text
    assert content["against_behaviour"]["judgement"] in content["against_behaviour"]["sentence"]
    without = page.render(content | {"against_behaviour": None, "no_difference": "None, because I say so"})
    assert '<p class="behaviour">None, because I say so.</p>' in without


def test_files_are_in_utf_8_whatever_the_locale(tmp_path):
    code = "import sys; from average_dice.files import write_text_whole; write_text_whole(sys.argv[1], chr(960))"
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "text")], env=ascii_only, check=True)
    assert (tmp_path / "text").read_bytes() == "π".encode()


def test_in_a_notebook(evaluation):
    found = evaluation._repr_html_()
    assert Tags(found).found[0][0] == "div"
    assert found.count("<svg") == 1


def test_without_a_value_without_probabilities_and_with_one_episode():
    mdp = early_termination()
    log = mdp.sample(30, seed=0)
    columns = {name: getattr(log, name) for name in ad.data.columns.REQUIRED}
    unknown = ad.LoggedDataset(**columns)
    for found in (
        ad.evaluate(replace(unknown, target_log_prob=log.behaviour_log_prob), None, 0.9),
        ad.evaluate(unknown, mdp.policy, 0.9, bootstrap=5),
        ad.evaluate(log.select_episodes(np.array([0])), mdp.policy, 0.9),
    ):
        made = page.render(found.to_dict())
        Tags(made)
        assert f"<strong>{found.verdict.level}</strong>" in made
        assert found.verdict.level in ("not supported", "weak")


def one(name, value, lower=None, upper=None, comparable=True):
    return {"estimator": name, "name": name, "value": value, "lower": lower, "upper": upper, "comparable": comparable}


def read_forest(drawn):
    """The numbers back from the drawing, by the ticks of its axis: (lower, upper) of each bar, and the arrows."""
    labels = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="small" text-anchor="middle">([-\d.e+,]+)</text>', drawn)
    (x1, first), (x2, second) = ((float(x), float(label)) for x, label in (labels[0], labels[-1]))
    bars = re.findall(r'<line x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)" y2="[\d.]+" class="bar', drawn)
    numbers = [tuple(first + (float(x) - x1) / (x2 - x1) * (second - first) for x in bar) for bar in bars]
    return numbers, re.findall("[◂▸]", drawn)


def test_the_forest_shows_intervals_in_full():
    """As on the embedded log of CartPole, where the interval of behaviour-return is much wider than the others."""
    shown = [
        one("best", 1.0, 0.9799, 1.0),
        one("behaviour-return", 0.9603, 0.9192, 1.0014),
        one("wide", 0.99, 0.9, 1.1),
    ]
    bars, arrows = read_forest(forest(shown, "best", 0.98, "axis"))
    assert arrows == []
    for bar, estimate in zip(bars, shown, strict=True):
        assert bar == pytest.approx((estimate["lower"], estimate["upper"]), abs=1e-4)


def test_the_forest_marks_intervals_that_leave_the_chart():
    shown = [one("best", 1.0, 0.9, 1.1), one("low", 1.0, -50.0, 1.05), one("wide", 1.0, -50.0, 50.0)]
    drawn = forest(shown, "best", None, "axis")
    bars, arrows = read_forest(drawn)
    assert bars[0] == pytest.approx((0.9, 1.1), abs=1e-3)
    assert bars[1][1] == pytest.approx(1.05, abs=1e-3)
    assert arrows == ["◂", "◂", "▸"]
    edges = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="plain" text-anchor="middle">[◂▸]', drawn)
    assert [float(edge) for edge in edges] == [NAMES, NAMES, WIDTH - VALUES]


def test_a_forest_with_values_far_off():
    drawn = forest(
        [one("best", 1.0, 0.9, 1.1), one("near", 1.2), one("far", 1e9), one("low", -1e9, -2e9, 3.0)],
        "best",
        1.05,
        "axis",
    )
    assert drawn.count("<circle") == 2
    assert "▸" in drawn
    assert "◂" in drawn
    places = [float(place) for place in re.findall(r'(?:cx|x1|x2)="([-0-9.]+)"', drawn)]
    assert all(0 <= place <= 480 for place in places)
    assert forest([one("none", None)], "best", None, "axis") == ""


def test_the_forest_leaves_out_numbers_on_another_scale():
    drawn = forest([one("other", 50.0, comparable=False), one("own", 1.0, 0.9, 1.1)], "best", None, "the axis")
    assert drawn.count("<circle") == 1
    assert "other" not in drawn
    assert "the axis" in drawn
    assert read_forest(drawn)[0][0] == pytest.approx((0.9, 1.1), abs=1e-3)  # the range is that of what is shown
    assert forest([one("other", 50.0, comparable=False)], "best", None, "axis") == ""


def test_ticks_are_round_and_within():
    for low, high in ((0.0, 1.0), (-3e-9, 2e-9), (12345.0, 12399.0), (-1e20, 1e20)):
        ticks = Scale(low, high, 0, 1).ticks()
        assert 2 <= len(ticks) <= 6
        assert all(low - 1e-9 * (high - low) <= tick <= high + 1e-9 * (high - low) for tick in ticks)
    assert Scale(1.0, 1.0, 0, 1).ticks() == [1.0]
