"""The command line: parse, call one function, print."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .errors import AverageDiceError, SettingError
from .files import check_writable

if TYPE_CHECKING:
    from rich.console import Console

    from .policies import CategoricalPolicy, GaussianPolicy

# Everything heavy is imported inside the commands: `average-dice --help` must answer at once.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="What would a new policy earn, judging by logged data alone?\n\n"
    "Try `average-dice demo`, then `average-dice evaluate LOG --policy FILE --discount 0.95`.",
)


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


def main() -> None:
    """The entry point: errors that we understand are one message and exit code 2, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without γ shows a question mark, not a traceback
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
    """Runs the recommended estimator on the two embedded logs and prints the errors it made.

    Example: `average-dice demo`
    """
    from .demo import DEMOS, load_demo
    from .evaluation import evaluate as run

    console = _console()
    for name in DEMOS:
        shown = load_demo(name)
        data = shown.dataset
        console.print(f"{name}, a policy trained by PPO", style="bold")
        console.print(
            f"{data.num_transitions:,} logged transitions in {data.num_episodes} episodes, "
            f"{data.metadata['behaviour']}, cut at {data.metadata['max_steps']} steps."
        )
        with _training(console) as starting:
            found = run(data, shown.policy, shown.discount, seed=seed, starting=starting)
        console.print(found.rendered(truth=shown.truth))
        console.print(
            f"The truth is {shown.truth:.4f} ± {shown.standard_error:.4f} "
            f"(standard error, {shown.num_episodes:,} on-policy episodes).\n"
        )


@app.command()
def evaluate(
    data: Annotated[list[Path], typer.Argument(help="The log: one .parquet or .npz file, or several parts of it.")],
    discount: Annotated[float, typer.Option(help="γ, between 0 and 1.")],
    policy: Annotated[
        Path | None,
        typer.Option(help="The policy file, or a task's name; it counts even if the log has a target_log_prob column."),
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
    from .estimators import BASELINES, find
    from .evaluation import evaluate as run

    find(estimators)  # a misspelt name is reported before anything is read
    if json is not None:
        check_writable(json)
    target = _policy(policy) if policy is not None else None
    log = read_dataset(*data)
    console = _console()
    with _training(console) as starting:
        found = run(log, target, discount, estimators=estimators, seed=seed, starting=starting)
    if json is not None:
        found.to_json(json)
    console.print(found)
    if json is not None:
        console.print(f"Written to {json}.", style="dim")
    if all(estimate.value is None for name, estimate in found.estimates.items() if name not in BASELINES):
        raise typer.Exit(1)


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
        f"discrete, {len(np.unique(log.action))} seen" if log.is_discrete else f"continuous, {log.action.shape[1]} wide"
    )
    table = Table(show_header=False)
    for name, value in (
        ("transitions", f"{log.num_transitions:,}"),
        ("episodes", f"{log.num_episodes:,}, {died:,} terminated, {log.num_episodes - died:,} truncated"),
        ("length of episodes", f"{log.lengths.min()} to {log.lengths.max()}, mean {log.lengths.mean():.1f}"),
        ("observations", f"{log.observation.shape[1]} wide"),
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


@app.command()
def tasks() -> None:
    """Lists the tasks: their target policies, behaviour policies and true values.

    Example: `average-dice tasks`
    """
    from rich.table import Column, Table

    from .benchmark.targets import training_record, truth_record
    from .benchmark.tasks import DISCOUNTS, TASKS

    numbers = ("noise", "return", *(f"γ {discount:g}" for discount in DISCOUNTS))
    columns = [Column(heading, no_wrap=True, justify="right") for heading in numbers]
    table = Table(Column("task", no_wrap=True), *columns, box=None, padding=(0, 1, 0, 0))
    for name, task in TASKS.items():
        trained, truth = training_record(name), truth_record(name)
        level = "–" if trained is None else f"{trained['mean_return']:.0f} ± {trained['standard_error']:.0f}"
        values = {row["discount"]: f"{row['value']:.3f}" for row in truth["values"]} if truth else {}
        table.add_row(name, f"{task.noise:g}", level, *(values.get(discount, "–") for discount in DISCOUNTS))
    console = _console()
    console.print(table)
    console.print(
        "\nnoise: the share of uniform actions (discrete), or the factor on the variance (continuous); return: of the "
        "target policy, with its standard error; γ: its true value J(π) at that discount.",
        style="dim",
    )


@app.command()
def collect(
    task: Annotated[str, typer.Argument(help="The name of a task; see `average-dice tasks`.")],
    out: Annotated[Path, typer.Option(help="The .parquet or .npz file to write.")],
    transitions: Annotated[int, typer.Option(help="At least so many, in whole episodes.")] = 4_000,
    max_steps: Annotated[int, typer.Option(help="Episodes are cut after so many steps.", max=1_000_000)] = 100,
    noise: Annotated[
        float | None,
        typer.Option(help="Share of uniform actions, or factor on the variance; the task's own if left out."),
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="Another policy's file, or a task's name.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.", min=0, max=2**32 - 1)] = 0,
) -> None:
    """Logs a behaviour policy in a simulator.

    Example: `average-dice collect Hopper-v5 --transitions 4000 --max-steps 100 --seed 0 --out log.parquet`
    """
    from .benchmark.collection import collect as run
    from .benchmark.rollouts import fastest_envs
    from .benchmark.tasks import find_task
    from .data import check_suffix, write_dataset

    found = find_task(task)
    check_suffix(out)
    check_writable(out)
    console = _console()
    with _training(console) as starting:
        starting(f"collecting {task}")
        log = run(
            found,
            _policy(policy or task),
            num_transitions=transitions,
            max_steps=max_steps,
            noise=found.noise if noise is None else noise,
            seed=seed,
            make_envs=fastest_envs(),
            policy_name="shipped" if policy is None else policy.name,
        )
    write_dataset(log, out)
    console.print(f"{log.num_transitions:,} transitions in {log.num_episodes:,} episodes written to {out}.")


@app.command()
def truth(
    task: Annotated[str, typer.Argument(help="The name of a task; see `average-dice tasks`.")],
    discount: Annotated[
        list[float] | None,
        typer.Option(help="γ, once or several times; five of them if left out."),
    ] = None,
    episodes: Annotated[int, typer.Option(help="How many on-policy episodes.")] = 1_000,
    policy: Annotated[Path | None, typer.Option(help="Another policy's file, or a task's name.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.", min=0, max=2**32 - 1)] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the values to this JSON file.")] = None,
) -> None:
    """Estimates the true value of a task's target policy by running it.

    Example: `average-dice truth Hopper-v5 --discount 0.95 --discount 0.99 --episodes 1000`
    """
    from rich.table import Table

    from .benchmark.collection import true_values, truth_as_record
    from .benchmark.rollouts import fastest_envs
    from .benchmark.tasks import DISCOUNTS, find_task

    found = find_task(task)
    if json is not None:
        check_writable(json)
    console = _console()
    make_envs = fastest_envs()
    with _training(console) as starting:
        starting(f"running {task}")
        values = true_values(
            found,
            _policy(policy or task),
            discounts=discount or DISCOUNTS,
            num_episodes=episodes,
            seed=seed,
            make_envs=make_envs,
        )
    table = Table("discount", "J(π)", "standard error", title=f"{task}, {episodes:,} on-policy episodes")
    for row in values:
        table.add_row(f"{row.discount:g}", f"{row.value:.5f}", f"{row.standard_error:.5f}")
    console.print(table)
    if json is not None:
        truth_as_record(found, values, episodes, seed, make_envs, json, policy.name if policy else None)
        console.print(f"Written to {json}.", style="dim")


@app.command()
def train(
    task: Annotated[str, typer.Argument(help="The name of a task; see `average-dice tasks`.")],
    out: Annotated[Path, typer.Option(help="The policy file to write; its record goes beside it as .json.")],
    seed: Annotated[int, typer.Option(help="The seed of everything random.", min=0, max=2**32 - 1)] = 0,
    steps: Annotated[int | None, typer.Option(help="Environment steps; the task's own if left out.")] = None,
) -> None:
    """Trains a target policy with PPO, and goes on where it was interrupted.

    Example: `average-dice train CartPole-v1 --out policy.safetensors`
    """
    from .benchmark.tasks import find_task

    found = find_task(task)
    check_writable(out)
    try:
        from .benchmark.training import train_and_record
    except ModuleNotFoundError as missing:
        raise SettingError(
            f"training needs {missing.name}: install the extra `train`, from a clone: pip install -e '.[train]'."
        ) from None

    console = _console()
    with _training(console) as starting:
        starting(f"training {task}")
        record = train_and_record(found, out, seed=seed, num_steps=steps)
    console.print(f"Mean return {record['mean_return']:.1f} ± {record['standard_error']:.1f}. Written to {out}.")


@app.command()
def benchmark(
    experiment: Annotated[str, typer.Argument(help="main, robustness, tuning, ablation, claims, or comparison.")],
    out: Annotated[Path, typer.Option(help="The folder of results; what is there already is not done again.")],
    preset: Annotated[str, typer.Option(help="smoke, standard, paper, or a TOML file of your own.")] = "standard",
    executor: Annotated[str, typer.Option(help="local (processes of this machine) or ray.")] = "local",
    processes: Annotated[int | None, typer.Option(help="Local processes; one a core if left out.", min=1)] = None,
    address: Annotated[str | None, typer.Option(help="The Ray cluster to join; one is started if left out.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only show what is in the folder so far.")] = False,
) -> None:
    """Runs one of the paper's experiments, goes on where it was stopped, and draws its figures.

    `claims` runs nothing: it judges the paper's claims by the results in the folder. Nor does `comparison`: it sets the
    recommended estimator against every other, by the results of robustness.

    Example: `average-dice benchmark main --preset standard --out results/standard`
    """
    from .benchmark import choices, comparison
    from .benchmark.claims import as_table, judge, write_claims
    from .benchmark.executors import find_executor
    from .benchmark.experiments import find_experiment
    from .benchmark.figures import draw
    from .benchmark.presets import load_plan
    from .benchmark.running import run_experiment
    from .benchmark.summaries import overview
    from .benchmark.units import Unit

    console = _console()
    if experiment == "claims":
        found = judge(out)
        write_claims(found, out)
        console.print(as_table(found))
        return
    if experiment == "comparison":
        compared = comparison.compare(out)
        comparison.write_comparison(compared, out)
        console.print(comparison.render(compared))
        for path in draw(out, experiment):
            console.print(f"Drawn: {path}", style="dim")
        return
    find_experiment(experiment)
    if not summary:
        plan = load_plan(preset, experiment)
        chosen = find_executor(executor, processes, address)
        with _training(console, timed=True) as starting:
            starting(f"{experiment}, {preset}")

            def finished(unit: Unit, rows: list[dict[str, Any]]) -> None:
                found = "no value" if rows[-1].get("value") is None else f"{rows[-1]['value']:.4g}"
                console.print(
                    f"{unit.task}, log {unit.log}, {rows[-1]['estimator']}: {found}, truth {rows[-1]['truth']:.4g}",
                    style="dim",
                )

            run_experiment(experiment, plan, out, chosen, finished)
        for path in draw(out, experiment):
            console.print(f"Drawn: {path}", style="dim")
    if experiment != "tuning":  # 80 combinations
        console.print(overview(out, experiment))
        return
    lines = choices.chosen(out)
    console.print(choices.as_table(lines))
    if not summary:
        console.print(f"Written: {choices.write_choices(lines, out)}", style="dim")


def _policy(given: str | Path) -> "CategoricalPolicy | GaussianPolicy":
    """A policy file; or a task's name, which stands for its shipped policy."""
    from .benchmark.targets import target_policy
    from .benchmark.tasks import TASKS
    from .policies import load_policy

    if str(given) in TASKS:
        return target_policy(str(given))
    if not Path(given).exists() and not Path(given).suffix:
        raise SettingError(f"{given}: neither a policy file nor a task. Tasks are {', '.join(TASKS)}.")
    return load_policy(given)


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False, markup=False)


@contextmanager
def _training(console: "Console", timed: bool = False) -> Iterator[Callable[[str], None]]:
    """A progress bar that moves while a method trains; gives the function that names the method."""
    from rich.progress import Progress, TimeElapsedColumn

    from .progress import listening

    columns = (*Progress.get_default_columns(), *([TimeElapsedColumn()] if timed else []))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def starting(name: str) -> None:
            progress.reset(task, description=name, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        with listening(report):
            yield starting


if __name__ == "__main__":
    main()
