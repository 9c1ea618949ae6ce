"""A log as it would be if its episodes had been truncated earlier."""

from dataclasses import replace

from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.data.dataset import LoggedDataset


def truncated_at(data: LoggedDataset, step: int) -> LoggedDataset:
    """The log of the first steps. Episodes that went on are truncated there."""
    rows = data.step < step
    given = {name: getattr(data, name) for name in (*REQUIRED, *OPTIONAL)}
    columns = {name: values[rows] for name, values in given.items() if values is not None}
    last = columns["step"] == step - 1
    columns["truncated"] = columns["truncated"] | (last & ~columns["terminated"])
    return replace(
        data,
        **columns,
        extra={name: values[rows] for name, values in data.extra.items()},
        estimated_behaviour=None if data.estimated_behaviour is None else data.estimated_behaviour.of_rows(rows),
    )
