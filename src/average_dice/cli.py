"""The command line: parse, call one function, print."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import AverageDiceError, DatasetError

if TYPE_CHECKING:
    from rich.console import Console

# Everything heavy is imported inside the commands: `average-dice --help` must answer at once.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="What would a new policy earn, judging by logged data alone?\n\n"
    "Try `average-dice demo`, then `average-dice evaluate LOG --policy FILE --discount 0.95`.",
)


def main() -> None:
    """The entry point: errors that we understand are one message and exit code 2, not a traceback."""
    try:
        app()
    except AverageDiceError as error:
        for line in getattr(error, "problems", (str(error),)):
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"error: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
) -> None:
    """Runs the recommended estimator on the embedded log and prints the error it made.

    Example: `average-dice demo`
    """
    from .demo import cartpole
    from .evaluation import evaluate as run

    console = _console()
    shown = cartpole()
    truth = shown.truth
    data = shown.dataset
    console.print(f"[bold]{shown.title}[/bold]")
    console.print(
        f"{data.num_transitions:,} logged transitions in {data.num_episodes} episodes, "
        f"{data.metadata['behaviour']}, cut at {data.metadata['max_steps']} steps."
    )
    with _training(console) as starting:
        found = run(data, shown.policy, truth["discount"], seed=seed, starting=starting)
    console.print(found.rendered(truth=truth["value"]))
    console.print(
        f"The truth is {truth['value']:.4f} ± {truth['standard_error']:.4f} "
        f"(standard error, {truth['episodes']:,} on-policy episodes)."
    )


@app.command()
def evaluate(
    data: Annotated[list[Path], typer.Argument(help="The log: one .parquet or .npz file, or several parts of it.")],
    discount: Annotated[float, typer.Option(help="γ, between 0 and 1.")],
    policy: Annotated[
        Path | None, typer.Option(help="The policy file. Leave it out if the log has a target_log_prob column.")
    ] = None,
    estimators: Annotated[
        str, typer.Option(help="recommended (with the baselines), all, or names separated by commas.")
    ] = "recommended",
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")] = None,
) -> None:
    """Estimates what a policy would earn, from a log alone.

    Example: `average-dice evaluate log.parquet --policy policy.safetensors --discount 0.95 --json result.json`
    """
    from .data import read_dataset
    from .estimators import find
    from .evaluation import evaluate as run
    from .policies import load_policy

    find(estimators)  # a misspelt name is reported before anything is read
    if json is not None and not json.parent.is_dir():
        raise DatasetError(f"{json.parent}: no such folder for the JSON file. Make it first.")
    target = load_policy(policy) if policy is not None else None
    log = read_dataset(*data)
    console = _console()
    with _training(console) as starting:
        found = run(log, target, discount, estimators=estimators, seed=seed, starting=starting)
    console.print(found)
    if json is not None:
        found.to_json(json)
        console.print(f"Written to {json}.", style="dim")


@app.command()
def validate(
    data: Annotated[list[Path], typer.Argument(help="The log: one .parquet or .npz file, or several parts of it.")],
) -> None:
    """Checks a log: says what is wrong, where, and what to do; or what is in it.

    Example: `average-dice validate log.parquet`
    """
    import numpy as np
    from rich.table import Table

    from .data import read_dataset

    log = read_dataset(*data)
    died = int(log.terminated.sum())
    actions = (
        f"discrete, {len(np.unique(log.action))} seen"
        if log.is_discrete
        else f"continuous, {log.action.shape[1]} numbers"
    )
    table = Table(show_header=False)
    for name, value in (
        ("transitions", f"{log.num_transitions:,}"),
        ("episodes", f"{log.num_episodes:,}, {died:,} terminated, {log.num_episodes - died:,} truncated"),
        ("length of episodes", f"{log.lengths.min()} to {log.lengths.max()}, mean {log.lengths.mean():.1f}"),
        ("observations", f"{log.observation.shape[1]} numbers"),
        ("actions", actions),
        ("rewards", f"{log.reward.min():g} to {log.reward.max():g}, mean {log.reward.mean():.4g}"),
        ("behaviour_log_prob", "unknown" if log.behaviour_log_prob is None else "known"),
        ("target_log_prob", "none: evaluate needs --policy" if log.target_log_prob is None else "known"),
        ("sha256", log.sha256[:32] + "\n" + log.sha256[32:]),
        *((f"metadata: {name}", str(value)) for name, value in log.metadata.items()),
    ):
        table.add_row(name, value)
    console = _console()
    console.print(table)
    console.print("The log is valid.", style="green")


@app.command()
def estimators() -> None:
    """Lists the estimators: what each needs, what it learns, and its paper.

    Example: `average-dice estimators`
    """
    from rich.table import Column, Table

    from .estimators import RECOMMENDED, REGISTRY

    table = Table(Column("estimator", no_wrap=True), "family", "needs", "learns", "paper")
    for name, entry in REGISTRY.items():
        label = f"{name} ★" if name == RECOMMENDED else name
        table.add_row(label, entry.family, entry.needs, entry.learns, entry.paper)
    console = _console()
    console.print(table)
    console.print("★ recommended", style="dim")


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


@contextmanager
def _training(console: "Console") -> Iterator[Callable[[str], None]]:
    """A progress bar that moves while a method trains; gives the function that names the method."""
    from rich.progress import Progress

    from .models import reporting_progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def starting(name: str) -> None:
            progress.reset(task, description=name, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        with reporting_progress(report):
            yield starting


if __name__ == "__main__":
    main()
