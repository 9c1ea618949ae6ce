"""Who does the work: processes of this machine, or a Ray cluster. Both run the same function on the same units.

Every worker has one thread: workers do not fight over cores, and a sum adds up in the same order wherever it is formed,
so both give the same numbers to the last digit.
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
from average_dice.experiments.jobs import Unit

Rows = list[dict[str, Any]]
Work = Callable[[Unit], Rows]
Finished = tuple[Unit, Rows]
Failure = tuple[Unit, BaseException]
Executor = Callable[[Work, Sequence[Unit]], Iterator[Finished]]

ONE_THREAD = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # NPROC: XLA's
RETRIES = 3  # of what a worker was doing when it died
TO_JOIN = 30  # seconds for a Ray cluster to let us in


def num_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local(num_processes: int | None = None) -> Executor:
    """Processes of this machine, one for each core.

    What was under way when one died is done again after all the rest, unit by unit: then it is known whose fault it is.
    """

    def run(work: Work, units: Sequence[Unit]) -> Iterator[Finished]:
        suspects: list[Unit] = []
        failed: list[Failure] = []
        for unit, future in _in_processes(work, units, num_processes or num_cores()):
            if isinstance(error := future.exception(), BrokenProcessPool):
                suspects.append(unit)
            elif error is None:
                yield unit, future.result()
            else:
                failed.append((unit, error))
        for unit in suspects:
            for _ in range(RETRIES):
                ((_, future),) = _in_processes(work, [unit], 1)
                if not isinstance(error := future.exception(), BrokenProcessPool):
                    break
            if error is None:
                yield unit, future.result()
            else:
                failed.append((unit, _deadly() if isinstance(error, BrokenProcessPool) else error))
        _raise(failed)

    return run


def _in_processes(work: Work, units: Sequence[Unit], count: int) -> Iterator[tuple[Unit, Future[Rows]]]:
    """Each unit with what came of it: rows, an error, or that its process or that of another died meanwhile."""
    waiting = deque(units)
    deaths = 0  # since a unit was last finished
    while waiting:
        with _environment(ONE_THREAD):
            pool = ProcessPoolExecutor(
                min(count, len(waiting)), multiprocessing.get_context("spawn"), _leave_with_parent
            )
            under_way: dict[Future[Rows], Unit] = {}
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
                        died = isinstance(future.exception(), BrokenProcessPool)
                        broken, deaths = broken or died, deaths if died else 0
                        yield under_way.pop(future), future
            finally:
                _stop(pool)
        deaths += broken
        if deaths > RETRIES and waiting:
            raise SettingError(
                f"workers died {deaths} times in a row, perhaps for want of memory. Use fewer processes."
            )


def _deadly() -> SettingError:
    return SettingError(f"{RETRIES + 1} workers died of the same unit, perhaps for want of memory.")


def ray_cluster(address: str | None = None) -> Executor:
    """A Ray cluster: that at `address` (of `ray start --head`), or one started here for the time of the work."""
    if address is not None:
        _check_address(address)
        if (Path.home() / ".ray" / "auth_token").exists():  # Ray's own; clusters of today ask for it
            os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # Ray's own would be for ever
    with needs_extra("ray"):
        import ray
    if address is not None:
        _check_cluster(address)

    def run(work: Work, units: Sequence[Unit]) -> Iterator[Finished]:
        here: dict[str, Any] = {"address": "local", "num_cpus": num_cores(), "include_dashboard": False}
        begin = here if address is None else {"address": address}
        try:
            ray.init(**begin, log_to_driver=False, logging_level="error", runtime_env={"env_vars": ONE_THREAD})
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise SettingError(
                f"no Ray cluster that lets us in at {begin['address']}: {error} "
                "If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, as Ray's documentation says."
            ) from None
        try:
            remote = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
            waiting = {remote.remote(unit): unit for unit in units}
            failed: list[Failure] = []
            while waiting:
                for finished in ray.wait(list(waiting), num_returns=1)[0]:
                    unit = waiting.pop(finished)
                    try:
                        rows = ray.get(finished)
                    except ray.exceptions.RayTaskError as error:
                        if isinstance(error, ImportError | SettingError):  # the cluster's fault: all would fail
                            raise
                        failed.append((unit, error))
                    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                        failed.append((unit, _deadly()))
                    else:
                        yield unit, rows
            _raise(failed)
        finally:
            ray.shutdown()

    return run


def find_executor(name: str, processes: int | None = None, address: str | None = None) -> Executor:
    """The executor of that name; raises if it cannot be had."""
    if name == "local" and address is not None:
        raise SettingError("--address is that of a Ray cluster: say --executor ray, too.")
    if name == "ray" and processes is not None:
        raise SettingError("--processes is for --executor local: Ray takes all cores that the cluster has.")
    if name not in ("local", "ray"):
        raise SettingError(f"unknown executor {name!r}. Known are local, ray.")
    return local(processes) if name == "local" else ray_cluster(address)


def _raise(failed: Sequence[Failure]) -> None:
    """The first mistake, with the names of all units that made one; to be called after everything else is done."""
    if not failed:
        return
    error = failed[0][1]
    for unit, one in failed:
        methods = ", ".join(method.estimator for method in unit.methods)
        error.add_note(f"log {unit.log} of {unit.task}, {unit.setting}: {methods}: {type(one).__name__}: {one}")
    error.add_note(f"{len(failed)} of the units failed; all others are done.")
    raise error


def _check_address(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            pass
    except (OSError, ValueError, OverflowError):
        raise SettingError(
            f"nothing answers at {address}. Start a cluster with `ray start --head` and give the address it prints."
        ) from None


def _check_cluster(address: str) -> None:
    """Asks in another process, for Ray itself would wait for minutes where something else listens, and then abort."""
    joining = f"import ray; ray.init({address!r}, log_to_driver=False, logging_level='error')"
    try:
        subprocess.run([sys.executable, "-c", joining], capture_output=True, timeout=TO_JOIN, check=False)
    except subprocess.TimeoutExpired:
        raise SettingError(
            f"what answers at {address} is no Ray cluster, or one that lets nobody in within {TO_JOIN} seconds. "
            "Give the address that `ray start --head` prints; it is not that of the dashboard."
        ) from None


def _leave_with_parent() -> None:
    """A worker ends when the process that started it has been killed, rather than wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _stop(pool: ProcessPoolExecutor) -> None:
    """Ends the workers at once, also in the middle of something: a unit half done is worth nothing."""
    if sys.version_info >= (3, 14):
        pool.terminate_workers()
        return
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started within never see SIGINT: Ctrl-C reaches them, too, but it is the parent that ends them."""
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
