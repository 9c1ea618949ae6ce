"""Errors. Every message says what happened, where, and what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " Did you mean fqe?" with a space before it, or nothing if no known name is similar.

    >>> did_you_mean("fge", ["fqe", "wis"])
    ' Did you mean fqe?'
    """
    by_lower_case = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.5)
    return f" Did you mean {by_lower_case[found[0]]}?" if found else ""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters; the name of its class if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


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
