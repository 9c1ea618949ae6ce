"""The commands that evaluate policies: demo, evaluate, report, compare."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from average_dice.cli.app import app, find_policy, make_console, progress_bar, say_if_deterministic
from average_dice.cli.logs import (
    ActionFeatures,
    Actions,
    BehaviourEstimated,
    Categorical,
    Columns,
    EstimateBehaviour,
    Impute,
    Logs,
    Observations,
    listed,
    open_blocks,
    read_log,
    read_log_or_blocks,
    say_notes,
)
from average_dice.errors import SettingError
from average_dice.files import check_writable

if TYPE_CHECKING:
    from rich.console import Console

    from average_dice.data import LoggedDataset
    from average_dice.policies import Policy

AUTO = "auto"  # the bandwidth is chosen by the log
MOST_FILES = 3  # named on the report
DEMO_RESAMPLES = 25  # a quarter of the default: the demo is faster, and its intervals are less precise

Bootstrap = Annotated[
    int, typer.Option(help="Number of bootstrap resamples; with 0, only intervals that need none.", min=0)
]
Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Horizon = Annotated[int | None, typer.Option(help="Count the rewards of this many steps. Default: all.")]


def _check_discount(discount: float) -> float:
    """Before the log is read, which may take long."""
    if not 0 <= discount <= 1:
        raise SettingError(
            f"the discount must lie between 0 and 1, not {discount:g}. Give --discount 0.95, for example."
        )
    return discount


Discount = Annotated[
    float,
    typer.Option(
        help="Discount factor γ, from 0 to 1. With 1, the value is the total reward.", callback=_check_discount
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(help="Limit of memory, such as 2GiB. Default: AVERAGE_DICE_MEMORY, or half of what the machine has."),
]
Title = Annotated[str | None, typer.Option(help="Title of the report.")]
Report = Annotated[Path | None, typer.Option(help="Write the report to this HTML file.")]
Json = Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")]


@app.command()
def demo(
    seed: Seed = 0,
    save: Annotated[
        Path | None, typer.Option(help="Write the logs, policies, results and pages to this folder.")
    ] = None,
) -> None:
    """Runs the recommended estimator on two embedded logs and prints its errors.

    Example: `average-dice demo --save demo`
    """
    from average_dice.demo import DEMOS, load_demo, save_demo
    from average_dice.evaluation import evaluate as run
    from average_dice.files import make_folder

    if save is not None:
        make_folder(save)
    console = make_console()
    for name in DEMOS:
        shown = load_demo(name)
        data = shown.dataset
        console.print(f"{name}, a policy trained by PPO", style="bold")
        console.print(
            f"{data.num_transitions:,} logged transitions in {data.num_episodes} episodes, "
            f"{data.metadata['behaviour']}, truncated at {data.metadata['max_steps']} steps."
        )
        with progress_bar(console) as starting:
            found = run(data, shown.policy, shown.discount, bootstrap=DEMO_RESAMPLES, seed=seed, starting=starting)
        console.print(found.rendered(truth=shown.truth))
        console.print(
            f"The truth is {shown.truth:.4f} ± {shown.standard_error:.4f} "
            f"(standard error, {shown.num_episodes:,} on-policy episodes).\n"
        )
        if save is not None:
            save_demo(save, name, shown)
            found.to_json(save / f"{name}.json")
            found.to_html(save / f"{name}.html")
    if save is not None:
        console.print(f"Written to {save}: for each task its log, its policy, the result and its page. Try next:")
        for command in _next_commands(save, DEMOS[-1]):
            console.print(f"  {command}", soft_wrap=True)


def _next_commands(folder: Path, name: str) -> list[str]:
    """Three commands on what a demo wrote."""
    log, policy, page = (
        shlex.quote(str(folder / f"{name}{end}")) for end in (".parquet", ".safetensors", "-again.html")
    )
    return [
        f"average-dice validate {log}",
        f"average-dice evaluate {log} --policy {policy} --discount 0.9 --report {page}",
        f"average-dice evaluate {log} --policy {policy} --discount 0.95 --estimators average-dice-features,fqe,wpdis",
    ]


class WithOptionalBandwidth(TyperCommand):
    """`--smooth` with or without a number; typer itself has no options with an optional value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Adds `auto` where no number follows."""
        found: list[str] = []
        for place, one in enumerate(args):
            found.append(one)
            if one == "--smooth" and not (place + 1 < len(args) and _is_bandwidth(args[place + 1])):
                found.append(AUTO)
        return super().parse_args(ctx, found)


def _is_bandwidth(text: str) -> bool:
    if text == AUTO:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _bandwidth(smooth: str | None) -> float | None:
    """The number, or None if it is to be chosen by the log."""
    if smooth is None or smooth == AUTO:
        return None
    if not _is_bandwidth(smooth):
        raise SettingError(f"--smooth takes a bandwidth or nothing, not {smooth!r}.")
    return float(smooth)


def _smoothed(console: "Console", policy: "Policy | None", log: "LoggedDataset", bandwidth: float | None) -> "Policy":
    from average_dice.policies import DeterministicPolicy, smoothed

    if not isinstance(policy, DeterministicPolicy):
        raise SettingError("--smooth is for deterministic policies over continuous actions. Leave it out.")
    found = smoothed(policy, log, bandwidth)
    console.print(f"The policy is smoothed with bandwidth {found.bandwidth:g}.")
    return found


@app.command(cls=WithOptionalBandwidth)
def evaluate(
    data: Logs,
    discount: Discount,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="Policy file (.safetensors, .csv, .json), module:attribute of your own code, uniform, behaviour, or "
            "name of a task. Default: the target_log_prob column of the log."
        ),
    ] = None,
    estimators: Annotated[
        str, typer.Option(help="Names separated by commas, all, or recommended (with the baselines).")
    ] = "recommended",
    rewards: Annotated[
        str | None,
        typer.Option(
            help="What to count, by names of columns, such as outcome,cost. Names with commas in quotes: "
            "'\"cost, net\",outcome'. Default: the column reward."
        ),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Also a value for each group of episodes, by this column.")] = None,
    horizon: Horizon = None,
    level: Level = 0.95,
    bootstrap: Bootstrap = 100,
    bootstrap_trained: Annotated[
        int, typer.Option(help="The same for methods that train. Each resample trains the method again.", min=0)
    ] = 0,
    features: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Two dimensions of the observation for the map of states. Default: principal components."),
    ] = None,
    columns: Columns = None,
    observations: Observations = None,
    categorical: Categorical = None,
    actions: Actions = None,
    action_features: ActionFeatures = None,
    impute: Impute = None,
    estimate_behaviour: EstimateBehaviour = False,
    behaviour_estimated: BehaviourEstimated = False,
    smooth: Annotated[
        str | None,
        typer.Option(
            metavar="[BANDWIDTH]",
            help="Smooth a deterministic policy over continuous actions. Without a bandwidth it is chosen by the log.",
        ),
    ] = None,
    distribution: Annotated[
        bool, typer.Option("--distribution", help="Also show how the return of an episode varies.")
    ] = False,
    seed: Seed = 0,
    refute: Annotated[
        bool, typer.Option("--refute", help="Also try to refute the estimate. It refits the method about 100 times.")
    ] = False,
    memory: Memory = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read Parquet files in our format in blocks, with little memory. Done by itself if the log does not "
            "fit.",
        ),
    ] = False,
    executor: Annotated[
        str, typer.Option(help="Who computes a log that is read in blocks: local (this machine), or ray (a cluster).")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to join. Default: RAY_ADDRESS, or a new one here.")
    ] = None,
    json: Json = None,
    report: Report = None,
    title: Title = None,
) -> None:
    """Estimates the value of a policy from a log, with an interval and a verdict.

    Example: `average-dice evaluate log.parquet --policy policy.safetensors --discount 0.95 --report report.html`
    """
    from average_dice.data import LoggedDataset
    from average_dice.estimators import find, is_baseline
    from average_dice.evaluation import evaluate as run
    from average_dice.policies import as_policy

    bandwidth = _bandwidth(smooth)
    find(estimators)  # reports an unknown name before it reads the log
    outputs = [path for path in (json, report) if path is not None]
    for path in outputs:
        check_writable(path)
    target: Policy | None = find_policy(policy) if policy is not None else None
    named = listed(rewards or "")
    extra = dict.fromkeys(name for name in (*named, *([by] if by else [])) if name != "reward")
    console = make_console()
    mapped = [one for one in (columns, observations, actions, impute) if one is not None]
    log = read_log_or_blocks(
        console,
        partial(
            read_log,
            data,
            categorical,
            action_features,
            columns,
            observations,
            actions,
            impute,
            tuple(extra),
            behaviour_estimated,
        ),
        partial(open_blocks, data, categorical, action_features, tuple(extra), behaviour_estimated),
        stream=stream,
        mapped=bool(mapped),
        memory=memory,
    )
    say_notes(console, log)
    if isinstance(log, LoggedDataset):
        target = None if target is None else as_policy(target, log)
    elif smooth is not None:
        raise SettingError("--smooth: not available for a log that is read in blocks.")
    if isinstance(log, LoggedDataset):
        target = _smoothed(console, target, log, bandwidth) if smooth is not None else target
        say_if_deterministic(console, target, log)
    with progress_bar(console) as starting:
        found = run(
            log,
            target,
            discount,
            estimators=estimators,
            rewards=rewards,
            by=by,
            horizon=horizon,
            estimate_behaviour=estimate_behaviour,
            level=level,
            bootstrap=bootstrap,
            bootstrap_trained=bootstrap_trained,
            features=features,
            distribution=distribution,
            seed=seed,
            refute=refute,
            memory=memory,
            executor=executor,
            address=address,
            title=title,
            policy_name=None if policy is None else policy.stem,
            log_name=_names_of(data),
            starting=starting,
        ).with_command(_command())
    if json is not None:
        found.to_json(json)
    if report is not None:
        found.to_html(report)
    console.print(found)
    for path in outputs:
        console.print(f"Written to {path}.", style="dim")
    if all(estimate.value is None for name, estimate in found.estimates.items() if not is_baseline(name)):
        raise typer.Exit(1)


def _names_of(data: list[Path]) -> str:
    """The log's files, for the head of the report."""
    shown = ", ".join(one.name for one in data[:MOST_FILES])
    return shown if len(data) <= MOST_FILES else f"{shown} and {len(data) - MOST_FILES} more"


def _command() -> str:
    return shlex.join(["average-dice", *sys.argv[1:]])


@app.command()
def report(
    result: Annotated[Path, typer.Argument(help="JSON file of an evaluation or a comparison.")],
    out: Annotated[Path | None, typer.Option(help="HTML file to write. Default: beside the JSON file.")] = None,
) -> None:
    """Writes the HTML report of an evaluation or a comparison from its JSON file.

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
    policy: Annotated[
        list[Path],
        typer.Option(
            help="Policy file, module:attribute, uniform, or name of a task, as in evaluate. Repeat it for each policy."
        ),
    ],
    horizon: Horizon = None,
    level: Level = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Number of bootstrap resamples.", min=2)] = 100,
    columns: Columns = None,
    observations: Observations = None,
    categorical: Categorical = None,
    actions: Actions = None,
    action_features: ActionFeatures = None,
    impute: Impute = None,
    estimate_behaviour: EstimateBehaviour = False,
    behaviour_estimated: BehaviourEstimated = False,
    seed: Seed = 0,
    memory: Memory = None,
    json: Json = None,
    report: Report = None,
    title: Title = None,
) -> None:
    """Compares policies on one log, with each other and with the behaviour policy.

    Example: `average-dice compare log.parquet --policy old.safetensors --policy new.safetensors --discount 0.95`
    """
    from average_dice.comparison import compare as run
    from average_dice.policies import as_policy

    outputs = [path for path in (json, report) if path is not None]
    for path in outputs:
        check_writable(path)
    if len(set(policy)) < len(policy):
        raise SettingError("--policy is given twice with the same file. Give each policy once.")
    names = [one.stem for one in policy]
    policies = {
        name if names.count(name) == 1 else str(one): find_policy(one) for name, one in zip(names, policy, strict=True)
    }
    log = read_log(
        data,
        categorical,
        action_features,
        columns,
        observations,
        actions,
        impute,
        behaviour_estimated=behaviour_estimated,
    )
    policies = {name: as_policy(one, log) for name, one in policies.items()}
    console = make_console()
    say_notes(console, log)
    for one in policies.values():
        say_if_deterministic(console, one, log)
    with progress_bar(console) as starting:
        found = run(
            log,
            policies,
            discount,
            horizon=horizon,
            estimate_behaviour=estimate_behaviour,
            level=level,
            bootstrap=bootstrap,
            seed=seed,
            memory=memory,
            title=title,
            log_name=_names_of(data),
            starting=starting,
        ).with_command(_command())
    if json is not None:
        found.to_json(json)
    if report is not None:
        found.to_html(report)
    console.print(found)
    for path in outputs:
        console.print(f"Written to {path}.", style="dim")
