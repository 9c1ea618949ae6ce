"""A Ray cluster: joining one, and passes over a log in blocks that its workers compute.

Every worker has one thread, so workers do not compete for cores and add in the same order everywhere. Ray is imported
inside functions: it is an extra.
"""

import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from average_dice import memory
from average_dice.data import LogBlocks
from average_dice.errors import AverageDiceError, DatasetError, SettingError, needs_extra
from average_dice.passes import THREADS, Executor, Group, Part, Work, groups, of_group
from average_dice.version import __version__

ONE_THREAD = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # NPROC: XLA's
RETRIES = 3  # of a task after its worker crashed: another process may have used up the memory
TO_JOIN = 30  # seconds to join a Ray cluster, which usually takes a few
TASKS_BY_CORE = 2  # under way: the second waits for its core while the sums of the first are sent

NAMES = ("local", "ray")


@contextmanager
def executor_named(name: str | Executor, address: str | None, blocks: LogBlocks) -> Iterator[Executor]:
    """The executor of this name (local, ray) or the one given, for passes over this log."""
    if not isinstance(name, str):
        yield name
        return
    check_name(name, address)
    if name == "local":
        yield THREADS
        return
    address = address or os.environ.get("RAY_ADDRESS")  # which `ray job submit` sets
    ray = checked(address)
    if blocks.copy is not None and (address is not None or ray.is_initialized()):
        raise SettingError(
            f"the rows of this log are not sorted, and their sorted copy is in {blocks.copy.path}, which other nodes "
            "of the cluster may not see. Sort them before you write them, or open the log with a folder for the copy "
            "that all nodes see: LogBlocks.open(…, folder=…)."
        )
    if ray.is_initialized():  # by the user, whose cluster it remains
        yield RayTasks(ray)
        return
    with joined(ray, address):
        yield RayTasks(ray)


def check_name(name: str, address: str | None) -> None:
    """Raises unless there is such an executor and the address is one for it."""
    if name not in NAMES:
        raise SettingError(f"unknown executor {name!r}. Known are {', '.join(NAMES)}.")
    if name == "local" and address is not None:
        raise SettingError("--address is the address of a Ray cluster. Add --executor ray.")


@dataclass(frozen=True, eq=False)
class RayTasks:
    """A task for each group of blocks: it reads them, and sends back their sums. Killed workers are replaced."""

    ray: Any

    def parts(self, work: Work[Part], blocks: LogBlocks) -> Iterator[Part]:
        """Sends what all tasks share once, and keeps a bounded number of tasks under way."""
        shared = self.ray.put((work, blocks, memory.limit()))
        known = _versions()
        task = self.ray.remote(num_cpus=1, max_retries=RETRIES)(_of_group)
        waiting: deque[Any] = deque()
        try:
            for group in groups(blocks):
                waiting.append(task.remote(known, shared, group))
                if len(waiting) > self._most:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for one in waiting:
                self.ray.cancel(one)

    @property
    def _most(self) -> int:
        return max(1, TASKS_BY_CORE * int(self.ray.cluster_resources().get("CPU", 1)))  # nodes come and go

    def _result(self, task: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(task)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, AverageDiceError):
                raise cause from None
            raise
        except (errors.WorkerCrashedError, errors.OutOfMemoryError):
            raise SettingError(
                f"a part of the log crashed {RETRIES + 1} workers, possibly out of memory. Start the nodes with fewer "
                "CPUs (ray start --num-cpus), so that each has fewer workers."
            ) from None


def _versions() -> dict[str, str]:
    """Those on which the last digits depend. Ray itself compares Python's and its own."""
    return {"average-dice": __version__, "numpy": version("numpy")}


def _of_group(known: dict[str, str], shared: tuple[Work[Part], LogBlocks, int], group: Group) -> Part:
    if (found := _versions()) != known:
        raise SettingError(
            f"{socket.gethostname()}, a node of the cluster, has {found}, and you have {known}. "
            "Install the same versions."
        )
    work, blocks, limit = shared
    for path in blocks.paths_of(*group):
        if not path.exists():
            raise DatasetError(
                f"{path}: {socket.gethostname()}, a node of the cluster, does not see this file. Put the log into a "
                "folder that every node has under the same path."
            )
    with memory.limited(limit):
        return of_group(work, blocks, group)


def checked(address: str | None) -> Any:
    """The module ray, if it is installed and a cluster at this address answers; None: one on this machine."""
    if address is not None:
        if address != "auto":  # Ray itself finds the cluster of this machine
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
    return ray


@contextmanager
def joined(ray: Any, address: str | None) -> Iterator[None]:
    """Within this context this process has joined the cluster, or a temporary one on this machine."""
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
        yield
    finally:
        ray.shutdown()


def num_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
