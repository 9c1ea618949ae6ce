"""The page in a real browser: Chromium, headless. Skipped where there is none; the checks install it."""

import os
import shutil

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

SIZES = {"desktop": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def path(evaluation, tmp_path_factory):
    found = tmp_path_factory.mktemp("report") / "report.html"
    evaluation.to_html(found)
    return found


@pytest.fixture(params=SIZES)
def page(request, browser, path):
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    opened = context.new_page()
    opened.said = []
    opened.on("console", lambda message: opened.said.append(message.text))
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("request", lambda asked: opened.said.append(asked.url) if not asked.url.startswith("file:") else None)
    opened.goto(path.as_uri())
    yield opened
    context.close()


def test_nothing_is_said_on_the_console_and_nothing_fetched(page):
    assert page.said == []


def test_scripts_in_names_stay_text(page):
    assert page.title().startswith("What would the policy earn? <script>")
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


def test_the_page_is_no_wider_than_the_screen(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_texts_in_charts_can_be_read(page):
    sizes = page.eval_on_selector_all("svg text", "all => all.map(one => one.getBoundingClientRect().height)")
    assert min(size for size in sizes if size > 0) >= 8


def test_dark_and_light(page):
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 24, 31)"]
