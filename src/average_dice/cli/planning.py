"""The command that plans the next log: plan."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from average_dice.cli.app import app, find_policy, make_console, progress_bar, say_if_deterministic
from average_dice.cli.evaluation import Discount, Horizon, Json, Level, Memory, Seed
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
    read_log,
    say_notes,
)
from average_dice.errors import SettingError
from average_dice.files import check_writable

BEHAVIOUR = "behaviour"


def _whole_numbers(option: str, text: str | None) -> list[int]:
    try:
        return [int(one) for one in listed(text or "")]
    except ValueError:
        raise SettingError(f"{option} takes whole numbers separated by commas, not {text}.") from None


@app.command()
def plan(
    data: Logs,
    discount: Discount,
    policy: Annotated[
        Path | None,
        typer.Option(help="Policy file or name, as in evaluate. Default: the target_log_prob column of the log."),
    ] = None,
    width: Annotated[float | None, typer.Option(help="Wanted half-width of the interval, such as 0.05.")] = None,
    episodes: Annotated[
        str | None, typer.Option(help="Numbers of episodes for the table. Default: half to eight times the log's.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Another policy, or behaviour: how many episodes until the difference is significant?"),
    ] = None,
    max_steps: Annotated[
        str | None, typer.Option(help="Earlier truncations to try, in steps, such as 20,50,100.")
    ] = None,
    power: Annotated[float, typer.Option(help="Probability that the difference is then significant.")] = 0.8,
    estimator: Annotated[str | None, typer.Option(help="A method that does not train. Default: recommended.")] = None,
    horizon: Horizon = None,
    level: Level = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Number of bootstrap resamples.", min=10)] = 100,
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
    report: Annotated[Path | None, typer.Option(help="Write a page with a chart to this HTML file.")] = None,
) -> None:
    """Says how many episodes it takes, judging by a pilot log.

    Example: `average-dice plan pilot.parquet --policy new.safetensors --discount 0.95 --width 0.05 --against behaviour`
    """
    from average_dice.estimators import RECOMMENDED
    from average_dice.planning import plan as run
    from average_dice.policies import as_policy

    outputs = [path for path in (json, report) if path is not None]
    for path in outputs:
        check_writable(path)
    numbers, lengths = _whole_numbers("--episodes", episodes), _whole_numbers("--max-steps", max_steps)
    target = None if policy is None else find_policy(policy)
    rival = None if against in (None, BEHAVIOUR) else find_policy(Path(against or ""))
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
    target = None if target is None else as_policy(target, log)
    console = make_console()
    say_notes(console, log)
    say_if_deterministic(console, target, log)
    with progress_bar(console) as starting:
        found = run(
            log,
            target,
            discount,
            width=width,
            episodes=numbers or None,
            against=BEHAVIOUR if against == BEHAVIOUR else None if rival is None else as_policy(rival, log),
            against_name=None if against is None else Path(against).stem,
            max_steps=lengths,
            power=power,
            estimator=estimator or RECOMMENDED,
            horizon=horizon,
            estimate_behaviour=estimate_behaviour,
            level=level,
            bootstrap=bootstrap,
            seed=seed,
            memory=memory,
            starting=starting,
        ).with_command(shlex.join(["average-dice", *sys.argv[1:]]))
    if json is not None:
        found.to_json(json)
    if report is not None:
        found.to_html(report)
    console.print(found)
    for path in outputs:
        console.print(f"Written to {path}.", style="dim")
