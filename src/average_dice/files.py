"""Writing files whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from average_dice.errors import SettingError


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`. A clean exit moves the file to `path`, an error removes it.

    An existing file stays unchanged until the new one is complete. A link stays a link, and the file that it points to
    is replaced. A pipe or a device is written to directly, because it cannot be replaced.
    """
    check_writable(path)
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = target.with_name(f".{target.name}.{uuid4().hex}.partial")
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())  # otherwise a power failure could leave an empty file of that name
        temporary.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # names the path that the user gave
    finally:
        temporary.unlink(missing_ok=True)


def write_text_whole(path: str | Path, text: str) -> None:
    """Writes a text file whole or not at all, in UTF-8 for every locale."""
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def make_folder(path: str | Path) -> None:
    """Makes a folder that files can be written to, if there is none. Call it before long work."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise SettingError(f"{path}: a file, not a folder. Give the name of a folder.")
    target.mkdir(parents=True, exist_ok=True)
    if not os.access(target, os.W_OK):
        raise SettingError(f"{path}: no permission to write there. Choose another folder.")


def check_writable(path: str | Path) -> None:
    """Raises if no file can be written there. Call it before long work."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise SettingError(f"{path}: its folder does not exist. Create it first.")
    if target.is_dir():
        raise SettingError(f"{path}: a folder, not a file. Give the name of a file.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise SettingError(f"{path}: no permission to write there. Choose another path.")
