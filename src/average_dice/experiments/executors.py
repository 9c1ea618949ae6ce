"""Executors: local processes or a Ray cluster. Both run the same function on the same jobs.

Every worker has one thread. Workers then do not compete for cores, and sums are computed in the same order everywhere:
both executors give the same numbers to the last digit.
"""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from average_dice.errors import SettingError, needs_extra
from average_dice.experiments.jobs import Job, Row

Work = Callable[[Job], list[Row]]
Finished = tuple[Job, list[Row]]
Failure = tuple[Job, BaseException]
Executor = Callable[[Work, Sequence[Job]], Iterator[Finished]]

ONE_THREAD = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # NPROC: XLA's
RETRIES = 3  # of a job after its worker crashed: another process may have used up the memory
TO_JOIN = 30  # seconds to join a Ray cluster, which usually takes a few


def num_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    if address is not None:
        _check_address(address)
        if (Path.home() / ".ray" / "auth_token").exists():  # Ray's own file; its recent clusters require the token
            os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # Ray's default is to retry for ever
    with needs_extra("ray"):
        import ray
    if " " in sys.executable:  # its workers are started by a shell that splits the path: they would be awaited for ever
        raise SettingError(
            f"Ray cannot start workers with {sys.executable}, because of the space in this path. "
            "Move the virtual environment to a path without spaces, or use --executor local."
        )
    if address is not None:
        _check_cluster(address)

    def run(work: Work, jobs: Sequence[Job]) -> Iterator[Finished]:
        here: dict[str, Any] = {"address": "local", "num_cpus": num_cores(), "include_dashboard": False}
        begin = here if address is None else {"address": address}
        try:
            ray.init(**begin, log_to_driver=False, logging_level="error", runtime_env={"env_vars": ONE_THREAD})
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise SettingError(
                f"cannot join a Ray cluster at {begin['address']}: {error} "
                "If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, as Ray's documentation says."
            ) from None
        try:
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
        finally:
            ray.shutdown()

    return run


def find_executor(name: str, processes: int | None = None, address: str | None = None) -> Executor:
    """The executor of that name; raises if its options do not fit or its cluster does not answer."""
    if name == "local" and address is not None:
        raise SettingError("--address is the address of a Ray cluster. Add --executor ray.")
    if name == "ray" and processes is not None:
        raise SettingError(
            "--processes is an option of --executor local. Ray uses all cores of the cluster: leave it out."
        )
    if name not in ("local", "ray"):
        raise SettingError(f"unknown executor {name!r}. Known are local, ray.")
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


def _check_address(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):  # seconds, enough across a network
            pass
    except (OSError, ValueError, OverflowError):
        raise SettingError(
            f"nothing answers at {address}. Start a cluster with `ray start --head` and give the address it prints."
        ) from None


def _check_cluster(address: str) -> None:
    """Joins in another process first: if another program listens there, Ray waits for minutes and then aborts ours."""
    joining = f"import ray; ray.init({address!r}, log_to_driver=False, logging_level='error')"
    try:
        subprocess.run([sys.executable, "-c", joining], capture_output=True, timeout=TO_JOIN, check=False)
    except subprocess.TimeoutExpired:
        raise SettingError(
            f"no Ray cluster at {address} accepted the connection within {TO_JOIN} seconds. "
            "Give the address that `ray start --head` prints, not that of the dashboard."
        ) from None


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
