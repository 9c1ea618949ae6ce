"""The command benchmark: runs experiments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from average_dice.cli.app import app, make_console, progress_bar
from average_dice.errors import needs_extra

if TYPE_CHECKING:
    from rich.console import Console

    from average_dice.experiments.base import Experiment
    from average_dice.experiments.jobs import Job, Row


class WithExperiments(TyperCommand):
    """Its help lists the experiments, which are imported only then: `average-dice --help` answers at once."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from average_dice.experiments.registry import ANALYSES

        lines = [f"- `{name}`: {one.description}" for name, one in ANALYSES.items()]
        before, example, after = (self.help or "").partition("Example:")
        self.help = before + "\n".join(lines) + "\n\n" + example + after
        super().format_help(ctx, formatter)


@app.command(cls=WithExperiments)
def benchmark(
    experiment: Annotated[str, typer.Argument(help="Name of an experiment, as listed above.")],
    out: Annotated[Path, typer.Option(help="Folder of results. Finished runs in it are not repeated.")],
    preset: Annotated[str, typer.Option(help="smoke, standard, paper, or your own TOML file.")] = "standard",
    executor: Annotated[str, typer.Option(help="local (processes on this machine) or ray.")] = "local",
    processes: Annotated[int | None, typer.Option(help="Local processes. Default: one per core.", min=1)] = None,
    address: Annotated[str | None, typer.Option(help="Ray cluster to join. Default: a new one here.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Show the results so far, and run nothing.")] = False,
) -> None:
    """Runs an experiment and draws its figures. The same command continues an interrupted run.

    Example: `average-dice benchmark main --preset standard --out results/standard`
    """
    from average_dice.experiments.base import Experiment
    from average_dice.experiments.executors import find_executor
    from average_dice.experiments.presets import load_plan
    from average_dice.experiments.registry import find_analysis

    console = make_console()
    found = find_analysis(experiment)
    if summary:
        console.print(found.summary(out).shown)
        return
    if found.has_figures:
        with needs_extra("experiments"):
            from average_dice.experiments.plotting import draw
    if isinstance(found, Experiment):
        plan = load_plan(preset, found)
        _run(console, found, plan, out, find_executor(executor, processes, address), f"{experiment}, {preset}")
    tables = found.summary(out)
    console.print(tables.shown)
    for path in [*tables.write(out), *(draw(found, out) if found.has_figures else [])]:
        console.print(f"Written: {path}", style="dim")


def _run(console: "Console", experiment: "Experiment[Any]", plan: Any, out: Path, executor: Any, title: str) -> None:
    """Runs the jobs with a progress bar and one line for each job."""
    from average_dice.experiments.runner import run_experiment

    def on_finished(job: "Job", rows: "list[Row]") -> None:
        last = rows[-1]
        value = "no value" if last.get("value") is None else f"{last['value']:.4g}"
        shown = f"{job.task}, log {job.log}, {last['estimator']}: {value}, truth {last['truth']:.4g}"
        console.print(shown, style="dim")

    with progress_bar(console, timed=True) as starting:
        starting(title)
        run_experiment(experiment, plan, out, executor, on_finished)
