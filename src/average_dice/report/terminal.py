"""Tables for a terminal. If it is too narrow, columns are left out; numbers are never shortened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from average_dice.data.understood import size_of
from average_dice.report.comparing import BEHAVIOUR, MOST_POLICIES, ranking_rows
from average_dice.report.estimands import words_of
from average_dice.report.formatting import NOTHING, interval, percent, short
from average_dice.report.parts import OF_GROUPS, OF_REWARDS, against, doubts, group_rows
from average_dice.report.tables import IF_OBSERVED, STAR, estimate_rows, footnotes_of

Content = Mapping[str, Any]
Column = tuple[str, Sequence[str | Text]]  # a heading and its cells; numbers are strings, words are texts

PLAIN_WIDTH = 100  # columns of plain text: wide enough for the whole table
UNBOUNDED = 10_000  # columns, to measure the full width of a table
COLOURS = {"supported": "green", IF_OBSERVED: "cyan", "weak": "yellow", "not supported": "red"}


@dataclass(frozen=True)
class FirstThatFits:
    """The first of the tables that fits into the terminal; if none does, the last, with wrapped cells."""

    tables: Sequence[Table]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        wide = options.update(max_width=UNBOUNDED)
        fitting = (one for one in self.tables if console.measure(one, options=wide).maximum <= options.max_width)
        yield next(fitting, self.tables[-1])


def as_text(renderable: RenderableType) -> str:
    """Without colours."""
    console = Console(width=PLAIN_WIDTH, no_color=True)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def draw_evaluation(content: Content, errors: Mapping[str, float | None] | None = None) -> Group:
    """The verdict, the estimates as a table, and the notes; `errors` of the estimates, if the truth is known."""
    notes = [Text(f"{one['estimator']}: {'; '.join(one['notes'])}") for one in content["estimates"] if one["notes"]]
    tables = _narrower(words_of(content["estimand"]).title.format(**content), _estimate_columns(content, errors))
    definition = Text(content["definition"], style="dim")
    parts = [*_rewards(content), *_groups(content)]
    return Group(
        *_verdict(content),
        FirstThatFits(tables),
        definition,
        *parts,
        *notes,
        *_refutations(content),
        _source(content),
    )


def draw_comparison(content: Content) -> Group:
    """The value of each policy, the differences between pairs, the summary, and the reasons for doubt."""
    reasons = [
        Text(f"{one['policy']}: {one['verdict']['level']}, because {'; '.join(one['verdict']['reasons'])}")
        for one in content["policies"]
        if one["verdict"]["level"] != "supported"
    ]
    differences = content["differences"]
    many = len(content["policies"]) > MOST_POLICIES
    if many:
        differences = [one for one in differences if one["other"] == BEHAVIOUR]
    first = content["policies"][0]
    words = words_of(first["estimand"])
    columns: list[Column] = [
        ("policy", [Text(one["policy"]) for one in differences]),
        ("against", [Text(one["other"]) for one in differences]),
        ("difference", [short(one["value"]) for one in differences]),
        ("interval", [interval(one) for one in differences]),
        ("judgement", [Text(one["judgement"]) for one in differences]),
    ]
    title = f"Differences on the same bootstrap resamples of episodes, in {words.column}, by {first['recommended']}"
    title += "; the JSON has all pairs" if many else ""
    tables = _with_all_columns(title, columns)
    behaviour = Text(content["behaviour"]["sentence"])
    return Group(
        FirstThatFits(_values_of_policies(content)),
        Text(first["definition"], style="dim"),
        behaviour,
        FirstThatFits(tables),
        *_ranking(content),
        Text(content["summary"]),
        *reasons,
    )


def _ranking(content: Content) -> list[RenderableType]:
    """All policies from the largest value, with their differences from the first."""
    rank, policy, value, gap, ends, status = (list(cells) for cells in zip(*ranking_rows(content), strict=True))
    columns: list[Column] = [
        ("rank", rank),
        ("policy", [Text(one) for one in policy]),
        (words_of(content["policies"][0]["estimand"]).heading, value),
        ("difference\nfrom first", gap),
        ("simultaneous\ninterval", ends),
        ("status", [Text(one) for one in status]),
    ]
    level = percent(content["simultaneous"]["level"])
    title = f"Ranking; all pairs of policies have intervals that hold together with {level} confidence"
    return [FirstThatFits(_with_all_columns(title, columns))]


def _values_of_policies(content: Content) -> list[Table]:
    """One row per policy; the last is the behaviour policy."""
    first, recommended = content["policies"][0], content["policies"][0]["recommended"]
    words = words_of(first["estimand"])
    found = [*(_estimate_of(one, recommended) for one in content["policies"]), content["behaviour"]]
    columns: list[Column] = [
        ("policy", [*(Text(one["policy"]) for one in content["policies"]), Text("behaviour")]),
        (words.heading, [short(one["value"]) for one in found]),
        (_interval_heading(found), [interval(one) for one in found]),
    ]
    if words.return_heading:
        columns.append((words.return_heading, [short(one["return"]) for one in found]))
    columns.append(("verdict", [*(Text(one["verdict"]["level"]) for one in content["policies"]), Text("")]))
    return _with_all_columns(f"{words.title.format(**first)}, by {recommended}", columns)


def _rewards(content: Content) -> list[RenderableType]:
    """The value of each reward, as a table with its legend; empty if only one was asked for."""
    rows = [{**one, "name": one["reward"]} for one in content["rewards"]]
    if len(rows) < 2:
        return []
    columns = _part_columns("reward", rows, content)
    return [
        FirstThatFits(_narrower("Rewards", columns)),
        Text(OF_REWARDS.format(**content), style="dim"),
        *_doubts(rows),
    ]


def _groups(content: Content) -> list[RenderableType]:
    """The value of each group, as a table with its legend; empty without groups."""
    rows = group_rows(content)
    if not rows:
        return []
    columns = _part_columns(content["by"], rows, content)
    columns.insert(4, ("episodes", [f"{one['episodes']:,}" for one in rows]))
    tables = _narrower(f"Groups by {content['by']}", columns)
    return [FirstThatFits(tables), Text(OF_GROUPS.format(**content), style="dim"), *_doubts(rows[1:])]


def _part_columns(heading: str, rows: Sequence[Content], content: Content) -> list[Column]:
    """The least important last."""
    return [
        (heading, [Text(one["name"]) for one in rows]),
        (words_of(content["estimand"]).heading, [short(one["value"]) for one in rows]),
        (_interval_heading(rows), [interval(one) for one in rows]),
        ("verdict", [Text(one["verdict"]["level"], style=COLOURS[one["verdict"]["level"]]) for one in rows]),
        ("against\nbehaviour", [Text(against(one)) for one in rows]),
        ("behaviour\npolicy", [short(one["behaviour"]["value"]) for one in rows]),
    ]


def _doubts(rows: Sequence[Content]) -> list[Text]:
    return [Text(f"{names}: {why}") for names, why in doubts(rows)]


def _narrower(title: str, columns: Sequence[Column]) -> list[Table]:
    """Ever narrower tables: without more and more of the last columns, at least three; at last with words that wrap."""
    widths = [(number, padding) for number in range(len(columns), 2, -1) for padding in (1, 0)]
    tables = [
        _table(title, columns[:number], padding) for number, padding in widths if (number, padding) != (len(columns), 0)
    ]
    return [*tables, *_with_wrapped_words(title, columns[:3])]


def _with_all_columns(title: str, columns: Sequence[Column]) -> list[Table]:
    """Ever narrower tables: without padding, then with words that wrap."""
    return [*(_table(title, columns, padding) for padding in (1, 0)), *_with_wrapped_words(title, columns)]


def _with_wrapped_words(title: str, columns: Sequence[Column]) -> list[Table]:
    """Words are wrapped and intervals have two lines, so that every number stays whole."""
    in_two_lines = [
        (heading, [one if isinstance(one, Text) else one.replace(" to ", " to\n") for one in cells])
        for heading, cells in columns
    ]
    return [_table(title, in_two_lines, 0, width_of_words=width) for width in (24, 18, 14, 11, 8)]


def _table(title: str, columns: Sequence[Column], padding: int = 1, width_of_words: int | None = None) -> Table:
    """Words are aligned left, numbers right. If the table is too wide, cells wrap."""
    table = Table(title=title, title_justify="left", padding=(0, padding))
    for heading, cells in columns:
        if isinstance(cells[0], Text):
            table.add_column(heading, overflow="fold", max_width=width_of_words)
        else:
            table.add_column(heading, justify="right", overflow="fold")
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def _estimate_columns(content: Content, errors: Mapping[str, float | None] | None) -> list[Column]:
    """The least important last."""
    rows, words = estimate_rows(content), words_of(content["estimand"])
    columns: list[Column] = [
        ("estimator", [_label(one, content["recommended"]) for one in rows]),
        (words.heading, [short(one["value"]) for one in rows]),
        (_interval_heading(rows), [interval(one) for one in rows]),
    ]
    if errors is not None:
        found = [errors.get(one["estimator"]) if one["comparable"] else None for one in rows]
        columns.append(("error", [NOTHING if error is None else f"{error:+.4f}" for error in found]))
    if words.return_heading:
        columns.append((words.return_heading, [short(one["return"]) for one in rows]))
    return [*columns, ("seconds", [NOTHING if one["seconds"] is None else f"{one['seconds']:.2f}" for one in rows])]


def _label(row: Content, recommended: str) -> Text:
    return Text(row["name"], style="bold" if row["estimator"] == recommended else "")


def _interval_heading(estimates: Sequence[Content]) -> str:
    level = next((one["level"] for one in estimates if one["level"] is not None), None)
    return "interval" if level is None else f"{percent(level)} interval"


def _estimate_of(content: Content, estimator: str) -> Content:
    return next(one for one in content["estimates"] if one["estimator"] == estimator)


def _verdict(content: Content) -> list[Text]:
    verdict, judged = content["verdict"], content["judged"]
    whose = f", of {judged}" if judged not in (None, content["recommended"]) else ""
    lines = [Text(f"Verdict{whose}: {verdict['level']}", style=f"bold {COLOURS[verdict['level']]}")]
    lines += [Text(f"  · {reason}") for reason in verdict["reasons"]]
    lines += [Text(f"  → {remedy}", style="dim") for remedy in verdict["remedies"]]
    lines.append(Text(content["behaviour"]["sentence"]))
    if content["against_behaviour"] is not None:
        lines.append(Text(content["against_behaviour"]["sentence"]))
    else:
        lines.append(Text(content["no_difference"], style="dim"))
    return lines


def _refutations(content: Content) -> list[Text]:
    """One line for each refuter, if they were asked for."""
    found = content.get("refutations")
    if found is None:
        return []
    styles = {"passed": "green", "failed": "red", "not applicable": "dim"}
    lines = [
        Text.assemble((f"  {one['mark']} ", styles[one["status"]]), f"{one['name']}: {one['sentence']}")
        for one in found
    ]
    return [Text("Refutation", style="bold"), *lines]


def _source(content: Content) -> Text:
    """What the table was made from."""
    dataset, estimates = content["dataset"], content["estimates"]
    legend = [f"{STAR} recommended"] if any(one["estimator"] == content["recommended"] for one in estimates) else []
    legend += [f"{mark} {label}" for label, mark in footnotes_of(content).items()]
    source = (
        f"{size_of(dataset['transitions'], dataset['episodes'])} · "
        f"log {dataset['sha256'][:12]} · seed {content['seed']}"
    )
    kinds = sorted({one["interval"] for one in estimates if one["interval"] is not None})
    lines = [*([" · ".join(legend)] if legend else []), source, *([f"intervals: {'; '.join(kinds)}"] if kinds else [])]
    return Text("\n".join(lines), style="dim")
