"""The contract of a form of the bounds: a resample of the log, then some Γ, give lower and upper bounds."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from jaxtyping import Float

from average_dice.resampling import Resample

Gammas = Float[np.ndarray, " gamma"]
Bounds = tuple[Float[np.ndarray, " gamma"], Float[np.ndarray, " gamma"]]  # lower and upper, at each Γ


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

    def on(self, resample: Resample) -> Callable[[Gammas], Bounds]:
        """A function of Γ for these episodes. Raises `NotApplicable` if they have no weight."""
        ...
