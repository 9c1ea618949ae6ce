"""Errors inside of a user's own policy, with what the log gives it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from average_dice.data import LoggedDataset
from average_dice.errors import AverageDiceError, PolicyError, first_line
from average_dice.policies.adapters.log_names import SHOWN, column_names


@contextmanager
def explained(source: str, data: LoggedDataset) -> Iterator[None]:
    """Within it, an error of the user's code becomes one that says where, and which columns the log has."""
    try:
        yield
    except AverageDiceError:
        raise
    except Exception as error:
        last = extract_tb(error.__traceback__)[-1]
        names = column_names(data)
        more = f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        columns = "column" if len(names) == 1 else "columns"
        raise PolicyError(
            f"{source} fails on the observations of the log ({type(error).__name__} in {Path(last.filename).name}, "
            f"line {last.lineno}: {first_line(error)}). The log gives it {len(names):,} {columns}: "
            f"{', '.join(names[:SHOWN])}{more}. Give the log the observations that the policy needs, in its order."
        ) from error
