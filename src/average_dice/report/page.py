"""The HTML page of an evaluation."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from average_dice.errors import SettingError
from average_dice.report.templating import fill

REQUIRED = {"discount", "seed", "dataset", "estimates", "recommended", "verdict", "versions"}


def render(content: Mapping[str, Any]) -> str:
    """The whole page."""
    return fill("page.html", content)


def render_file(path: Path) -> str:
    """The whole page, from the JSON file of an evaluation."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested a thousand times
        raise SettingError(f"{path} is not a JSON file: {error}.") from None
    if not isinstance(content, dict) or not set(content) >= REQUIRED or not content["estimates"]:
        raise SettingError(f"{path} is not the result of `average-dice evaluate … --json`.")
    try:
        return render(content)
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        raise SettingError(
            f"{path} is damaged, or from another version ({type(error).__name__}: {error}). "
            "Run `average-dice evaluate … --json` again."
        ) from None
