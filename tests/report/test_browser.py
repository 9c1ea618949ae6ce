"""The page in a real browser: Chromium, headless. Skipped where there is none; the checks install it."""

import os
import shutil
from dataclasses import replace

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"

if CHROMIUM is None and not REQUIRED:
    pytest.skip("no Chromium on this machine", allow_module_level=True)
if REQUIRED:
    import playwright.sync_api as api
else:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: see `make test-browser`")

pytestmark = pytest.mark.xdist_group("report")  # on one process, which makes the fixture once

SIZES = {"desktop": (1200, 900), "phone": (375, 812)}
PAGES = ("evaluation", "comparison")

# Of every text that can be seen: its contrast with the background, by the formula of WCAG 2, and the text itself.
CONTRASTS = """() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = colour => {
    const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = numbers(colour).map(c => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = one => {
    for (; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length == 3 || colour[3] > 0) return getComputedStyle(one).backgroundColor;
    }
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), parent = walker.currentNode.parentElement;
    if (!text || parent.tagName == "title" || !parent.checkVisibility()) continue;
    const style = getComputedStyle(parent), colour = parent.closest("svg") ? style.fill : style.color;
    const [high, low] = [luminance(colour), luminance(background(parent))].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), text]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(evaluation, comparison, tmp_path_factory):
    found = tmp_path_factory.mktemp("report")
    evaluation.to_html(found / "evaluation.html")
    long_names = {f"{name} {40 * 'x'}": one for name, one in comparison.evaluations.items()}
    differences = {
        tuple(next((long for long in long_names if long.startswith(one)), one) for one in pair): gap
        for pair, gap in comparison.differences.items()
    }
    replace(comparison, evaluations=long_names, differences=differences).to_html(found / "comparison.html")
    return found


@pytest.fixture(params=SIZES)
def size(request):
    return SIZES[request.param]


@pytest.fixture
def opened(browser, folder, size):
    """Opens a page, with everything unfolded, and records what it says and asks for."""
    context = browser.new_context(viewport=dict(zip(("width", "height"), size, strict=True)), offline=True)

    def opening(name, unfold=True):
        tab = context.new_page()
        tab.said = []
        tab.on("console", lambda message: tab.said.append(message.text))
        tab.on("pageerror", lambda error: tab.said.append(str(error)))
        tab.on("request", lambda asked: tab.said.append(asked.url) if not asked.url.startswith("file:") else None)
        tab.goto((folder / f"{name}.html").as_uri())
        if unfold:
            tab.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        return tab

    yield opening
    context.close()


@pytest.fixture
def page(opened):
    return opened("evaluation")


def test_nothing_is_said_on_the_console_and_nothing_fetched(page):
    assert page.said == []


def test_scripts_in_names_stay_text(page):
    assert page.title().startswith("What would the policy earn? <script>")
    assert "<script>" in page.inner_text("header")
    assert page.evaluate("document.scripts.length") == 0
    assert page.evaluate("document.images.length") == 0
    assert "<script>" in page.inner_text("#log")


def test_charts_are_drawn(page):
    boxes = page.eval_on_selector_all("svg", "all => all.map(one => one.getBoundingClientRect().toJSON())")
    assert len(boxes) == 5
    width = page.viewport_size["width"]
    assert all(box["width"] > 200 and box["height"] > 80 and box["right"] <= width for box in boxes)
    assert page.locator("#estimates svg circle").count() >= 4
    assert page.locator("#states svg circle").count() == 400
    assert page.locator("#curves svg polyline").count() == 1


@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways(opened, name):
    """Neither the page nor a part of it, with everything unfolded."""
    tab = opened(name)
    width = tab.viewport_size["width"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    scrolling = """all => all.filter(one => one.scrollWidth > one.clientWidth + 1
      && ["auto", "scroll", "hidden"].includes(getComputedStyle(one).overflowX)).map(one => one.outerHTML)"""
    assert [one for one in tab.eval_on_selector_all("main *", scrolling) if not one.startswith("<thead")] == []
    ends = tab.eval_on_selector_all(
        "main *:not(thead, thead *)",
        "all => all.map(one => one.getBoundingClientRect()).filter(box => box.width).map(box => [box.left, box.right])",
    )
    assert len(ends) > 300
    assert min(left for left, _ in ends) >= 0
    assert max(right for _, right in ends) <= width


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_each_row_is_a_card_with_labels(opened, name):
    tab = opened(name)
    is_phone = tab.viewport_size["width"] < 600
    cells = tab.eval_on_selector_all(
        "td[data-label]",
        """all => all.map(one => [one.dataset.label, getComputedStyle(one, "::before").content,
                                  getComputedStyle(one.closest("tr")).display])""",
    )
    assert len(cells) > 12
    for label, before, display in cells:
        assert (before, display) == ((f'"{label}"', "block") if is_phone else ("none", "table-row"))


@pytest.mark.parametrize("name", PAGES)
def test_what_is_folded_on_the_screen_is_printed(opened, name):
    tab = opened(name, unfold=False)
    for media, shown in (("screen", False), ("print", True)):
        tab.emulate_media(media=media)
        tab.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        folded = tab.eval_on_selector_all("details > :not(summary)", "all => all.map(one => one.checkVisibility())")
        assert len(folded) >= 5
        assert set(folded) == {shown}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(opened, name, scheme):
    tab = opened(name)
    tab.emulate_media(color_scheme=scheme)
    found = tab.evaluate(CONTRASTS)
    assert len(found) > 80
    assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []


def test_texts_in_charts_can_be_read(page):
    sizes = page.eval_on_selector_all("svg text", "all => all.map(one => one.getBoundingClientRect().height)")
    assert min(size for size in sizes if size > 0) >= 9


def test_dark_and_light(page):
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 24, 31)"]
