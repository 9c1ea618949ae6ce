"""The contract of a form of the bounds: a resample of the log, then some Γ and a side, give bounds."""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from average_dice.resampling import Resample

Gammas = Float[np.ndarray, " gamma"]
Side = Literal[-1, 1]  # the lower or the upper bound
LOWER: Side = -1
UPPER: Side = 1
Bounds = Callable[[Gammas, Side], Float[np.ndarray, " gamma"]]  # the bound of this side at each Γ


@runtime_checkable
class Form(Protocol):
    """An assumption about what was not recorded, and how the bounds under it are computed.

    - `name`: in tables and in the JSON form; `assumption`: a sentence for people; `sharpness`: how tight they are.
    - At Γ = 1 both bounds are the estimate without unrecorded causes.
    """

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def assumption(self) -> str:
        """What may have been unrecorded."""
        ...

    @property
    def sharpness(self) -> str:
        """Whether the bounds could be narrower under the same assumption."""
        ...

    def on(self, resample: Resample) -> Bounds:
        """The bounds by these episodes. Raises `NotApplicable` if they have no weight."""
        ...
