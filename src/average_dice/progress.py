"""Progress of long work: the work reports it, and a listener shows it. Code in between passes nothing on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

Listener = Callable[[int, int], None]  # (done, total)

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(done: int, total: int) -> None:
    """Reports how much of the work is done."""
    if (listener := _listener.get()) is not None:
        listener(done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within this context, every report goes to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(index: int, num_parts: int) -> Iterator[None]:
    """Within this context, reports are about one of `num_parts` equal parts of the work."""
    outer = _listener.get()
    if outer is None:
        yield
        return
    with listening(lambda done, total: outer(index * total + done, num_parts * total)):
        yield


@contextmanager
def progress_bar(console: "Console | None" = None, timed: bool = False) -> Iterator[Callable[[str], None]]:
    """A progress bar of the work within this context. Gives a function that sets its title and starts it again."""
    from rich.progress import Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns(), *([TimeElapsedColumn()] if timed else []))
    whole_run = 1e9  # seconds: the speed is measured over the whole run, because one job may take minutes
    with Progress(*columns, console=console, transient=True, speed_estimate_period=whole_run) as progress:
        task = progress.add_task("", total=None)

        def starting(name: str) -> None:
            progress.reset(task, description=name, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        with listening(report):
            yield starting


def shown_by_argument(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function whose keyword argument `progress` shows a progress bar while it runs; it reports by `starting`."""

    @wraps(function)
    def shown(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not kwargs.get("progress"):
            return function(*args, **kwargs)
        also = kwargs.get("starting")
        with progress_bar() as title:

            def starting(name: str) -> None:
                title(name)
                if callable(also):
                    also(name)

            return function(*args, **{**kwargs, "starting": starting})  # type: ignore[arg-type]

    return shown
