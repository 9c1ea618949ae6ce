"""The command line: parse, call one function, print."""

import io
import sys

from ..errors import AverageDiceError
from .app import app

# Each adds its commands, in the order in which --help shows them.
# isort: off
from . import evaluating  # noqa: F401
from . import tasks  # noqa: F401
from . import benchmarking  # noqa: F401
# isort: on


def main() -> None:
    """The entry point: errors that we understand are one message and exit code 2, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without γ shows a question mark, not a traceback
    try:
        app()
    except AverageDiceError as error:
        for line in (*getattr(error, "problems", (str(error),)), *getattr(error, "__notes__", ())):
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"error: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
