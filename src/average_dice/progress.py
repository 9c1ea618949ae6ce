"""Progress of long work: the work reports it, and a listener shows it. Code in between passes nothing on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
