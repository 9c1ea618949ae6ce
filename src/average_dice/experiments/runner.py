"""Running an experiment: an executor runs the jobs that are not in the store yet, and rows are stored as they come."""

import warnings
from collections.abc import Callable
from pathlib import Path

from average_dice.experiments.base import Experiment, P
from average_dice.experiments.executors import Executor
from average_dice.experiments.jobs import Job, Row
from average_dice.experiments.measurements import run, versions
from average_dice.experiments.store import Store
from average_dice.progress import report

OnFinished = Callable[[Job, list[Row]], None]


def run_experiment(
    experiment: Experiment[P],
    plan: P,
    directory: Path,
    executor: Executor,
    on_finished: OnFinished = lambda job, rows: None,
) -> Store:
    """Runs the missing jobs of the experiment and gathers all rows; calls `on_finished` after every job."""
    jobs = list(experiment.jobs(plan))
    store = experiment.store(directory, plan, versions())
    if replaced := store.gather():
        warnings.warn(
            f"{replaced:,} rows belong to target policies or defaults that have been replaced. They are moved to "
            f"{store.replaced}, and their jobs run again.",
            stacklevel=2,
        )
    done = store.done()
    left = [rest for job in jobs if (rest := job.without(done)).methods]
    report(len(jobs) - len(left), len(jobs))
    for count, (job, rows) in enumerate(executor(run, left), start=len(jobs) - len(left) + 1):
        store.add(job, rows)
        on_finished(job, rows)
        report(count, len(jobs))
    store.gather()
    return store
