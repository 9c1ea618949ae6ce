"""Screenshots of the report for the documentation: `make screenshots`. It needs Chromium and Playwright."""

import shutil
import tempfile
from datetime import date
from pathlib import Path

from playwright.sync_api import sync_playwright

import average_dice as ad
from average_dice.demo import load_demo

ROOT = Path(__file__).parents[1]
ESTIMATORS = "recommended,average-dice-features,average-dice-dr,fqe,wdr,wpdis,pdis,behaviour-return,average-reward"
SIZES = {"desktop": (1100, 2150), "phone": (390, 1500)}


def main() -> None:
    demo = load_demo("Hopper-v5")
    command = "average-dice evaluate Hopper-v5.parquet --policy Hopper-v5 --discount 0.95 --report report.html"
    names = {"policy_name": "Hopper-v5", "log_name": "Hopper-v5.parquet", "created": date(2026, 1, 1)}
    found = ad.evaluate(demo.dataset, demo.policy, demo.discount, estimators=ESTIMATORS, **names).with_command(command)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        found.to_html(page)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, height) in SIZES.items():
            tab = browser.new_page(viewport={"width": width, "height": height})
            tab.goto(page.as_uri())
            tab.screenshot(path=ROOT / "docs" / "images" / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
