"""The behaviour policy has one value with one interval: in the JSON, the terminal, the page, the plot and compare."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import jax
import numpy as np
import pytest
from rich.console import Console

import average_dice as ad
from average_dice.estimators import REGISTRY
from average_dice.inference.behaviour import LOGGED_RETURNS
from average_dice.inference.difference import behaviour_value
from average_dice.report import notebook, page
from average_dice.report.formatting import short
from average_dice.testing.exact_mdps import early_termination, truncated

BEST = "average-dice-blend"
CASES = {  # log, discount, and whether the log lacks rewards of the value
    "terminated": (early_termination().sample(40, seed=0), 0.9, False),
    "truncated": (truncated().sample(40, seed=0), 0.95, True),
    "truncated, discount 0": (truncated().sample(40, seed=0), 0.0, False),
    "discount 1": (early_termination().sample(40, seed=0), 1.0, False),
    "one step": (replace(early_termination(), transition=np.zeros((5, 2, 5))).sample(40, seed=0), 0.9, False),
}
POLICY = early_termination().policy


class Rows(HTMLParser):
    """The cells of every row of every table."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module", params=CASES)
def case(request):
    log, discount, lacks = CASES[request.param]
    found = ad.evaluate(log, POLICY, discount, bootstrap=4)
    return log, found, ad.compare(log, {"one": POLICY}, discount, bootstrap=4), lacks


def text_of(shown, width=100):
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def cells(text, name):
    """The cells of the row of this name in a table of a terminal."""
    rows = ([cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line)
    return next(row for row in rows if row[0] == name)


def test_it_is_the_mean_of_the_logged_returns_or_the_estimate_by_the_same_method(case):
    log, found, _, lacks = case
    behaviour = found.to_dict()["behaviour"]
    problem = ad.Problem(log, POLICY, found.discount)
    if lacks:
        value, replicates = behaviour_value(REGISTRY[BEST].make(), problem, 4, 0, key=jax.random.key(0))
        assert (behaviour["estimator"], behaviour["value"]) == (BEST, value)
        assert (behaviour["upper"] + behaviour["lower"]) / 2 == pytest.approx(value)  # Student's t: few resamples
        spread = replicates.std(ddof=1) * np.sqrt(40 / 39)
        assert behaviour["upper"] - value == pytest.approx(3.1824 * spread, rel=1e-4)  # t with 3 degrees of freedom
        return
    returns = problem.by_episode(problem.normaliser * problem.discount**log.step * log.reward)
    assert behaviour["estimator"] == LOGGED_RETURNS
    assert behaviour["value"] == pytest.approx(returns.mean())
    half = 2.0227 * returns.std(ddof=1) / np.sqrt(40)  # t with 39 degrees of freedom
    assert (behaviour["lower"], behaviour["upper"]) == pytest.approx(
        (returns.mean() - half, returns.mean() + half), rel=1e-3
    )
    own = next(one for one in found.to_dict()["estimates"] if one["estimator"] == LOGGED_RETURNS)
    assert all(own[name] == behaviour[name] for name in ("value", "return", "lower", "upper", "level", "interval"))


def test_the_number_is_the_same_everywhere(case):
    _, found, comparison, lacks = case
    content = found.to_dict()
    behaviour = content["behaviour"]
    assert comparison.to_dict()["behaviour"] == behaviour
    value, ends = short(behaviour["value"]), f"{short(behaviour['lower'])} to {short(behaviour['upper'])}"
    assert f" {value} (95% interval {ends})" in behaviour["sentence"]

    name = "behaviour policy" if lacks else LOGGED_RETURNS
    assert cells(text_of(found), name)[1:3] == [value, ends]
    assert cells(text_of(comparison), "behaviour")[1:3] == [value, ends]
    made = page.render(content)
    shown = (text_of(found), text_of(comparison), made, notebook.render(content))
    assert all(behaviour["sentence"] in " ".join(text.split()) for text in shown)
    row = next(row for row in Rows(made).rows if row[:1] == [name])
    assert row[1:4] == [value, short(behaviour["lower"]), short(behaviour["upper"])]

    forest = made[made.index("<svg") : made.index("</svg>")]
    labels = re.findall(r'class="plain" text-anchor="(?:end|start)">([^<]+)<', forest)
    assert labels[labels.index(name) + 1] == value
    dashed, dot = re.search(r'<line x1="([\d.]+)"[^>]*class="baseline"', forest), labels[::2].index(name)
    drawn = re.findall(r'<circle cx="([\d.]+)"[^>]*class="plain"', forest)
    assert dashed[1] == drawn[dot]


def test_if_there_are_two_numbers_the_log_return_says_that_it_ends_at_truncation(case):
    _, found, _, lacks = case
    text, made = text_of(found), page.render(found.to_dict())
    assert ("rewards up to truncation only" in text) == ("rewards up to truncation only" in made) == lacks
    assert ("│ behaviour policy " in text) == lacks
    if lacks:
        assert cells(text, "behaviour-return ‡")[1] == short(found.estimates[LOGGED_RETURNS].value)
        assert "‡ rewards up to truncation only" in " ".join(text.split())
        assert '<p class="legend">‡ rewards up to truncation only</p>' in made


def test_the_difference_is_of_two_values_by_the_same_method(case):
    _, found, _, _ = case
    gain = found.against_behaviour
    assert gain.value == found.estimates[BEST].value - gain.baseline
    assert f", both by {BEST} on the same bootstrap resamples" in found.to_dict()["against_behaviour"]["sentence"]


def test_a_comparison_names_the_largest_of_the_numbers_it_shows(case):
    _, _, comparison, _ = case
    content = comparison.to_dict()
    own = content["policies"][0]["estimates"][0]["value"]
    assert content["best"] == ("one" if own >= content["behaviour"]["value"] else "behaviour")
    name = {"reward-per-step": "value", "total-reward": "total reward", "one-step-reward": "reward"}
    assert content["summary"].startswith(f"Largest {name[content['policies'][0]['estimand']]}: ")


def test_the_average_reward_is_in_no_plot_where_it_is_no_value(case):
    _, found, _, _ = case
    reward = next(one for one in found.to_dict()["estimates"] if one["estimator"] == "average-reward")
    made = page.render(found.to_dict())
    forest = made[made.index("<svg") : made.index("</svg>")]
    is_value = found.dataset["lengths"][2] == 1
    assert ("average-reward" in forest) == is_value
    assert (reward["return"] is not None) == is_value


def test_without_an_estimate_there_is_no_value_on_a_truncated_log():
    log = CASES["truncated"][0]
    for changes in ({"bootstrap": 0}, {"estimators": "behaviour-return"}):
        found = ad.evaluate(log, POLICY, 0.95, **{"bootstrap": 4} | changes)
        content = found.to_dict()
        assert content["behaviour"]["value"] is None
        assert content["behaviour"]["sentence"].startswith("Behaviour policy: no value, because the log ends at")
        assert content["behaviour"]["sentence"] in " ".join(text_of(found).split())
        assert 'class="baseline"' not in page.render(content)
    only = ad.evaluate(CASES["terminated"][0], POLICY, 0.9, estimators="behaviour-return", bootstrap=0)
    assert only.behaviour.value == only.estimates[LOGGED_RETURNS].value
    assert only.behaviour.interval is not None  # it needs no resamples
    assert "Student" in only.behaviour.interval.kind


@pytest.mark.parametrize("width", [80, 100])
def test_numbers_of_a_comparison_are_in_full(case, width):
    _, found, comparison, _ = case
    for shown in (found, comparison, found.rendered(truth=1.0)):
        text = text_of(shown, width)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
    row = cells(text_of(comparison, width), "one")
    best = found.to_dict()["estimates"][0]
    assert row[1:3] == [short(best["value"]), f"{short(best['lower'])} to {short(best['upper'])}"]
    if found.estimand == "reward-per-step":
        assert row[3] == short(best["return"])
        assert cells(text_of(found, width), f"{BEST} ★")[3] == short(best["return"])
