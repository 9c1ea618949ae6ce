"""Running an experiment: what is not in the store yet is done, by whatever executor, and written as it comes."""

import warnings
from collections.abc import Callable
from pathlib import Path

from average_dice.experiments.executors import Executor
from average_dice.experiments.jobs import Unit
from average_dice.experiments.measurements import Row, run, versions
from average_dice.experiments.plans import Plan
from average_dice.experiments.store import Store
from average_dice.progress import report

Finished = Callable[[Unit, list[Row]], None]


def run_experiment(
    experiment: str,
    plan: Plan,
    directory: Path,
    executor: Executor,
    finished: Finished = lambda unit, rows: None,
) -> Store:
    """Runs what is left of the experiment and gathers its rows; `finished` hears of every unit."""
    units = list(plan.units(experiment))
    store = Store.open(directory, experiment, plan, versions())
    if replaced := store.gather():
        warnings.warn(
            f"{replaced:,} rows are of target policies or defaults that have been replaced since; they are put aside "
            f"in {store.replaced} and done again.",
            stacklevel=2,
        )
    done = store.done()
    left = [rest for unit in units if (rest := unit.without(done)).methods]
    report(len(units) - len(left), len(units))
    for count, (unit, rows) in enumerate(executor(run, left), start=len(units) - len(left) + 1):
        store.add(unit, rows)
        finished(unit, rows)
        report(count, len(units))
    store.gather()
    return store
