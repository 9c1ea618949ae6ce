"""Executors: local processes or a Ray cluster. Both run the same function on the same jobs.

Every worker has one thread. Workers then do not compete for cores, and sums are computed in the same order everywhere:
both executors give the same numbers to the last digit.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait

from average_dice.errors import SettingError
from average_dice.experiments.jobs import Job, Row
from average_dice.ray_cluster import ONE_THREAD, RETRIES, check_name, checked, joined, num_cores

Work = Callable[[Job], list[Row]]
Finished = tuple[Job, list[Row]]
Failure = tuple[Job, BaseException]
Executor = Callable[[Work, Sequence[Job]], Iterator[Finished]]


def local(num_processes: int | None = None) -> Executor:
    """Processes of this machine, one for each core.

    When a process crashes, all jobs under way are lost. They are run again after all others, one by one, which shows
    which of them crashes.
    """

    def run(work: Work, jobs: Sequence[Job]) -> Iterator[Finished]:
        suspects: list[Job] = []
        failed: list[Failure] = []
        for job, future in _in_processes(work, jobs, num_processes or num_cores()):
            if isinstance(error := future.exception(), BrokenProcessPool):
                suspects.append(job)
            elif error is None:
                yield job, future.result()
            else:
                failed.append((job, error))
        for job in suspects:
            for _ in range(RETRIES):
                ((_, future),) = _in_processes(work, [job], 1)
                if not isinstance(error := future.exception(), BrokenProcessPool):
                    break
            if error is None:
                yield job, future.result()
            else:
                failed.append((job, _crashed() if isinstance(error, BrokenProcessPool) else error))
        _raise(failed)

    return run


def _in_processes(work: Work, jobs: Sequence[Job], count: int) -> Iterator[tuple[Job, Future[list[Row]]]]:
    """Each job with its rows, its error, or `BrokenProcessPool` if a process crashed in the meantime."""
    waiting = deque(jobs)
    crashes = 0  # since a job was last finished
    while waiting:
        with _environment(ONE_THREAD):
            pool = ProcessPoolExecutor(
                min(count, len(waiting)), multiprocessing.get_context("spawn"), _leave_with_parent
            )
            under_way: dict[Future[list[Row]], Job] = {}
            broken = False
            try:
                while under_way or (waiting and not broken):
                    while waiting and not broken and len(under_way) < count:
                        try:
                            with _without_interrupts():
                                future = pool.submit(work, waiting[0])
                        except BrokenProcessPool:
                            broken = True
                        else:
                            under_way[future] = waiting.popleft()
                    if under_way:
                        future = next(as_completed(under_way))
                        crashed = isinstance(future.exception(), BrokenProcessPool)
                        broken, crashes = broken or crashed, crashes if crashed else 0
                        yield under_way.pop(future), future
            finally:
                _stop(pool)
        crashes += broken
        if crashes > RETRIES and waiting:
            raise SettingError(
                f"workers crashed {crashes} times in a row, possibly out of memory. Use fewer --processes."
            )


def _crashed() -> SettingError:
    return SettingError(f"this run crashed {RETRIES + 1} workers, possibly out of memory. Free some, and run it again.")


def ray_cluster(address: str | None = None) -> Executor:
    """A Ray cluster: the one at `address` (of `ray start --head`), or a temporary one on this machine."""
    ray = checked(address)

    def run(work: Work, jobs: Sequence[Job]) -> Iterator[Finished]:
        with joined(ray, address):
            remote = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
            waiting = {remote.remote(job): job for job in jobs}
            failed: list[Failure] = []
            while waiting:
                for finished in ray.wait(list(waiting), num_returns=1)[0]:
                    job = waiting.pop(finished)
                    try:
                        rows = ray.get(finished)
                    except ray.exceptions.RayTaskError as error:
                        if isinstance(error, ImportError | SettingError):  # of the cluster: all jobs would fail
                            raise
                        failed.append((job, error))
                    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                        failed.append((job, _crashed()))
                    else:
                        yield job, rows
            _raise(failed)

    return run


def find_executor(name: str, processes: int | None = None, address: str | None = None) -> Executor:
    """The executor of that name; raises if its options do not fit or its cluster does not answer."""
    if name == "ray" and processes is not None:
        raise SettingError(
            "--processes is an option of --executor local. Ray uses all cores of the cluster: leave it out."
        )
    check_name(name, address)
    return local(processes) if name == "local" else ray_cluster(address)


def _raise(failed: Sequence[Failure]) -> None:
    """Raises the first error, with notes that name all jobs that failed. Called after all other jobs are done."""
    if not failed:
        return
    error = failed[0][1]
    for job, one in failed:
        methods = ", ".join(method.estimator for method in job.methods)
        error.add_note(f"log {job.log} of {job.task}, {job.setting}: {methods}: {type(one).__name__}: {one}")
    error.add_note(f"{len(failed)} of the jobs failed; all others are done.")
    raise error


def _leave_with_parent() -> None:
    """Ends a worker when the process that started it is killed. Otherwise the worker would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _stop(pool: ProcessPoolExecutor) -> None:
    """Ends the workers at once: a job that is half done has no rows."""
    if sys.version_info >= (3, 14):
        pool.terminate_workers()
        return
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started within ignore SIGINT. Ctrl-C is sent to them, too, but the parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Processes started within inherit these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
