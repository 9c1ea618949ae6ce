"""The log of a command: its files, the options that say what its columns are, and what is printed about it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from average_dice.errors import DatasetError, NotEnoughMemory, SettingError
from average_dice.listing import split_names

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from average_dice.data import LogBlocks, LoggedDataset

MOST_LINES = 60  # of the table of columns
WIDEST = 40  # characters of a cell

Logs = Annotated[
    list[Path],
    typer.Argument(
        help="The log: a .parquet, .csv or .npz file; or several, a folder, or a pattern, with parts of it."
    ),
]
Categorical = Annotated[
    str | None,
    typer.Option(
        help="Observation columns that hold codes of categories, by name or number, such as ward,3. Names with commas "
        "in quotes: '\"ward, unit\",3'. Default: those of the file."
    ),
]
ActionFeatures = Annotated[
    Path | None,
    typer.Option(help="Features of discrete actions: a .csv or .npz file with a row of numbers for each action."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Your names of columns: episode=patient_id,time=day,action=drug,reward=outcome,terminated=discharged. "
        "terminated=true: every episode ends by itself. episode=none: every row is one. What has our name needs none. "
        "A pair with a comma in quotes: '\"reward=net, total\",action=drug'."
    ),
]
Observations = Annotated[
    str | None,
    typer.Option(
        help="Your observation columns, such as age,bp,lab_*. Texts become categories. Names with commas in quotes: "
        "'\"age, years\",bp'."
    ),
]
Actions = Annotated[
    str | None,
    typer.Option(
        help="All actions in the order of the policy, such as none,low,high. Default: those of the log, sorted."
    ),
]
Impute = Annotated[
    str | None,
    typer.Option(help="median: fill in missing observations, with a new column that says where. Default: refuse."),
]
EstimateBehaviour = Annotated[
    bool,
    typer.Option("--estimate-behaviour", help="Estimate the probabilities of the logged actions from the log itself."),
]
BehaviourEstimated = Annotated[
    bool,
    typer.Option(
        "--behaviour-estimated", help="The log's probabilities are estimates of yours, not what was recorded."
    ),
]
Extra = Annotated[
    str | None,
    typer.Option(help="Other columns to keep, such as cost,site. Names with commas in quotes: '\"cost, net\",site'."),
]


def read_log(
    data: list[Path],
    categorical: str | None,
    action_features: Path | None,
    columns: str | None = None,
    observations: str | None = None,
    actions: str | None = None,
    impute: str | None = None,
    extra: Sequence[str] = (),
    behaviour_estimated: bool = False,
) -> "LoggedDataset":
    """The log with what the options declare about it."""
    from average_dice.data import read_action_features, read_dataset

    return read_dataset(
        *data,
        columns=None if columns is None else _mapping(columns),
        observations=None if observations is None else listed(observations),
        categorical=None if categorical is None else listed(categorical),
        action_features=None if action_features is None else read_action_features(action_features),
        actions=None if actions is None else listed(actions),
        extra=extra,
        impute=impute,
        behaviour_estimated=behaviour_estimated,
    )


def open_blocks(
    data: list[Path],
    categorical: str | None,
    action_features: Path | None,
    extra: Sequence[str],
    behaviour_estimated: bool,
    memory: str | None,
) -> "LogBlocks":
    """The same log in blocks."""
    from average_dice.data import LogBlocks, read_action_features

    return LogBlocks.open(
        data,
        memory=memory,
        categorical=None if categorical is None else listed(categorical),
        action_features=None if action_features is None else read_action_features(action_features),
        extra=extra,
        behaviour_estimated=behaviour_estimated,
    )


def read_log_or_blocks(
    console: "Console",
    read: "Callable[[], LoggedDataset]",
    open_in_blocks: "Callable[[str | None], LogBlocks]",
    *,
    stream: bool,
    mapped: bool,
    memory: str | None,
) -> "LoggedDataset | LogBlocks":
    """The log in memory; in blocks if that is asked for, or if it does not fit and needs no mapping of columns."""
    from average_dice.memory import limited

    if stream and mapped:
        raise SettingError(
            "--stream reads files in our format: write them first with average-dice convert, and leave out --columns, "
            "--observations, --actions and --impute."
        )
    if stream:
        return open_in_blocks(memory)
    try:
        with limited(memory):
            return read()
    except NotEnoughMemory as reason:
        if mapped:
            raise
        try:
            found = open_in_blocks(memory)
        except DatasetError:
            raise reason from None
        console.print(f"Note: the log is read in blocks, because it does not fit into memory: {reason}", style="dim")
        return found


def listed(text: str) -> list[str]:
    """The names in a text, separated by commas. A name with a comma is in quotes, as in a CSV file."""
    return [one for one in split_names(text) if one]


def _mapping(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in listed(text):
        ours, separator, yours = (one.strip() for one in pair.partition("="))
        if not (separator and ours and yours):
            raise SettingError(
                f"--columns takes pairs such as reward=outcome, separated by commas, not {pair!r}. If a name has a "
                "comma, put its pair in quotes: '\"reward=net, total\",action=drug'."
            )
        if ours in found:
            raise SettingError(f"--columns maps {ours} twice.")
        found[ours] = yours
    return found


def say_notes(console: "Console", log: "LoggedDataset | LogBlocks") -> None:
    """Prints what was assumed when the log was made."""
    from average_dice.data.understood import notes_of

    for note in notes_of(log.metadata):
        console.print(f"Note: {note}.", soft_wrap=True)


def columns_table(log: "LoggedDataset") -> "Table | None":
    """Which column became what; None for a log that was not made from a table."""
    from rich.table import Table

    from average_dice.data.understood import columns_of

    lines = columns_of(log.metadata)
    if not lines:
        return None
    table = Table("column", "yours", "kind", "values", "example")
    for line in lines[:MOST_LINES]:
        table.add_row(*(one if len(one) <= WIDEST else one[: WIDEST - 1] + "…" for one in line))
    if len(lines) > MOST_LINES:
        table.add_row("…", f"{len(lines) - MOST_LINES:,} more", "", "", "")
    return table
