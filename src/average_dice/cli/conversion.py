"""The command convert: from the user's tables to a log file."""

from pathlib import Path
from typing import Annotated

import typer

from average_dice.cli.app import app, make_console
from average_dice.cli.logs import (
    ActionFeatures,
    Actions,
    BehaviourEstimated,
    Categorical,
    Columns,
    EstimateBehaviour,
    Extra,
    Impute,
    Logs,
    Observations,
    columns_table,
    listed,
    read_log,
    say_notes,
)
from average_dice.files import check_writable


@app.command()
def convert(
    data: Logs,
    out: Annotated[Path, typer.Option(help="Log file to write, .parquet or .npz.")],
    columns: Columns = None,
    observations: Observations = None,
    categorical: Categorical = None,
    actions: Actions = None,
    action_features: ActionFeatures = None,
    impute: Impute = None,
    extra: Extra = None,
    estimate_behaviour: EstimateBehaviour = False,
    behaviour_estimated: BehaviourEstimated = False,
) -> None:
    """Writes your table as a log file, and prints what it understood.

    Example: `average-dice convert visits.csv --columns episode=patient_id,time=day,action=drug,reward=outcome,terminated=discharged --observations age,bp,ward --out log.parquet`
    """  # noqa: E501
    from average_dice.data import check_suffix, write_dataset
    from average_dice.data.model_words import in_words
    from average_dice.data.understood import size_of

    check_suffix(out)
    check_writable(out)
    log = read_log(
        data,
        categorical,
        action_features,
        columns,
        observations,
        actions,
        impute,
        listed(extra or ""),
        behaviour_estimated,
    )
    console = make_console()
    if estimate_behaviour:
        from average_dice.behaviour import estimate_behaviour as estimate

        log = estimate(log)
    write_dataset(log, out)
    if (table := columns_table(log)) is not None:
        console.print(table)
    say_notes(console, log)
    if log.estimated_behaviour is not None:
        model = in_words(log.estimated_behaviour.model, log.is_discrete)
        console.print(f"Note: probabilities of the logged actions were estimated ({model}).", soft_wrap=True)
    console.print(f"{size_of(log.num_transitions, log.num_episodes)} written to {out}.")
