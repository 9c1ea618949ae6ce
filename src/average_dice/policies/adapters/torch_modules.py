"""Modules of torch: logits, a pair (mean, std), actions, or a torch.distributions object."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from average_dice import memory
from average_dice.data import LoggedDataset
from average_dice.policies.adapters.callables import from_call
from average_dice.policies.adapters.outputs import Kind, Output, read_output
from average_dice.policies.base import Observations, Policy

ROWS_AT_ONCE = 4_096


def from_module(module: Any, data: LoggedDataset | None, *, output: str | None = None) -> Policy:
    """A torch module, called with float tensors [row, observation] in evaluation mode, without gradients."""

    def call(observations: Observations) -> Output:
        with evaluating(module) as tensor:
            some = memory.rows_at_once(ROWS_AT_ONCE)
            parts = []
            for start in range(0, max(len(observations), 1), some):
                parts.append(read_output(module(tensor(observations[start : start + some]))))
            if parts[0].kind is Kind.DISTRIBUTION and len(parts) > 1:
                return read_output(module(tensor(observations)))
            return parts[0] if len(parts) == 1 else Output.joined(parts)

    return from_call(call, data, type(module).__name__, output=output, logits=True)


@contextmanager
def evaluating(module: Any) -> Iterator[Any]:
    """Within this context the module evaluates. Gives a function that makes tensors on its device.

    Afterwards each of its modules trains or evaluates as before.
    """
    import torch

    parameter = next(iter(module.parameters()), None)
    dtype = torch.float32 if parameter is None or not parameter.is_floating_point() else parameter.dtype
    device = None if parameter is None else parameter.device
    modes = [(one, one.training) for one in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield lambda values: torch.as_tensor(np.array(values), dtype=dtype, device=device)
    finally:
        for one, mode in modes:
            one.training = mode
