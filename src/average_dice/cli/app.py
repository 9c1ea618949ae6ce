"""The application, and the helpers that its commands share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from average_dice import __version__
from average_dice.errors import SettingError

if TYPE_CHECKING:
    from rich.console import Console

    from average_dice.data import LoggedDataset
    from average_dice.policies import Policy
    from average_dice.policies.files import PolicyOfFile

# Commands import large modules when they run, so that `average-dice --help` answers at once.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Estimates what a new policy would earn, from logged data alone.\n\n"
    "Start with `average-dice demo`, then `average-dice evaluate LOG --policy FILE --discount 0.95`.",
)

Logs = Annotated[
    list[Path], typer.Argument(help="The log: one .parquet or .npz file, or several files with parts of it.")
]

Categorical = Annotated[
    str | None,
    typer.Option(help="Observation columns that hold codes of categories, such as 0,3. Default: those of the file."),
]
ActionFeatures = Annotated[
    Path | None,
    typer.Option(help="Features of discrete actions: a .csv or .npz file with a row of numbers for each action."),
]


EstimateBehaviour = Annotated[
    bool,
    typer.Option("--estimate-behaviour", help="Estimate the probabilities of the logged actions from the log itself."),
]
BehaviourEstimated = Annotated[
    bool,
    typer.Option(
        "--behaviour-estimated", help="The log's behaviour_log_prob holds estimates of yours, not what was recorded."
    ),
]


def read_log(
    data: list[Path], categorical: str | None, action_features: Path | None, behaviour_estimated: bool = False
) -> "LoggedDataset":
    """The log with what the options declare about it."""
    from average_dice.data import read_action_features, read_dataset

    columns = None if categorical is None else _column_numbers(categorical)
    described = None if action_features is None else read_action_features(action_features)
    return read_dataset(*data, categorical=columns, action_features=described, behaviour_estimated=behaviour_estimated)


def _column_numbers(text: str) -> list[int]:
    try:
        return [int(one) for one in text.split(",") if one.strip()]
    except ValueError:
        raise SettingError(
            f"--categorical takes column numbers separated by commas, such as 0,3, not {text}."
        ) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


def find_policy(given: str | Path) -> "PolicyOfFile":
    """The policy in a file, or the shipped policy of a task."""
    from average_dice.policies import load_policy
    from average_dice.tasks.shipped import target_policy
    from average_dice.tasks.task import TASKS

    if str(given) in TASKS:
        return target_policy(str(given))
    if not Path(given).exists() and not Path(given).suffix:
        raise SettingError(f"{given}: neither a policy file nor a task. The tasks are {', '.join(TASKS)}.")
    return load_policy(given)


def say_if_deterministic(console: "Console", policy: "Policy | None", log: "LoggedDataset") -> None:
    """Before the work starts: there will be no importance ratios."""
    from average_dice.policies import DeterministicPolicy
    from average_dice.policies.deterministic import NO_DENSITY

    if isinstance(policy, DeterministicPolicy) and not log.is_discrete:
        console.print(f"Note: {NO_DENSITY}.")


def make_console() -> "Console":
    """A console that prints text as it is."""
    from rich.console import Console

    return Console(highlight=False, markup=False)


@contextmanager
def progress_bar(console: "Console", timed: bool = False) -> Iterator[Callable[[str], None]]:
    """A progress bar of the work within this context. Gives a function that sets its title and starts it again."""
    from rich.progress import Progress, TimeElapsedColumn

    from average_dice.progress import listening

    columns = (*Progress.get_default_columns(), *([TimeElapsedColumn()] if timed else []))
    whole_run = 1e9  # seconds: the speed is measured over the whole run, because one job may take minutes
    with Progress(*columns, console=console, transient=True, speed_estimate_period=whole_run) as progress:
        task = progress.add_task("", total=None)

        def starting(name: str) -> None:
            progress.reset(task, description=name, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        with listening(report):
            yield starting
