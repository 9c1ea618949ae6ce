"""Processes that a test starts, and that are gone when it ends, whatever happens."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def started(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen]:
    """A process in a group of its own; the end of the block kills all of the group."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError, PermissionError):  # macOS says the second of a group that is gone
                os.killpg(process.pid, signal.SIGKILL)


def members(group: int) -> list[int]:
    """The processes of a group that are still alive."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, its_group, state in rows if int(its_group) == group and not state.startswith("Z")]
