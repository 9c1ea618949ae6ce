"""The page: its content comes from the JSON form alone, and every string from outside is escaped."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from markupsafe import escape

import average_dice as ad
from average_dice.data.names import Names
from average_dice.inference.rules import RULES
from average_dice.inference.state_map import _principal
from average_dice.report import notebook, page
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
    sentence, verdict = text.index('<p class="answer '), text.index(f"<strong>{evaluation.verdict.level}</strong>")
    answer = text.index(f'<p class="value">{short(estimate.value)}')
    assert sentence < verdict < answer < text.index('<section id="checks">') < text.index("<h2>Estimates</h2>")
    assert f"{short(estimate.lower)} to {short(estimate.upper)}" in text
    for part in ("numbers", "weights", "diagnostics", "curves", "log", "settings"):
        assert text.index('<section id="technical">') < text.index(f'<details id="{part}">')
    assert text.index('<section id="states">') < text.index('<section id="technical">')
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
        cells = (
            '<th scope="row">{description}</th><td class="text" data-label="here">{value}</td>'
            '<td class="notes" data-label="good">{good}</td>'
        )
        row = text.partition(cells.format(**{name: escape(words) for name, words in check.items()}))[0]
        assert row.rpartition("<tr>")[2].count(shown) == 1
        listed = f"<strong>{escape(check['description'])}:</strong>"
        assert text.count(listed) == (check["status"] != "info")
        assert check["explanation"].endswith(".")
        assert str(escape(check["explanation"])) in text or check["status"] == "info"


def test_every_rule_is_explained_in_plain_words():
    explanations = [rule.explanation for rule in RULES]
    assert all(20 < len(one) < 120 for one in explanations)
    assert len(set(explanations)) == len(RULES)


def test_headings_are_in_order(text, comparison):
    for made in (text, page.render_comparison(comparison.to_dict())):
        levels = [int(tag[1]) for tag, _ in Tags(made).found if re.fullmatch(r"h\d", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_head_has_the_title_the_names_and_the_date(evaluation):
    content = evaluation.to_dict() | {"title": "Which dose?", "policy": "new rule", "log": "june.csv"}
    made = page.render(content | {"date": "2031-02-03"})
    assert "<h1>Which dose?</h1>" in made
    head = made[made.index("<header>") : made.index("</header>")]
    assert [found in head for found in ("new rule", "june.csv, ", "2031-02-03")] == [True] * 3
    earlier = {name: one for name, one in content.items() if name not in ("title", "policy", "log", "date")}
    assert "<h1>What would the policy earn?</h1>" in page.render(earlier)  # a file of an earlier version


def test_columns_and_actions_are_called_by_their_names():
    mdp = early_termination()
    log = mdp.sample(30, seed=0)
    width = log.observation.shape[1]
    names = Names(tuple(f"name of {column}" for column in range(width)), ("stay", "go"))
    named = replace(log, names=names, categorical=(1,))
    found = ad.evaluate(named, mdp.policy, 0.9, estimators="recommended", bootstrap=2, features=(1, 0))
    assert found.to_dict()["dataset"]["names"]["actions"] == ["stay", "go"]
    made = page.render(found.to_dict())
    assert "discrete (stay, go)" in made
    assert f"{width} dimensions (name of 0, name of 1" in made
    assert "categorical: name of 1<" in made
    assert "Across: name of 1. Up: name of 0." in made


def test_components_say_which_columns_they_are_made_of():
    """Columns 0 and 2 are the same, so they are the first component, each with half of the weight."""
    generator = np.random.default_rng(0)
    shared, other, codes = generator.normal(size=100), generator.normal(size=100), generator.integers(0, 3, 100)
    observation = np.column_stack([shared, other, shared, codes])
    encoding = ad.data.Encoding.of((3,), observation)
    assert encoding.sources(4).tolist() == [0, 1, 2, 3, 3, 3]
    assert len(encoding.sources(4)) == encoding.encode(observation).shape[1]
    _, axes = _principal(encoding, observation, Names(("a", "b", "c", "d")))
    assert axes[0].startswith("first component (mostly a, c), ") or axes[0].startswith(
        "first component (mostly c, a), "
    )
    _, unnamed = _principal(encoding, observation, Names())
    assert unnamed[0].startswith("first component, ")


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
