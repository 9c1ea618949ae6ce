"""What functions and models return, in one form: arrays, and what they are.

Tensors and distributions of torch and JAX are read by what they have (`detach`, `logits`, `loc`), so that nothing is
imported here.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from average_dice.errors import PolicyError


class Kind(StrEnum):
    """What an array is. The values are those of the option `output`."""

    PROBABILITIES = "probabilities"  # [row, action]
    LOGITS = "logits"  # [row, action]
    ACTIONS = "actions"  # [row] numbers or names of actions, or [row, action] floats
    GAUSSIAN = "gaussian"  # mean and standard deviation, [row, action] each
    SQUASHED = "squashed"  # the same, before a tanh
    DISTRIBUTION = "distribution"  # any other, by its log_prob and sample
    UNKNOWN = "unknown"  # an array; the log decides


@dataclass(frozen=True, eq=False)
class Output:
    """Arrays with one row for each observation. A squashed Gaussian has the bounds of its actions."""

    kind: Kind
    arrays: tuple[np.ndarray, ...] = ()
    low: Any = None
    high: Any = None
    distribution: Any = None

    @staticmethod
    def joined(parts: "list[Output]") -> "Output":
        """The output of several batches."""
        first = parts[0]
        arrays = tuple(np.concatenate(arrays) for arrays in zip(*(part.arrays for part in parts), strict=True))
        return Output(first.kind, arrays, first.low, first.high)


def read_output(given: Any) -> Output:
    """The output of a function or model: an array, a pair (mean, std) or a distribution."""
    if isinstance(given, Output):
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(hasattr(one, "shape") for one in given):
        mean, std = map(as_array, given)
        return Output(Kind.GAUSSIAN, (mean, np.broadcast_to(std, mean.shape) if std.ndim < 2 else std))
    if isinstance(given, tuple | dict):
        raise PolicyError(
            f"the policy returns a {type(given).__name__} of {len(given)}. It must return probabilities, logits, "
            "actions, a distribution, or a pair of arrays (mean, std): wrap it in a function that does."
        )
    if hasattr(given, "log_prob"):
        return read_distribution(given)
    return Output(Kind.UNKNOWN, (as_array(given),))


def read_distribution(given: Any) -> Output:
    """A distribution of torch, or one of JAX with the same names: `logits`, `loc`, `scale`."""
    names = {kind.__name__ for kind in type(given).__mro__}
    if names & {"Categorical", "OneHotCategorical"}:
        return Output(Kind.LOGITS, (as_array(given.logits),))
    if "Bernoulli" in names:
        logits = as_array(given.logits).reshape(-1)
        return Output(Kind.LOGITS, (np.column_stack([np.zeros_like(logits), logits]),))
    if "Independent" in names and hasattr(given, "base_dist"):
        return read_distribution(given.base_dist)
    if "MultivariateNormal" in names and hasattr(given, "scale_tril"):
        return Output(Kind.GAUSSIAN, (as_array(given.loc), as_array(given.scale_tril)))
    if "MultivariateNormalDiag" in names and hasattr(given, "scale_diag"):
        return Output(Kind.GAUSSIAN, (as_array(given.loc), as_array(given.scale_diag)))
    if "Normal" in names:
        return Output(Kind.GAUSSIAN, (as_array(given.loc), as_array(given.scale)))
    if hasattr(given, "base_dist") and hasattr(given, "transforms"):
        return _read_transformed(given)
    return Output(Kind.DISTRIBUTION, distribution=given)


def _read_transformed(given: Any) -> Output:
    """A Gaussian followed by a tanh, and perhaps by shift and scale, is squashed. Others are read by their log_prob."""
    base = read_distribution(given.base_dist)
    transforms = [_inner(one) for one in given.transforms]
    names = [type(one).__name__ for one in transforms]
    if base.kind is Kind.GAUSSIAN and names in (["TanhTransform"], ["TanhTransform", "AffineTransform"]):
        width = base.arrays[0].shape[1]
        shift, scale = (transforms[1].loc, transforms[1].scale) if len(transforms) == 2 else (0.0, 1.0)
        middle, half = (np.broadcast_to(as_array(one), (width,)) for one in (shift, scale))
        if (half > 0).all():
            return Output(Kind.SQUASHED, base.arrays, middle - half, middle + half)
    return Output(Kind.DISTRIBUTION, distribution=given)


def _inner(transform: Any) -> Any:
    """Without the wrapper that declares dimensions of the event."""
    return transform.base_transform if type(transform).__name__ == "IndependentTransform" else transform


def as_array(given: Any) -> np.ndarray:
    """A NumPy array of an array, a tensor, a data frame or a list."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    return np.asarray(given)
