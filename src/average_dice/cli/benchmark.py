"""The command that runs the experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from average_dice.cli.app import app, make_console, training
from average_dice.errors import needs_extra


@app.command()
def benchmark(
    experiment: Annotated[
        str, typer.Argument(help="main, robustness, tuning, ablation, trust, claims, or comparison.")
    ],
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
    from average_dice.experiments import choices, comparison, trust
    from average_dice.experiments.claims import as_table, judge, write_claims
    from average_dice.experiments.executors import find_executor
    from average_dice.experiments.jobs import Unit
    from average_dice.experiments.plans import find_experiment
    from average_dice.experiments.presets import load_plan
    from average_dice.experiments.runner import run_experiment
    from average_dice.experiments.summaries import overview

    console = make_console()
    if experiment == "claims":
        found = judge(out)
        write_claims(found, out)
        console.print(as_table(found))
        return
    with needs_extra("experiments"):
        from average_dice.experiments.figures import draw
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
        with training(console, timed=True) as starting:
            starting(f"{experiment}, {preset}")

            def finished(unit: Unit, rows: list[dict[str, Any]]) -> None:
                found = "no value" if rows[-1].get("value") is None else f"{rows[-1]['value']:.4g}"
                console.print(
                    f"{unit.task}, log {unit.log}, {rows[-1]['estimator']}: {found}, truth {rows[-1]['truth']:.4g}",
                    style="dim",
                )

            run_experiment(experiment, plan, out, chosen, finished)
        for path in draw(out, experiment) if experiment != "trust" else []:
            console.print(f"Drawn: {path}", style="dim")
    if experiment == "trust":
        verdicts = trust.judged(out)
        console.print(trust.as_table(verdicts))
        if not summary:
            console.print(f"Written: {trust.write_trust(verdicts, out)}", style="dim")
        return
    if experiment != "tuning":  # 80 combinations
        console.print(overview(out, experiment))
        return
    lines = choices.chosen(out)
    console.print(choices.as_table(lines))
    if not summary:
        console.print(f"Written: {choices.write_choices(lines, out)}", style="dim")
