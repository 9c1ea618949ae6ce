"""The command line: parse, call one function, print."""

import io
import sys

from average_dice.cli.signals import Stopped, leave, take_signals


def main() -> None:
    """The entry point. Expected errors exit with code 2 and signals with 130 or 143, both without a traceback."""
    try:
        take_signals()
        _run()
    except Stopped as stopped:
        leave(stopped)


def _run() -> None:
    from average_dice.cli.commands import app
    from average_dice.errors import AverageDiceError

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
