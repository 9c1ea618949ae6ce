"""Work in threads: NumPy releases Python's lock in matrix products and in functions of whole arrays."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def carried(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function in the context of the caller (its limit of memory, …), for a thread, which would have none."""
    context = copy_context()
    return lambda *args: context.copy().run(function, *args)


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The function of each item, in order, with one thread per core."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(carried(function), items))
