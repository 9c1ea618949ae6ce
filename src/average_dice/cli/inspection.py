"""The commands that show what there is: validate shows a log, estimators lists the methods."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from average_dice.cli.app import app, make_console
from average_dice.cli.logs import (
    ActionFeatures,
    Actions,
    Categorical,
    Columns,
    Impute,
    Logs,
    Observations,
    columns_table,
    read_log,
    say_notes,
)

if TYPE_CHECKING:
    from rich.table import Table

    from average_dice.data import LoggedDataset

LEGEND = (
    "★ recommended",
    "needs: π, μ: probabilities of the logged actions under the target and the behaviour policy. policy: a policy "
    "object, which gives π for any action.",
    "learns: q(s, a), v(s): values. w(s), ζ(s, a): density ratios. v(s, t): mean product of importance ratios.",
)
WIDEST_NEEDS = 9  # characters: longer cells wrap, so that the table fits into 80 columns


@app.command()
def validate(
    data: Logs,
    columns: Columns = None,
    observations: Observations = None,
    categorical: Categorical = None,
    actions: Actions = None,
    action_features: ActionFeatures = None,
    impute: Impute = None,
) -> None:
    """Checks a log. Prints every problem with its remedy, or a summary of a valid log.

    Example: `average-dice validate log.parquet`
    """
    from rich.table import Table

    from average_dice.data.plausibility import doubts

    log = read_log(data, categorical, action_features, columns, observations, actions, impute)
    table = Table(show_header=False)
    for name, value in _summary(log):
        table.add_row(name, value)
    console = make_console()
    if (understood := columns_table(log)) is not None:
        console.print(understood)
    console.print(table)
    console.print("The log is valid.", style="green")
    say_notes(console, log)
    for doubt in doubts(log):
        console.print(f"Note: {doubt}", soft_wrap=True)


def _summary(log: "LoggedDataset") -> Iterator[tuple[str, str]]:
    import numpy as np

    from average_dice.data.model_words import in_words
    from average_dice.data.understood import others_of

    terminated = int(log.terminated.sum())
    yield "transitions", f"{log.num_transitions:,}"
    yield "episodes", f"{log.num_episodes:,}, {terminated:,} terminated, {log.num_episodes - terminated:,} truncated"
    yield "length of episodes", f"{log.lengths.min()} to {log.lengths.max()}, mean {log.lengths.mean():.1f}"
    yield "observations", _dimensions(log.observation.shape[1])
    for column, values in zip(log.categorical, log.encoding.values, strict=True):
        yield f"observation {log.names.observation(column)}", f"categorical, {len(values):,} different values"
    if log.is_discrete:
        yield "actions", f"discrete, {len(np.unique(log.action))} of them in the log"
    else:
        yield "actions", f"continuous, {_dimensions(log.action.shape[1])}"
    if log.action_mask is not None:
        allowed = log.action_mask.sum(axis=1)
        yield "action_mask", f"{allowed.mean():.1f} of {log.action_mask.shape[1]} actions are allowed on average"
    if log.action_features is not None:
        yield "action features", "{1} for each of {0} actions".format(*log.action_features.shape)
    yield "rewards", f"{log.reward.min():g} to {log.reward.max():g}, mean {log.reward.mean():.4g}"
    estimated = log.estimated_behaviour
    if estimated is not None:
        yield "behaviour_log_prob", f"estimated: {in_words(estimated.model, log.is_discrete)}"
    else:
        yield "behaviour_log_prob", "unknown" if log.behaviour_log_prob is None else "known"
    yield "target_log_prob", "unknown: evaluate needs --policy" if log.target_log_prob is None else "known"
    yield "sha256", log.sha256[:32] + "\n" + log.sha256[32:]
    yield from ((f"metadata: {name}", str(value)) for name, value in others_of(log.metadata).items())


def _dimensions(number: int) -> str:
    return "1 dimension" if number == 1 else f"{number} dimensions"


@app.command()
def estimators() -> None:
    """Lists the estimators by family, with what each needs and learns, and its paper.

    Example: `average-dice estimators`
    """
    console = make_console()
    console.print(_estimators_table())
    for line in LEGEND:
        console.print(line, style="dim")


def _estimators_table() -> "Table":
    """One group of rows for each family."""
    from rich.table import Column, Table

    from average_dice.estimators import RECOMMENDED, REGISTRY

    columns = (
        Column("estimator", no_wrap=True),
        Column("needs", max_width=WIDEST_NEEDS),
        Column("learns", no_wrap=True),
        Column("paper"),
    )
    table = Table(*columns, box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for family in dict.fromkeys(entry.family for entry in REGISTRY.values()):
        table.add_row()
        table.add_row(family, style="bold")
        for name, entry in REGISTRY.items():
            if entry.family == family:
                label = f"{name} ★" if name == RECOMMENDED else name
                table.add_row(label, entry.needs, entry.learns, entry.paper)
    table.add_row()
    return table
