"""The commands of simulated tasks: tasks, collect, truth, train."""

from pathlib import Path
from typing import Annotated

import typer

from average_dice.cli.app import app, find_policy, make_console, progress_bar
from average_dice.errors import SettingError, needs_extra
from average_dice.files import check_writable

TaskName = Annotated[str, typer.Argument(help="Name of a task; `average-dice tasks` lists them.")]
SeedOption = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
PolicyOption = Annotated[
    Path | None,
    typer.Option(help="Policy file, or name of a task. Default: the shipped policy of the task."),
]


@app.command()
def tasks() -> None:
    """Lists the simulated tasks with the true values of their target policies.

    Example: `average-dice tasks`
    """
    from rich.table import Column, Table

    from average_dice.tasks import DISCOUNTS, TASKS, training_record, truth_record

    numbers = ("noise", "return", *(f"γ {discount:g}" for discount in DISCOUNTS))
    columns = [Column(heading, no_wrap=True, justify="right") for heading in numbers]
    table = Table(Column("task", no_wrap=True), *columns, box=None, padding=(0, 1, 0, 0))
    for name, task in TASKS.items():
        trained, truth = training_record(name), truth_record(name)
        level = "–" if trained is None else f"{trained['mean_return']:.0f} ± {trained['standard_error']:.0f}"
        values = {row["discount"]: f"{row['value']:.3f}" for row in truth["values"]} if truth else {}
        table.add_row(name, f"{task.noise:g}", level, *(values.get(discount, "–") for discount in DISCOUNTS))
    console = make_console()
    console.print(table)
    console.print(
        "\nnoise: of the behaviour policy, as the share of uniform actions (discrete) or the factor on the variance "
        "(continuous). return: mean return of the target policy, with its standard error. γ: true value J(π) of the "
        "target policy at that discount.",
        style="dim",
    )


@app.command()
def collect(
    task: Annotated[
        str, typer.Argument(help="Name of a task (`average-dice tasks`); with --policy, any Gymnasium environment.")
    ],
    out: Annotated[Path, typer.Option(help="Log file to write, .parquet or .npz.")],
    transitions: Annotated[int, typer.Option(help="Least number of transitions. Episodes stay whole.")] = 4_000,
    max_steps: Annotated[int, typer.Option(help="Truncate episodes after this many steps.", max=1_000_000)] = 100,
    noise: Annotated[
        float | None,
        typer.Option(help="Share of uniform actions, or factor on the variance. Default: as in `average-dice tasks`."),
    ] = None,
    policy: PolicyOption = None,
    seed: SeedOption = 0,
) -> None:
    """Runs a behaviour policy in a simulator and writes the log.

    Example: `average-dice collect Hopper-v5 --transitions 4000 --max-steps 100 --seed 0 --out log.parquet`
    """
    from average_dice.data import check_suffix, write_dataset
    from average_dice.data.understood import size_of
    from average_dice.tasks import TASKS, environments, fastest_envs, find_task
    from average_dice.tasks import collect as collect_log
    from average_dice.tasks.task import require_stochastic

    of_policy = policy is not None and task not in TASKS  # in any Gymnasium environment
    found = None if of_policy else find_task(task)
    if found is None and noise is not None:
        raise SettingError(f"--noise is for tasks. The log of {task} is that of the policy itself.")
    check_suffix(out)
    check_writable(out)
    console = make_console()
    chosen = find_policy(policy or task)
    with progress_bar(console) as starting:
        starting(f"collecting {task}")
        if found is None:
            log = environments.collect(task, chosen, transitions=transitions, max_steps=max_steps, seed=seed)
        else:
            log = collect_log(
                found,
                require_stochastic(chosen),
                num_transitions=transitions,
                max_steps=max_steps,
                noise=found.noise if noise is None else noise,
                seed=seed,
                make_envs=fastest_envs(),
                policy_name="shipped" if policy is None else policy.name,
            )
    write_dataset(log, out)
    console.print(f"{size_of(log.num_transitions, log.num_episodes)} written to {out}.")


@app.command()
def truth(
    task: TaskName,
    discount: Annotated[
        list[float] | None,
        typer.Option(help="Discount factor γ. Repeat it for several. Default: those of `average-dice tasks`."),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Number of on-policy episodes.")] = 1_000,
    policy: PolicyOption = None,
    seed: SeedOption = 0,
    json: Annotated[Path | None, typer.Option(help="Write the values to this JSON file.")] = None,
) -> None:
    """Measures the true value of a task's target policy by running it in the simulator.

    Example: `average-dice truth Hopper-v5 --discount 0.95 --discount 0.99 --episodes 1000`
    """
    from rich.table import Table

    from average_dice.tasks import DISCOUNTS, fastest_envs, find_task, true_values, write_truth
    from average_dice.tasks.task import require_stochastic

    found = find_task(task)
    if json is not None:
        check_writable(json)
    console = make_console()
    make_envs = fastest_envs()
    with progress_bar(console) as starting:
        starting(f"running {task}")
        values = true_values(
            found,
            require_stochastic(find_policy(policy or task)),
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
        write_truth(found, values, episodes, seed, make_envs, json, policy.name if policy else None)
        console.print(f"Written to {json}.", style="dim")


@app.command()
def train(
    task: TaskName,
    out: Annotated[Path, typer.Option(help="Policy file to write. A record goes beside it, as .json.")],
    seed: SeedOption = 0,
    steps: Annotated[int | None, typer.Option(help="Environment steps. Default: depends on the task.")] = None,
) -> None:
    """Trains a target policy with PPO. The same command continues an interrupted training.

    Example: `average-dice train CartPole-v1 --out policy.safetensors`
    """
    from average_dice.tasks import find_task

    found = find_task(task)
    check_writable(out)
    with needs_extra("train"):
        from average_dice.tasks.ppo import train_and_record

    console = make_console()
    with progress_bar(console) as starting:
        starting(f"training {task}")
        record = train_and_record(found, out, seed=seed, num_steps=steps)
    console.print(f"Mean return {record['mean_return']:.1f} ± {record['standard_error']:.1f}. Written to {out}.")
