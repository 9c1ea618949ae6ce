"""Errors. Every message says what happened, where, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


class AverageDiceError(Exception):
    """The base class of every error that this library raises on purpose."""


class DatasetError(AverageDiceError, ValueError):
    """An invalid log.

    `problems` holds one sentence for each problem; the message is all of them.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class PolicyError(AverageDiceError, ValueError):
    """A policy or policy file that is invalid, or that does not match the log."""


class SettingError(AverageDiceError, ValueError):
    """A setting outside its range, or an unknown name."""


class NotApplicable(AverageDiceError):
    """A method needs something that this problem does not have. The message says what."""


class NotEnoughMemory(AverageDiceError, MemoryError):
    """Even the form that needs the least memory would exceed the limit. Raised before anything is computed."""


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Within this context, a missing package raises an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise SettingError(
            f"this needs {missing.name}. Install the extra: pip install 'average-dice[{extra}]', "
            f"or pip install -e '.[{extra}]' in a clone."
        ) from None
