"""The HTML fragment that a notebook shows for an evaluation: the answer and the chart of estimates."""

from collections.abc import Mapping
from typing import Any

from average_dice.report.templating import fill


def render(content: Mapping[str, Any]) -> str:
    """A fragment for another page; its styles apply to itself only."""
    return fill("fragment.html", content)
