"""Commands about a log: demo, evaluate, compare, report, validate, estimators."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from average_dice.cli.app import app, find_policy, make_console, training
from average_dice.errors import SettingError
from average_dice.files import check_writable

DEMO_RESAMPLES = 25  # fewer than usual, so that the demo is quick

Bootstrap = Annotated[int, typer.Option(help="Bootstrap resamples for the intervals; 0 for no intervals.", min=0)]
Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Logs = Annotated[list[Path], typer.Argument(help="The log: one .parquet or .npz file, or several parts of it.")]
Discount = Annotated[float, typer.Option(help="γ, between 0 and 1.")]


@app.command()
def demo(
    seed: Seed = 0,
) -> None:
    """Runs the recommended estimator on the two embedded logs and prints the errors it made.

    Example: `average-dice demo`
    """
    from average_dice.demo import DEMOS, load_demo
    from average_dice.evaluation import evaluate as run

    console = make_console()
    for name in DEMOS:
        shown = load_demo(name)
        data = shown.dataset
        console.print(f"{name}, a policy trained by PPO", style="bold")
        console.print(
            f"{data.num_transitions:,} logged transitions in {data.num_episodes} episodes, "
            f"{data.metadata['behaviour']}, truncated at {data.metadata['max_steps']} steps."
        )
        with training(console) as starting:
            found = run(data, shown.policy, shown.discount, bootstrap=DEMO_RESAMPLES, seed=seed, starting=starting)
        console.print(found.rendered(truth=shown.truth))
        console.print(
            f"The truth is {shown.truth:.4f} ± {shown.standard_error:.4f} "
            f"(standard error, {shown.num_episodes:,} on-policy episodes).\n"
        )


@app.command()
def evaluate(
    data: Logs,
    discount: Discount,
    policy: Annotated[
        Path | None,
        typer.Option(help="The policy file, or a task's name; it counts even if the log has a target_log_prob column."),
    ] = None,
    estimators: Annotated[
        str, typer.Option(help="recommended (with the baselines), all, or names separated by commas.")
    ] = "recommended",
    level: Level = 0.95,
    bootstrap: Bootstrap = 100,
    bootstrap_trained: Annotated[
        int, typer.Option(help="The same for methods that train, which are trained anew on each resample.", min=0)
    ] = 0,
    features: Annotated[
        tuple[int, int] | None, typer.Option(help="The two numbers of an observation that the map of states shows.")
    ] = None,
    seed: Seed = 0,
    json: Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report to this HTML file.")] = None,
) -> None:
    """Estimates what a policy would earn, from a log alone, and says how far to trust the number.

    Example: `average-dice evaluate log.parquet --policy policy.safetensors --discount 0.95 --report report.html`
    """
    from average_dice.data import read_dataset
    from average_dice.estimators import find, is_baseline
    from average_dice.evaluation import evaluate as run

    find(estimators)  # a misspelt name is reported before anything is read
    outputs = [path for path in (json, report) if path is not None]
    for path in outputs:
        check_writable(path)
    target = find_policy(policy) if policy is not None else None
    log = read_dataset(*data)
    console = make_console()
    with training(console) as starting:
        found = run(
            log,
            target,
            discount,
            estimators=estimators,
            level=level,
            bootstrap=bootstrap,
            bootstrap_trained=bootstrap_trained,
            features=features,
            seed=seed,
            starting=starting,
        ).with_command(shlex.join(["average-dice", *sys.argv[1:]]))
    if json is not None:
        found.to_json(json)
    if report is not None:
        found.to_html(report)
    console.print(found)
    for path in outputs:
        console.print(f"Written to {path}.", style="dim")
    if all(estimate.value is None for name, estimate in found.estimates.items() if not is_baseline(name)):
        raise typer.Exit(1)


@app.command()
def report(
    result: Annotated[Path, typer.Argument(help="The JSON file of an evaluation.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file to write; beside the JSON file if left out.")] = None,
) -> None:
    """Makes the report of an evaluation from its JSON file.

    Example: `average-dice report result.json --out report.html`
    """
    from average_dice.files import write_text_whole
    from average_dice.report.page import render_file

    target = out or result.with_suffix(".html")
    text = render_file(result)
    write_text_whole(target, text)
    make_console().print(f"Written to {target}.", style="dim")


@app.command()
def compare(
    data: Logs,
    discount: Discount,
    policy: Annotated[list[Path], typer.Option(help="A policy file, or a task's name; give it several times.")],
    level: Level = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Bootstrap resamples for the intervals.", min=2)] = 100,
    seed: Seed = 0,
    json: Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")] = None,
) -> None:
    """Compares policies on one log: with each other, and with the behaviour policy that made it.

    Example: `average-dice compare log.parquet --policy old.safetensors --policy new.safetensors --discount 0.95`
    """
    from average_dice.comparison import compare as run
    from average_dice.data import read_dataset

    if json is not None:
        check_writable(json)
    if len(set(policy)) < len(policy):
        raise SettingError("--policy is given twice with the same file. Give each policy once.")
    names = [one.stem for one in policy]
    policies = {
        name if names.count(name) == 1 else str(one): find_policy(one) for name, one in zip(names, policy, strict=True)
    }
    log = read_dataset(*data)
    console = make_console()
    with training(console) as starting:
        found = run(log, policies, discount, level=level, bootstrap=bootstrap, seed=seed, starting=starting)
    if json is not None:
        found.to_json(json)
    console.print(found)
    if json is not None:
        console.print(f"Written to {json}.", style="dim")


@app.command()
def validate(data: Logs) -> None:
    """Checks a log: says what is wrong, where, and what to do; or what is in it.

    Example: `average-dice validate log.parquet`
    """
    import numpy as np
    from rich.table import Table

    from average_dice.data import read_dataset

    log = read_dataset(*data)
    terminated = int(log.terminated.sum())
    actions = (
        f"discrete, {len(np.unique(log.action))} seen" if log.is_discrete else f"continuous, {log.action.shape[1]} wide"
    )
    table = Table(show_header=False)
    for name, value in (
        ("transitions", f"{log.num_transitions:,}"),
        ("episodes", f"{log.num_episodes:,}, {terminated:,} terminated, {log.num_episodes - terminated:,} truncated"),
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
    console = make_console()
    console.print(table)
    console.print("The log is valid.", style="green")


@app.command()
def estimators() -> None:
    """Lists the estimators: what each needs, what it learns, and its paper.

    Example: `average-dice estimators`
    """
    from rich.table import Column, Table

    from average_dice.estimators import RECOMMENDED, REGISTRY

    table = Table(Column("estimator", no_wrap=True), "family", "needs", "learns", "paper")
    for name, entry in REGISTRY.items():
        label = f"{name} ★" if name == RECOMMENDED else name
        table.add_row(label, entry.family, entry.needs, entry.learns, entry.paper)
    console = make_console()
    console.print(table)
    console.print("★ recommended", style="dim")
