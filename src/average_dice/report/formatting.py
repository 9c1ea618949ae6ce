"""Numbers as text, the same in the terminal and on the page."""

from collections.abc import Mapping
from typing import Any

NOTHING = "–"


def short(value: float | None) -> str:
    """Four decimals; four significant digits for very small or large values; a dash for None."""
    if value is None:
        return NOTHING
    return f"{value:.4f}" if 1e-2 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"


def percent(share: float) -> str:
    """0.95 → 95%."""
    return f"{100 * share:g}%"


def interval(found: Mapping[str, Any]) -> str:
    """The two ends of an estimate or a difference; a dash without an interval."""
    return NOTHING if found["lower"] is None else f"{short(found['lower'])} to {short(found['upper'])}"
