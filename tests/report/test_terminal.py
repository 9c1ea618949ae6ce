"""The terminal: every number in full, whatever the width, and nothing but what the JSON form says."""

import io

import pytest
from rich.console import Console

import average_dice as ad
from average_dice.report import terminal
from average_dice.report.formatting import short
from average_dice.testing.exact_mdps import early_termination
from conftest import columns_of

pytestmark = pytest.mark.xdist_group("report")  # on one process, which makes the fixture once


def drawn(renderable, width):
    console = Console(width=width, no_color=True, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def tiny_rewards():
    """Values with exponents, which take the most room."""
    mdp = early_termination()
    log = mdp.sample(40, seed=0)
    scaled = ad.LoggedDataset(**columns_of(log) | {"reward": -1.234e-7 * log.reward})
    names = "recommended,average-dice-tabular,behaviour-return,wpdis"
    return ad.evaluate(scaled, mdp.policy, 0.9, estimators=names, bootstrap=4).to_dict()


def test_numbers_are_never_shortened(tiny_rewards):
    for width in (80, 100, 120):
        text = drawn(terminal.draw_evaluation(tiny_rewards), width)
        table = [line for line in text.splitlines() if "│" in line]
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        for one, line in zip(tiny_rewards["estimates"], table, strict=True):
            assert one["estimator"] in line
            assert short(one["value"]) in line
            assert f"{short(one['lower'])} to {short(one['upper'])}" in line
            assert short(one["return"]) in line


@pytest.fixture(scope="module")
def extreme_numbers(tiny_rewards):
    """The longest numbers there are, of two estimates with long names."""
    numbers = {"value": -1.2345e-300, "lower": -9.8765e-301, "upper": 1.2345e300, "return": -1.2345e301}
    estimates = [one | numbers for one in tiny_rewards["estimates"]]
    return tiny_rewards | {"estimates": estimates, "behaviour": tiny_rewards["behaviour"] | numbers}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_longest_numbers_are_whole_at_every_width(extreme_numbers, width):
    text = drawn(terminal.draw_evaluation(extreme_numbers, errors={}), width)
    cells = [cell.strip() for line in text.splitlines() if "│" in line for cell in line.split("│")[1:-1]]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    number = len(extreme_numbers["estimates"])
    assert cells.count("-1.234e-300") == number
    halves = [one for one in cells if one in ("-9.876e-301 to", "1.234e+300")]
    whole = [one for one in cells if one == "-9.876e-301 to 1.234e+300"]
    assert len(halves) / 2 + len(whole) == number
    assert all(any(cell.startswith(one["estimator"][:8]) for cell in cells) for one in extreme_numbers["estimates"])


def test_a_comparison_keeps_its_numbers_whole():
    mdp = early_termination()
    log = mdp.sample(20, seed=0)
    scaled = ad.LoggedDataset(**columns_of(log) | {"reward": -1.234e-7 * log.reward})
    found = ad.compare(scaled, {"a policy with a name that is rather long": mdp.policy}, 0.9, bootstrap=2)
    (gap,) = found.differences.values()
    value = found.evaluations["a policy with a name that is rather long"].value
    for width in (60, 80, 120):
        text = drawn(found, width)
        rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        assert all(any(number in row for row in rows) for number in (short(value), short(gap.value)))


def test_the_seconds_go_first_where_it_is_narrow(tiny_rewards):
    texts = [drawn(terminal.draw_evaluation(tiny_rewards), width) for width in (60, 70, 80, 120)]
    headings = [" ".join(line for line in text.splitlines() if "┃" in line) for text in texts]
    assert ["seconds" in heading for heading in headings] == [False, False, False, True]
    assert ["return" in heading for heading in headings] == [False, True, True, True]


def test_cells_wrap_where_not_even_three_columns_fit(tiny_rewards):
    text = drawn(terminal.draw_evaluation(tiny_rewards), 30)
    assert "…" not in text
    rows = [line.split("│") for line in text.splitlines() if "│" in line]
    assert "".join(row[2].strip() for row in rows) == "".join(short(one["value"]) for one in tiny_rewards["estimates"])


def test_it_draws_what_the_json_form_says(tiny_rewards):
    changed = tiny_rewards | {
        "verdict": {"level": "weak", "reasons": ["one reason"], "remedies": ["one remedy"], "rules": ["overlap"]},
        "against_behaviour": None,
        "no_difference": "Against the behaviour policy: none today",
    }
    changed["behaviour"] = changed["behaviour"] | {"sentence": "Behaviour policy: as yesterday"}
    lines = drawn(terminal.draw_evaluation(changed), 100).splitlines()
    assert lines[:5] == [
        "Verdict: weak",
        "  · one reason",
        "  → one remedy",
        "Behaviour policy: as yesterday",
        "Against the behaviour policy: none today",
    ]
    kinds = {one["interval"] for one in tiny_rewards["estimates"]}
    assert all(kind in " ".join(" ".join(lines).split()) for kind in kinds)


def test_errors_where_the_truth_is_known(evaluation):
    text = drawn(evaluation.rendered(truth=1.0), 120)
    value = evaluation.recommended_estimate.value
    row = next(line for line in text.splitlines() if "average-dice-blend ★" in line)
    assert [cell.strip() for cell in row.split("│")][4:6] == [f"{value - 1.0:+.4f}", short(value / (1 - 0.9))]
    off_scale = next(line for line in text.splitlines() if "average-reward †" in line)
    assert [cell.strip() for cell in off_scale.split("│")][4:6] == ["–", "–"]


def test_a_comparison_draws_what_the_json_form_says():
    mdp = early_termination()
    found = ad.compare(mdp.sample(20, seed=0), {"a [bold]name[/bold]": mdp.policy}, 0.9, bootstrap=2)
    content = found.to_dict()
    content["summary"] = "No summary today."
    content["differences"][0]["judgement"] = "unheard of"
    text = drawn(terminal.draw_comparison(content), 120)
    assert "a [bold]name[/bold]" in text  # names from outside are no markup
    assert "No summary today." in text
    assert "unheard of" in text
