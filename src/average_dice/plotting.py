"""A forest plot of an evaluation with matplotlib, from its JSON form. The HTML report draws its own charts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from average_dice.errors import SettingError, did_you_mean, needs_extra
from average_dice.report.estimands import words_of
from average_dice.report.parts import ALL_EPISODES, group_rows
from average_dice.report.tables import estimate_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("estimates", "rewards", "groups")
ROW, WIDTH, MARGIN = 0.35, 7.0, 1.2  # inches: height of a row, width of the figure, height of title and axis


def forest(content: Mapping[str, Any], what: str, ax: "Axes | None" = None) -> "Axes":
    """One row for each estimate, reward or group: its value as a dot, its interval as a bar."""
    if what not in PARTS:
        raise SettingError(f"plot takes {', '.join(PARTS)}, not {what}.{did_you_mean(what, PARTS)}")
    rows = [one for one in _rows(content, what) if one["value"] is not None]
    if not rows:
        raise SettingError(f"the evaluation has no {what} to plot.")
    with needs_extra("experiments"):
        import matplotlib.pyplot as plt
    if ax is None:
        _, ax = plt.subplots(figsize=(WIDTH, MARGIN + ROW * len(rows)), layout="constrained")
    marked = ALL_EPISODES if what == "groups" else content["judged"]
    for place, one in enumerate(rows):
        colour = "C0" if one["estimator"] == marked or what == "rewards" else "0.45"
        if one["lower"] is not None:
            ax.plot([one["lower"], one["upper"]], [place, place], color=colour, linewidth=2)
        ax.plot([one["value"]], [place], "o", color=colour)
    if what != "rewards" and content["behaviour"]["value"] is not None:  # rewards have one value of it each
        ax.axvline(content["behaviour"]["value"], color="0.6", linestyle="--", linewidth=1)
    ax.set_yticks(range(len(rows)), [one["name"] for one in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(words_of(content["estimand"]).axis)
    return ax


def _rows(content: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    if what == "groups":
        return group_rows(content)
    if what == "rewards":
        return [{**one, "name": one["reward"]} for one in content["rewards"]]
    return [one for one in estimate_rows(content) if one["comparable"]]
