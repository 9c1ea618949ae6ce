"""Progress of long work: whoever does it reports, whoever wants to see it listens, and nothing in between knows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int], None]  # (done, total)

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(done: int, total: int) -> None:
    """Says how far the work is."""
    if (listener := _listener.get()) is not None:
        listener(done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within this context, `listener` hears every report."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(index: int, num_parts: int) -> Iterator[None]:
    """Within this context, reports are of one part of the work; the parts are alike in size."""
    outer = _listener.get()
    if outer is None:
        yield
        return
    with listening(lambda done, total: outer(index * total + done, num_parts * total)):
        yield
