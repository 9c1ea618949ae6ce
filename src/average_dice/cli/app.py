"""The application, and the helpers that its commands share."""

import os
import re
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from average_dice import __version__
from average_dice.errors import SettingError, did_you_mean
from average_dice.progress import progress_bar as progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from average_dice.data import LoggedDataset
    from average_dice.policies import Policy

# Commands import large modules when they run, so that `average-dice --help` answers at once.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Estimates what a new policy would earn, from logged data alone.\n\n"
    "Start with `average-dice demo`, then `average-dice evaluate LOG --policy FILE --discount 0.95`.",
)

OWN_OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")  # module:attribute


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


def find_policy(given: str | Path) -> "Policy":
    """The policy in a file, the shipped policy of a task, a ready-made one, or an object of the user's own module."""
    from average_dice.policies import as_policy, load_policy
    from average_dice.policies.ready_made import BY_NAME
    from average_dice.tasks.shipped import target_policy
    from average_dice.tasks.task import TASKS

    if str(given) in TASKS:
        return target_policy(str(given))
    if str(given) in BY_NAME:
        return BY_NAME[str(given)]
    if not Path(given).exists() and OWN_OBJECT.fullmatch(str(given)):
        return as_policy(_own_object(str(given)))
    if not Path(given).exists() and not Path(given).suffix:
        meant = did_you_mean(str(given), (*TASKS, *BY_NAME))
        raise SettingError(
            f"{given}: neither a policy file nor a task, nor module:attribute, {' or '.join(BY_NAME)}.{meant} "
            f"The tasks are {', '.join(TASKS)}."
        )
    return load_policy(given)


def _own_object(given: str) -> Any:
    """`module:attribute`, from the current folder or an installed package."""
    module, _, attribute = given.partition(":")
    make_console().print(f"Importing {module}, which executes its code.")
    sys.path.insert(0, os.getcwd())
    try:
        return attrgetter(attribute)(import_module(module))
    except ModuleNotFoundError as error:
        raise SettingError(f"{given}: no module {error.name}. Start in the folder that has it.") from None
    except AttributeError as error:
        raise SettingError(f"{given}: {error}.") from None
    finally:
        sys.path.remove(os.getcwd())


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
