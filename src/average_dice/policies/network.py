"""The small networks of policies, in float64 NumPy: precise, and the same on every machine."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.errors import PolicyError
from average_dice.policies.base import Observations

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0.0)}


@dataclass(frozen=True, eq=False)
class Network:
    """An MLP on standardised observations: h ← activation(W h + b), with a linear last layer.

    `weights[i]` is [out, in]. `mean` and `std`, if given, standardise the observation first.
    """

    weights: tuple[Float[np.ndarray, "..."], ...]
    biases: tuple[Float[np.ndarray, "..."], ...]
    activation: str = "tanh"
    mean: Float[np.ndarray, " observation"] | None = None
    std: Float[np.ndarray, " observation"] | None = None

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise PolicyError(f"unknown activation {self.activation!r}. Use tanh or relu.")
        if not self.weights or len(self.weights) != len(self.biases):
            raise PolicyError("a network needs at least one layer, and a bias for each weight.")
        if any(weight.ndim != 2 or 0 in weight.shape for weight in self.weights):
            raise PolicyError("every weight must be a matrix [out, in] with at least one number.")
        size = self.num_inputs
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if weight.shape[1] != size or bias.shape != weight.shape[:1]:
                raise PolicyError(
                    f"layer {layer}: weight {weight.shape} and bias {bias.shape} do not fit {size} inputs. "
                    "A weight is [out, in], its bias [out]."
                )
            size = weight.shape[0]
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None and values.shape != (self.num_inputs,):
                raise PolicyError(f"observation {name} has shape {values.shape}, not ({self.num_inputs},).")
        if self.std is not None and not (self.std > 0).all():
            raise PolicyError("observation std must be above zero in every dimension.")
        arrays = (*self.weights, *self.biases, *(v for v in (self.mean, self.std) if v is not None))
        if not all(np.isfinite(values).all() for values in arrays):
            raise PolicyError("the network holds NaN or infinite numbers. Export it again.")

    @property
    def num_inputs(self) -> int:
        """The width of an observation."""
        return int(self.weights[0].shape[-1])

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return int(self.weights[-1].shape[0])

    def __repr__(self) -> str:
        return f"Network({self.num_inputs} inputs, {self.num_outputs} outputs, {self.activation})"

    def __call__(self, observations: Observations) -> Float[np.ndarray, "row output"]:
        if observations.shape[1] != self.num_inputs:
            raise PolicyError(
                f"the policy takes observations of {self.num_inputs} numbers, the log has {observations.shape[1]}. "
                "Give the policy that belongs to this log."
            )
        hidden = observations.astype(np.float64)
        if self.mean is not None:
            hidden = hidden - self.mean
        if self.std is not None:
            hidden = hidden / self.std
        activate = ACTIVATIONS[self.activation]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = activate(hidden @ weight.T + bias)
        return hidden @ self.weights[-1].T + self.biases[-1]
