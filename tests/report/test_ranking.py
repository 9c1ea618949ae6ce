"""The ranking of a comparison: the page and the terminal show what the JSON form says."""

import copy
import re

from average_dice.report import page, terminal
from average_dice.report.comparing import MOST_POLICIES, ranking_rows


def section(made):
    return made[made.index('<section id="ranking">') : made.index('<section id="matrix">')]


def test_the_page_has_the_ranking_with_its_intervals(comparison):
    content = comparison.to_dict()
    shown = section(page.render_comparison(content))
    rows = [
        tuple(map(float, one)) for one in re.findall(r'data-value="(\S+)" data-lower="(\S+)" data-upper="(\S+)"', shown)
    ]
    assert rows == [(one["difference"], one["lower"], one["upper"]) for one in content["ranking"][1:]]
    names = re.findall(r'<th scope="row">(\w+)</th>', shown)
    assert names == [one["policy"] for one in content["ranking"]]
    assert content["summary"] in shown
    assert content["simultaneous"]["kind"].split()[-3] in shown  # the number of resamples


def test_a_value_without_support_is_marked_and_last(comparison):
    content = copy.deepcopy(comparison.to_dict())
    last = content["ranking"][1]
    last.update(rank=None, lower=None, upper=None, status="no conclusion", excluded_by=[])
    content["ranking"].append(content["ranking"].pop(1))
    assert ranking_rows(content)[-1] == ("–", last["policy"], *ranking_rows(content)[-1][2:4], "–", "no conclusion")
    assert f"{last['policy']} ✗" in section(page.render_comparison(content))


def test_files_of_earlier_versions_have_no_ranking(comparison):
    content = comparison.to_dict()
    for key in ("ranking", "not_excluded", "simultaneous"):
        del content[key]
    assert 'id="ranking"' not in page.render_comparison(content)


def test_of_many_policies_the_terminal_shows_the_differences_from_the_behaviour_policy(comparison):
    content = copy.deepcopy(comparison.to_dict())
    few = terminal.as_text(terminal.draw_comparison(content))
    content["policies"] += [content["policies"][0] | {"policy": f"more {place}"} for place in range(MOST_POLICIES)]
    many = terminal.as_text(terminal.draw_comparison(content))
    pair = re.compile(r"│ good +│ same ")
    assert pair.search(few)
    assert not pair.search(many)
    assert "the JSON has all pairs" in " ".join(many.split())
    assert "Ranking" in few
