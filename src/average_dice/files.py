"""Files that are either written whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`; a clean exit moves it there, an error removes it.

    Whatever stood at `path` before stays untouched until the new file is complete.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.partial")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
