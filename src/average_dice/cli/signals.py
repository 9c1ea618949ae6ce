"""SIGINT and SIGTERM end a command with one line, also where the process inherited an ignored SIGINT.

A shell starts its background jobs with SIGINT ignored, and Python does not change that: `kill -INT` would do nothing.
So a command handles both signals from its first line on. Files are written whole or not at all.

Python may lose an exception that a handler raises: in destructors, in callbacks, and while compiled modules are
imported, where it may even abort the process (9 of 100 signals at random moments of the first five seconds were lost).
So nothing is raised during an import, and a timer raises again until the exception arrives.
"""

import signal
import sys
from types import FrameType
from typing import NoReturn

MESSAGES = {
    signal.SIGINT: "interrupted: the command stopped and left no half-written file.",
    signal.SIGTERM: "terminated: the command stopped and left no half-written file.",
}
RETRY_AFTER = 0.2  # seconds: a user hardly notices the wait, and the retries take hardly any time
HAS_TIMER = hasattr(signal, "setitimer")


class Stopped(BaseException):
    """A signal stops the command. It is not an `Exception`, so that no handler of exceptions catches it."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number
        super().__init__(number)


def take_signals() -> None:
    """From now on both signals raise `Stopped` in the main thread."""
    sys.unraisablehook = _ignore_stopped
    for number in MESSAGES:
        signal.signal(number, _stop)


def leave(stopped: Stopped) -> NoReturn:
    """Ends the process with one line and the usual exit code. A second signal ends it at once."""
    if HAS_TIMER:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for number in MESSAGES:
        signal.signal(number, signal.SIG_DFL)
    print(MESSAGES[stopped.number], file=sys.stderr)
    sys.exit(128 + stopped.number)


def _stop(number: int, frame: FrameType | None) -> None:
    asked = Stopped(signal.Signals(number))

    def again(alarm: int, frame: FrameType | None) -> None:
        if not _importing(frame) and not _arrived(sys.exception()):
            raise asked

    if HAS_TIMER:
        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, RETRY_AFTER, RETRY_AFTER)
    if not HAS_TIMER or not _importing(frame):
        raise asked


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _arrived(handled: BaseException | None) -> bool:
    """Whether the main thread already handles `Stopped`; it must not be raised again then."""
    while handled is not None:
        if isinstance(handled, Stopped):
            return True
        handled = handled.__context__
    return False


def _ignore_stopped(unraisable: "sys.UnraisableHookArgs") -> None:
    """Prints nothing for a `Stopped` that a destructor or callback lost: the timer raises it again."""
    if not isinstance(unraisable.exc_value, Stopped):
        sys.__unraisablehook__(unraisable)
