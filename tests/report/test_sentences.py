"""The first sentence of a report: what the policy would earn, or that no conclusion should be drawn."""

import copy
import re

import pytest

from average_dice.report import page
from average_dice.report.comparing import matrix
from average_dice.report.sentences import answer, compared

pytestmark = pytest.mark.xdist_group("report")  # on one process, which makes the fixtures once


def verdict(level, *reasons):
    return {"level": level, "reasons": list(reasons), "remedies": [], "rules": []}


@pytest.fixture
def content(evaluation):
    """Round numbers."""
    found = evaluation.to_dict()
    found["estimates"][0] |= {"value": 0.951, "lower": 0.94, "upper": 0.96, "level": 0.95}
    found["against_behaviour"]["judgement"] = "better"
    return found


def test_supported(content):
    content["verdict"] = verdict("supported", "all checks passed")
    start = "This log supports the estimate: the policy would earn 0.9510 per step (95% interval 0.9400 to 0.9600)"
    assert answer(content) == f"{start}, significantly more than the behaviour policy."
    content["against_behaviour"]["judgement"] = "no significant difference"
    assert answer(content) == f"{start}, with no significant difference from the behaviour policy."
    content["against_behaviour"] = None
    assert answer(content) == f"{start}."
    content["estimates"][0] |= {"lower": None, "upper": None, "level": None}
    content["estimand"] = "total-reward"
    assert answer(content) == "This log supports the estimate: the policy would earn 0.9510 per episode."


def test_weak(content):
    content["verdict"] = verdict("weak", "the overlap is small", "another")
    assert answer(content).startswith("This log supports the estimate only weakly: the policy would earn 0.9510 ")
    assert answer(content).endswith("Use it with care, because the overlap is small (and 1 more reason below).")


def test_not_supported(content):
    content["verdict"] = verdict("not supported", "the log has only 6 episodes", "a second", "a third")
    sentence = answer(content)
    assert sentence == (
        "This log does not support an estimate: no conclusion should be drawn about what the policy would earn, "
        "because the log has only 6 episodes (and 2 more reasons below)."
    )
    assert sentence in page.render(content)
    assert 'class="value doubtful">0.9510' in page.render(content)
    content["estimates"][0] |= {"value": None, "lower": None, "upper": None}
    assert answer(content) == sentence


@pytest.fixture
def pairs(comparison):
    """Differences with round numbers: good is better than the others, which do not differ."""
    found = copy.deepcopy(comparison.to_dict())
    numbers = {
        ("good", "behaviour"): (0.2, 0.1, 0.3, "better"),
        ("same", "behaviour"): (0.0, -0.1, 0.1, "no significant difference"),
        ("bad", "behaviour"): (-0.1, -0.15, -0.05, "worse"),
        ("good", "same"): (0.2, 0.1, 0.3, "better"),
        ("good", "bad"): (0.3, 0.2, 0.4, "better"),
        ("same", "bad"): (0.1, -0.1, 0.3, "no significant difference"),
    }
    for one in found["differences"]:
        one |= dict(zip(("value", "lower", "upper", "judgement"), numbers[one["policy"], one["other"]], strict=True))
    for one in found["policies"]:
        one["verdict"] = verdict("supported", "all checks passed")
    return found


def test_a_comparison_of_supported_policies(pairs):
    assert compared(pairs) == [
        "good is better than the behaviour policy by 0.2000 per step (95% interval 0.1000 to 0.3000).",
        "No significant difference between same and the behaviour policy (95% interval -0.1000 to 0.1000).",
        "bad is worse than the behaviour policy by 0.1000 per step (95% interval 0.0500 to 0.1500).",
        "good is better than same by 0.2000 per step (95% interval 0.1000 to 0.3000).",
        "good is better than bad by 0.3000 per step (95% interval 0.2000 to 0.4000).",
        "No significant difference between same and bad (95% interval -0.1000 to 0.3000).",
    ]


def test_of_two_policies_the_better_one_comes_first(pairs):
    (pair,) = [one for one in pairs["differences"] if (one["policy"], one["other"]) == ("same", "bad")]
    pair |= {"value": -0.2, "lower": -0.3, "upper": -0.1, "judgement": "worse"}
    assert "bad is better than same by 0.2000 per step (95% interval 0.1000 to 0.3000)." in compared(pairs)


def test_there_is_no_conclusion_about_a_policy_that_the_log_does_not_support(pairs):
    pairs["policies"][0]["verdict"] = verdict("not supported", "the overlap is only 2%")
    sentences = compared(pairs)
    assert sentences[0] == "No policy that this log supports is significantly better than the behaviour policy."
    assert sentences[-1] == "good: no conclusion, because the overlap is only 2%."
    assert not [one for one in sentences[:-1] if "good" in one]
    for name, cells in matrix(pairs):
        for cell in cells:
            if "good" in (name, cell.column) and name != cell.column:
                assert (cell.judgement, cell.value, cell.interval) == ("no conclusion", "", "")
    made = page.render_comparison(pairs)
    assert "No conclusion should be drawn about this policy." in made
    assert len(re.findall('<circle [^>]*class="doubtful"', made)) == 1


def test_if_the_log_supports_none_there_is_no_conclusion_at_all(pairs):
    for one in pairs["policies"]:
        one["verdict"] = verdict("not supported", "the log is too short")
    sentences = compared(pairs)
    assert sentences[0].startswith("No conclusion should be drawn")
    assert not [one for one in sentences if "better" in one or "worse" in one]
    assert all(not cell.value.strip("–") for _, cells in matrix(pairs) for cell in cells)


def test_weak_policies_are_named(pairs):
    pairs["policies"][1]["verdict"] = verdict("weak", "the overlap is 20%")
    assert compared(pairs)[-1] == "The log supports only weakly: same. The reasons are below."


def test_the_matrix_is_antisymmetric(comparison):
    """Every difference occurs twice, with opposite signs and ends; the numbers are those of the comparison."""
    content = comparison.to_dict()
    cells = {(name, cell.column): cell for name, row in matrix(content) for cell in row}
    for (one, other), found in comparison.differences.items():
        assert float(cells[one, other].value) == pytest.approx(found.value, rel=1e-3)
        if other != "behaviour":
            there = cells[other, one]
            assert float(there.value) == pytest.approx(-found.value, rel=1e-3)
            lower, upper = map(float, there.interval.split(" to "))
            assert (lower, upper) == pytest.approx((-found.upper, -found.lower), abs=1e-4)
            opposite = {"better": "worse", "worse": "better", "not significant": "not significant"}
            assert there.judgement == opposite[cells[one, other].judgement]
    assert cells["good", "bad"].judgement == "better"


def test_the_page_of_a_comparison_has_every_policy_and_its_verdict(comparison, tmp_path):
    comparison.to_json(tmp_path / "c.json")
    comparison.to_html(tmp_path / "c.html")
    made = page.render_file(tmp_path / "c.json")
    assert made == (tmp_path / "c.html").read_text()
    content = comparison.to_dict()
    assert made.index(compared(content)[0]) < made.index("<svg") < made.index('class="matrix"')
    drawn = made[made.index("<svg") : made.index("</svg>")]
    numbers = [float(number) for number in re.findall(r' data-value="([^"]+)"', drawn)]
    values = [one["estimates"][0]["value"] for one in content["policies"]]
    assert numbers == [*values, content["behaviour"]["value"]]
    for one in content["policies"]:
        head = re.search(rf"<h3>{one['policy']} .*?</h3>", made)
        assert one["verdict"]["level"] in head[0]
