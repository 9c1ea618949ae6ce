"""Writes the tables of estimators in README.md and docs/estimators.md from `REGISTRY`: `make tables`.

The description of an estimator is the first line of the docstring of what makes it: its class or its constructor.
"""

import re
from pathlib import Path

from average_dice.estimators import RECOMMENDED, REGISTRY, is_baseline
from average_dice.experiments.summaries import markdown_table
from average_dice.files import write_text_whole

ROOT = Path(__file__).parents[1]
START, END = "<!-- estimators -->\n", "<!-- end of estimators -->"


def description(name: str) -> str:
    """What the estimator is, in one line."""
    docstring = REGISTRY[name].make.__doc__ or ""
    return docstring.partition("\n")[0].removesuffix(".")


def label(name: str) -> str:
    """The name as the tables show it."""
    return f"`{name}` ★" if name == RECOMMENDED else f"`{name}`"


def short_table() -> str:
    """For README.md: the recommended estimator first."""
    names = sorted(REGISTRY, key=lambda name: name != RECOMMENDED)
    return markdown_table(
        ("estimator", "what it is", "paper"), ((label(name), description(name), REGISTRY[name].paper) for name in names)
    )


ON_TRUNCATED_LOGS = {
    "whole": "all of J",
    "truncated": "the part before truncation",
    "flow": "that part, flow-normalised",
    "held": "that part, the last steps weighted up",
    "other": "not J",
}


def estimated(name: str) -> str:
    """What the method estimates on a truncated log."""
    return "the value of μ" if is_baseline(name) else ON_TRUNCATED_LOGS[REGISTRY[name].estimates]


def long_table() -> str:
    """For docs/estimators.md: all that the registry says."""
    return markdown_table(
        ("estimator", "family", "what it is", "needs", "learns", "on a truncated log", "paper"),
        (
            (label(name), entry.family, description(name), entry.needs, entry.learns, estimated(name), entry.paper)
            for name, entry in REGISTRY.items()
        ),
    )


PAGES = {ROOT / "README.md": short_table, ROOT / "docs" / "estimators.md": long_table}


def with_table(text: str, table: str) -> str:
    """The page with the table between its markers."""
    if text.count(START) != 1 or text.count(END) != 1:
        raise ValueError(f"the page must have one {START.strip()} and one {END}.")
    return re.sub(f"{START}.*{END}", lambda _: START + table + END, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page, table in PAGES.items():
        write_text_whole(page, with_table(page.read_text(encoding="utf-8"), table()))
