"""The HTML page of an evaluation or a comparison."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from average_dice.errors import SettingError, first_line
from average_dice.report.templating import fill, fill_comparison

REQUIRED = {"discount", "seed", "dataset", "estimates", "recommended", "verdict", "versions"}
OF_COMPARISON = {"policies", "differences", "behaviour", "best"}
DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, TemplateError)


def render(content: Mapping[str, Any]) -> str:
    """The whole page of an evaluation."""
    return fill("page.html", content)


def render_comparison(content: Mapping[str, Any]) -> str:
    """The whole page of a comparison."""
    return fill_comparison(content)


def render_file(path: Path) -> str:
    """The whole page, from the JSON file of an evaluation or a comparison."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested a thousand times
        raise SettingError(f"{path} is not a JSON file: {error}.") from None
    if _has(content, REQUIRED) and content["estimates"]:
        rendered, command = render, "evaluate"
    elif _has(content, OF_COMPARISON) and content["policies"]:
        rendered, command = render_comparison, "compare"
    else:
        raise SettingError(f"{path} is not the result of `average-dice evaluate … --json` or `compare … --json`.")
    try:
        return rendered(content)
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        TemplateError,
    ) as error:
        raise SettingError(
            f"{path} is damaged, or from another version ({type(error).__name__}: {first_line(error)}). "
            f"Run `average-dice {command} … --json` again."
        ) from None


def _has(content: Any, keys: set[str]) -> bool:
    return isinstance(content, dict) and set(content) >= keys
