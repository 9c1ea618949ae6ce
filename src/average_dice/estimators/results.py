"""Results of estimators: a `Fit`, the `Critic` in it, and the `Estimate` that users see."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable
from average_dice.models.learning_curves import History
from average_dice.notes import Note
from average_dice.problem import Episodes, Rows

RatioFunction = Callable[..., Float[np.ndarray, " row"]]


@dataclass(frozen=True, eq=False)
class LoggedValues:
    """A critic on the rows of the log: q(s, a), v(s′) (0 after a termination), and v(s₀) of its episodes."""

    q: Rows
    after: Rows
    start: Episodes


@dataclass(frozen=True, eq=False)
class Critic:
    """The values of states and actions under π, on the scale of J.

    q(s, a) = (1 − γ) E_π[Σ γᵗ r_t | s, a],      v(s) = E_π[q(s, a)],      J = E[v(s₀)]

    `logged`: the same on the rows it was fitted to, if they were computed.
    """

    q: Callable[[np.ndarray, np.ndarray], Float[np.ndarray, " row"]]
    v: Callable[[np.ndarray], Float[np.ndarray, " row"]]
    logged: LoggedValues | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a method.

    - `value`: J(π) = (1 − γ) E_π[Σ γᵗ r_t], a reward per step; `value / (1 − γ)` is the discounted return.
    - `weights`: if the method weights rows, the factors of their rewards: `value` is the mean of weights · rewards.
    - `critic`: if the method learns values of states and actions, these, on the scale of J.
    - `episode_values`: if the estimate is a mean over independent episodes, a function that returns one number for each
      episode. Their mean is the estimate (for doubly robust methods, up to cross-fitting).
    - `history`: value and loss against training steps, if the method trains.
    - `diagnostics`: numbers that show how far to trust it; `notes`: assumptions and problems.
    """

    value: float
    weights: Rows | None = None
    ratio_function: RatioFunction | None = None
    critic: Critic | None = None
    episode_values: Callable[[], Episodes] | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    history: History | None = None
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        parts = {"weights": self.weights, "ratio": self.ratio_function, "critic": self.critic, "history": self.history}
        found = ", ".join(name for name, part in parts.items() if part is not None)
        return f"Fit({self.value:.4g}{f', with {found}' if found else ''})"

    def ratio(
        self,
        observations: Float[np.ndarray, "row observation"],
        actions: Int[np.ndarray, " row"] | Float[np.ndarray, "row action"] | None = None,
    ) -> Float[np.ndarray, " row"]:
        """d_π / d_μ at the observations; at (observation, action) for methods that learn the ratio of pairs.

        Methods that regress on state and step average over the steps by one more regression at the first call. For a
        network, this is a second training.
        """
        if self.ratio_function is None:
            raise NotApplicable("this method learns no ratio")
        return self.ratio_function(observations) if actions is None else self.ratio_function(observations, actions)


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval, its confidence level, and how it was computed."""

    lower: float
    upper: float
    level: float
    kind: str

    @property
    def width(self) -> float:
        """The upper end minus the lower."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        return f"Interval([{self.lower:.4g}, {self.upper:.4g}], {self.level:g}, {self.kind})"


@dataclass(frozen=True)
class Estimate:
    """A value with its interval. Either may be None; the notes then say why."""

    value: float | None
    interval: Interval | None = None
    seconds: float = 0.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return f"Estimate({self.in_short})"

    @property
    def in_short(self) -> str:
        """The value with its interval, such as 0.951 [0.94, 0.96]."""
        if self.value is None:
            return "no value"
        ends = "" if self.interval is None else f" [{self.interval.lower:.4g}, {self.interval.upper:.4g}]"
        return f"{self.value:.4g}{ends}"

    @property
    def lower(self) -> float | None:
        """The lower end of the interval."""
        return None if self.interval is None else self.interval.lower

    @property
    def upper(self) -> float | None:
        """The upper end of the interval."""
        return None if self.interval is None else self.interval.upper

    @property
    def level(self) -> float | None:
        """The confidence level of the interval."""
        return None if self.interval is None else self.interval.level

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without the name of the estimator."""
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "level": self.level,
            "interval": None if self.interval is None else self.interval.kind,
            "seconds": self.seconds,
            "diagnostics": dict(self.diagnostics),
            "notes": [note.text for note in self.notes],
            "note_codes": [note.code.value for note in self.notes],
        }
