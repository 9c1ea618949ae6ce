"""A page from JSON that somebody else wrote: strings stay text, and what is damaged ends in our error."""

import copy
import json
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import average_dice as ad
from average_dice.report import notebook, page

pytestmark = pytest.mark.xdist_group("report")  # on one process, which makes the fixtures once

HOSTILE = """<script>alert(1)</script>"'&"""
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "div", "span", "p"),
    *("h1", "h2", "h3", "dl", "dt", "dd", "ul", "li", "br", "em", "strong", "i", "figure", "figcaption", "details"),
    *("summary", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "line", "circle", "rect", "path", "polyline", "text"),
}


class Parsed(HTMLParser):
    """Every element with its attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def assert_harmless(made):
    parsed = Parsed(made)
    assert {tag for tag, _ in parsed.elements} <= ELEMENTS
    attributes = {name for _, found in parsed.elements for name in found}
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style", "action")]
    assert attributes <= {"class", "id", "lang", "charset", "content", "http-equiv", "name", "scope", "role"} | {
        *("aria-label", "aria-hidden", "viewbox", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "d", "points"),
        *("width", "height", "text-anchor", "transform"),
        *("data-label", "data-value", "data-lower", "data-upper", "data-low", "data-high", "data-end"),
    }
    return parsed


def places(content, path=()):
    """The path of every value within, the outer ones first."""
    yield path
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def at(content, path):
    for key in path:
        content = content[key]
    return content


def replaced(content, path, value):
    changed = copy.deepcopy(content)
    if not path:
        return value
    at(changed, path[:-1])[path[-1]] = value
    return changed


@pytest.fixture(scope="session")
def contents(evaluation, comparison):
    """An evaluation and a comparison in JSON, with few points, so that a page takes milliseconds."""
    found = []
    for content in (evaluation.to_dict(), comparison.to_dict()):
        content = json.loads(json.dumps(content))
        for one in (content, *content.get("policies", ())):
            if one.get("states"):
                one["states"] |= {name: one["states"][name][:3] for name in ("x", "y", "ratio")}
            if one.get("diagnostics"):
                one["diagnostics"] |= {name: one["diagnostics"][name][:3] for name in ("weights", "by_step")}
        found.append(content)
    return dict(zip(("evaluation", "comparison"), found, strict=True))


def rendered(kind, content):
    return page.render(content) if kind == "evaluation" else page.render_comparison(content)


FIXED = {"level", "status", "estimand", "judgement"}  # one of a few words, on which the page depends


@pytest.mark.parametrize("kind", ["evaluation", "comparison"])
def test_hostile_strings_in_every_field_at_once_stay_text(contents, kind):
    content = contents[kind]
    changed = copy.deepcopy(content)
    for path in places(content):
        if path and isinstance(at(content, path), str) and path[-1] not in FIXED:
            at(changed, path[:-1])[path[-1]] = HOSTILE
    names = [one["policy"] for one in content.get("policies", ())]
    for place, name in enumerate(names):  # different names, or the differences would be of one policy with itself
        changed["policies"][place]["policy"] = f"{HOSTILE} {name}"
    for one, before in zip(changed.get("differences", ()), content.get("differences", ()), strict=True):
        one["policy"] = f"{HOSTILE} {before['policy']}"
        one["other"] = f"{HOSTILE} {before['other']}" if before["other"] in names else "behaviour"
    for one in (changed, *changed.get("policies", ())):
        for mapping in ("versions", "curves"):
            if mapping in one:
                one[mapping] = {f"{HOSTILE} {key}": value for key, value in one[mapping].items()}
        if "dataset" in one:
            one["dataset"]["metadata"] = {HOSTILE: HOSTILE}
    parsed = assert_harmless(rendered(kind, changed))
    assert parsed.text.count(HOSTILE) > 20
    if kind == "evaluation":
        assert_harmless(f"<html>{notebook.render(changed)}</html>")


@pytest.mark.parametrize("kind", ["evaluation", "comparison"])
def test_a_hostile_string_in_one_field_stays_text_or_is_an_error(contents, kind, tmp_path):
    """In each of them; those that must be one of a few words end in our error."""
    content, path = contents[kind], tmp_path / "r.json"
    shown, refused = 0, set()
    seen = set()
    for place in places(content):
        pattern = tuple("*" if isinstance(key, int) else key for key in place)  # of a list, one is enough
        if pattern in seen or not isinstance(at(content, place), str):
            continue
        seen.add(pattern)
        path.write_text(json.dumps(replaced(content, place, HOSTILE)))
        try:
            made = page.render_file(path)
        except ad.SettingError:
            refused.add(place[-1])
        else:
            assert_harmless(made)
            shown += 1
    assert shown > 20
    assert refused <= FIXED | {"policy", "other", "estimator", "recommended", "judged"}


def test_the_check_finds_what_is_not_harmless():
    for wrong in ("<script></script>", "<p onclick='x'></p>", "<img>", "<p style='x'></p>"):
        with pytest.raises(AssertionError):
            assert_harmless(wrong)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(HOSTILE) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_json_ends_in_a_page_or_in_our_error(contents, tmp_path_factory, data):
    """One to three values are replaced, removed or moved; sometimes the bytes of the file are damaged as well."""
    content = contents[data.draw(st.sampled_from(["evaluation", "comparison"]))]
    for _ in range(data.draw(st.integers(1, 3))):
        every = list(places(content))
        place = data.draw(st.sampled_from(every))
        how = data.draw(st.sampled_from(["replaced", "removed", "moved"]))
        if how == "removed" and place:
            content = copy.deepcopy(content)
            del at(content, place[:-1])[place[-1]]
        else:
            new = at(content, data.draw(st.sampled_from(every))) if how == "moved" else data.draw(JSON)
            content = replaced(content, place, new)
    text = json.dumps(content).encode()
    if data.draw(st.integers(0, 9)) == 0:
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + data.draw(st.binary(max_size=4)) + text[place + data.draw(st.integers(0, 4)) :]
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(text)
    try:
        made = page.render_file(path)
    except ad.SettingError:
        return
    assert_harmless(made)
    made.encode("utf-8")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1" * 5000, "NaN", '{"policies": [1]}', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_json_that_python_cannot_read(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ad.SettingError, match=r"not a JSON file|not the result of"):
        page.render_file(path)


def test_names_with_bytes_that_are_no_text(evaluation, tmp_path):
    """As Python gives the names of files that are not in UTF-8."""
    content = evaluation.to_dict() | {"log": b"caf\xe9.csv".decode("utf-8", "surrogateescape")}
    assert "caf?.csv" in page.render(content)
