"""What can go wrong, as types. Every message says what was wrong, where, and what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager


class AverageDiceError(Exception):
    """The base of every error that this library raises on purpose."""


class DatasetError(AverageDiceError, ValueError):
    """A log that cannot be used as it is.

    ``problems`` holds one sentence for each thing that is wrong; the message is all of them.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class PolicyError(AverageDiceError, ValueError):
    """A policy, or a policy file, that cannot be used as it is or does not fit the log."""


class SettingError(AverageDiceError, ValueError):
    """A setting outside its range, or a name that nothing answers to."""


class NotApplicable(AverageDiceError):
    """A method needs something that this problem does not have; the message says what and why."""


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Within it, a package that is not installed is an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise SettingError(
            f"this needs {missing.name}. Install the extra: pip install 'average-dice[{extra}]', "
            f"or pip install -e '.[{extra}]' in a clone."
        ) from None
