"""The commands beyond the value: sensitivity to what was not recorded, and the distribution of the return."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from average_dice.cli.app import app, find_policy, make_console, progress_bar
from average_dice.cli.evaluation import Discount, Horizon, Json, Level, Seed
from average_dice.cli.logs import (
    ActionFeatures,
    Actions,
    Categorical,
    Columns,
    EstimateBehaviour,
    Impute,
    Logs,
    Observations,
    read_log,
    say_notes,
)
from average_dice.errors import SettingError
from average_dice.files import check_writable

if TYPE_CHECKING:
    from average_dice.data import LoggedDataset

PolicyFile = Annotated[
    Path | None,
    typer.Option(help="Policy file, or name of a task. Default: the target_log_prob column of the log."),
]


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(one) for one in text.split(",") if one.strip()]
    except ValueError:
        raise SettingError(f"{option} takes numbers separated by commas, not {text}.") from None


def _with_estimates(log: "LoggedDataset") -> "LoggedDataset":
    from average_dice.behaviour import estimate_behaviour

    return estimate_behaviour(log)


@app.command()
def sensitivity(
    data: Logs,
    discount: Discount,
    policy: PolicyFile = None,
    gammas: Annotated[str, typer.Option(help="Factors Γ of at least 1, separated by commas.")] = "1,1.1,1.25,1.5,2,3",
    against: Annotated[
        float | None, typer.Option(help="Value to compare with. Default: that of the behaviour policy.")
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="The single step that may be affected. Default: the worst.", min=0)
    ] = None,
    horizon: Horizon = None,
    level: Level = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Number of bootstrap resamples; 0 for none.", min=0)] = 100,
    columns: Columns = None,
    observations: Observations = None,
    categorical: Categorical = None,
    actions: Actions = None,
    action_features: ActionFeatures = None,
    impute: Impute = None,
    estimate_behaviour: EstimateBehaviour = False,
    seed: Seed = 0,
    json: Json = None,
    report: Annotated[Path | None, typer.Option(help="Write a page with charts to this HTML file.")] = None,
) -> None:
    """Bounds the value if the logged actions also depended on something that was not recorded.

    Example: `average-dice sensitivity log.parquet --policy policy.safetensors --discount 0.95 --gammas 1,1.5,2`
    """
    from average_dice.sensitivity_analysis import sensitivity as run

    outputs = [path for path in (json, report) if path is not None]
    for path in outputs:
        check_writable(path)
    factors = _numbers("--gammas", gammas)
    target = find_policy(policy) if policy is not None else None
    log = read_log(data, categorical, action_features, columns, observations, actions, impute)
    console = make_console()
    say_notes(console, log)
    if estimate_behaviour:
        log = _with_estimates(log)
    with progress_bar(console) as starting:
        starting("sensitivity")
        found = run(
            log,
            target,
            discount,
            factors,
            against=against,
            step=step,
            horizon=horizon,
            level=level,
            bootstrap=bootstrap,
            seed=seed,
        ).with_command(shlex.join(["average-dice", *sys.argv[1:]]))
    if json is not None:
        found.to_json(json)
    if report is not None:
        found.to_html(report)
    console.print(found)
    for path in outputs:
        console.print(f"Written to {path}.", style="dim")


@app.command()
def distribution(
    data: Logs,
    discount: Discount,
    policy: PolicyFile = None,
    thresholds: Annotated[
        str | None, typer.Option(help="Returns, separated by commas: the probability of falling below each.")
    ] = None,
    quantiles: Annotated[
        str, typer.Option(help="Shares between 0 and 1, separated by commas.")
    ] = "0.05,0.25,0.5,0.75,0.95",
    cvar: Annotated[float, typer.Option(help="Share of the tail whose mean is shown.")] = 0.05,
    costs: Annotated[bool, typer.Option("--costs", help="Rewards are costs: the upper tail is the bad one.")] = False,
    horizon: Horizon = None,
    level: Level = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Number of bootstrap resamples; 0 for none.", min=0)] = 1000,
    columns: Columns = None,
    observations: Observations = None,
    categorical: Categorical = None,
    actions: Actions = None,
    action_features: ActionFeatures = None,
    impute: Impute = None,
    estimate_behaviour: EstimateBehaviour = False,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Estimates quantiles, tails and probabilities of an episode's return under a policy.

    Example: `average-dice distribution log.parquet --policy policy.safetensors --discount 1 --thresholds 0,100`
    """
    from average_dice.return_distribution import distribution as run

    if json is not None:
        check_writable(json)
    limits = [] if thresholds is None else _numbers("--thresholds", thresholds)
    shares = _numbers("--quantiles", quantiles)
    target = find_policy(policy) if policy is not None else None
    log = read_log(data, categorical, action_features, columns, observations, actions, impute)
    console = make_console()
    say_notes(console, log)
    if estimate_behaviour:
        log = _with_estimates(log)
    with progress_bar(console) as starting:
        starting("distribution")
        found = run(
            log,
            target,
            discount,
            thresholds=limits,
            quantiles=shares,
            cvar=cvar,
            costs=costs,
            horizon=horizon,
            level=level,
            bootstrap=bootstrap,
            seed=seed,
        )
    if json is not None:
        found.to_json(json)
    console.print(found)
    if json is not None:
        console.print(f"Written to {json}.", style="dim")
