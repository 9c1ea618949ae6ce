"""The one contract: `fit(problem, *, key) → Fit`; and the one result: `Estimate`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable
from average_dice.models import History
from average_dice.problem import Problem
from average_dice.resampling import Draw

Ratio = Callable[..., Float[np.ndarray, " row"]]


@dataclass(frozen=True, eq=False)
class LoggedValues:
    """A critic on the rows of the log: q(s, a), v(s′) (0 after a termination), and v(s₀) of its episodes."""

    q: Float[np.ndarray, " transition"]
    after: Float[np.ndarray, " transition"]
    start: Float[np.ndarray, " episode"]


@dataclass(frozen=True, eq=False)
class Critic:
    """The values that π gives to states and actions, on the scale of J.

    q(s, a) = (1 − γ) E_π[Σ γᵗ r_t | s, a],      v(s) = E_π[q(s, a)],      J = E[v(s₀)]

    `logged`: the same on the rows it was fitted to, where they are known already.
    """

    q: Callable[[np.ndarray, np.ndarray], Float[np.ndarray, " row"]]
    v: Callable[[np.ndarray], Float[np.ndarray, " row"]]
    logged: LoggedValues | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method found.

    - `value`: J(π) = (1 − γ) E_π[Σ γᵗ r_t], a reward per step; `value / (1 − γ)` is the discounted return.
    - `weights`: where the method weights rows, what multiplies their rewards: `value` is the mean of weights · rewards.
    - `critic`: where the method learns values of states and actions, these, on the scale of J.
    - `history`: value and loss against training steps, where the method trains.
    - `diagnostics`: numbers that say how far to trust it; `notes`: what was assumed, in words.
    """

    value: float
    weights: Float[np.ndarray, " transition"] | None = None
    ratio_function: Ratio | None = None
    critic: Critic | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    history: History | None = None
    notes: tuple[str, ...] = ()

    def ratio(
        self,
        observations: Float[np.ndarray, "row observation"],
        actions: Int[np.ndarray, " row"] | Float[np.ndarray, "row action"] | None = None,
    ) -> Float[np.ndarray, " row"]:
        """d_π / d_μ at the observations; at (observation, action) for methods that learn the ratio of pairs.

        Methods that regress on state and step average over the steps by one more regression when this is first called:
        a second training, for a network.
        """
        if self.ratio_function is None:
            raise NotApplicable("this method learns no ratio")
        return self.ratio_function(observations) if actions is None else self.ratio_function(observations, actions)


Refit = Callable[[Draw], Fit]


class Estimator(ABC):
    """A method with its settings: a frozen dataclass that implements `fit`.

    `revision` goes up when the same settings give other numbers than before: stored results are then run again.
    """

    revision: ClassVar[int] = 1

    @property
    def trains(self) -> bool:
        """Whether it has a training length, and takes its time."""
        return hasattr(self, "num_steps")

    @abstractmethod
    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        """Estimates; the same key gives the same answer to the last digit.

        Raises `NotApplicable` where the problem lacks what the method needs.
        """

    def fit_many(
        self, problem: Problem, *, keys: Sequence[jax.Array], draws: Sequence[Draw] | None = None
    ) -> list[Fit]:
        """One fit for each key, to the whole log or each to a draw of its episodes, as `prepare` would.

        Methods that train override this and train them all at once.
        """
        if draws is None:
            return [self.fit(problem, key=key) for key in keys]
        return [self.prepare(problem, key=key)(draw) for key, draw in zip(keys, draws, strict=True)]

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        """A fit for any draw of the log's episodes. Closed forms do once what all draws share; others start anew."""
        return lambda draw: self.fit(draw.problem, key=key)


class ClosedForm(Estimator):
    """A method that implements `prepare`: what does not depend on the draw first, then a function of the draw."""

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        return self.prepare(problem, key=key)(Draw.everything(problem))

    @abstractmethod
    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit: ...


class TrainedEstimator(Estimator):
    """A method that trains by gradient descent, for many keys or draws at once: it implements `fit_many`."""

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        return self.fit_many(problem, keys=[key])[0]

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        return lambda draw: self.fit_many(problem, keys=[key], draws=[draw])[0]

    @abstractmethod
    def fit_many(
        self, problem: Problem, *, keys: Sequence[jax.Array], draws: Sequence[Draw] | None = None
    ) -> list[Fit]: ...


@dataclass(frozen=True)
class Estimate:
    """A value with its uncertainty; None where there is none, and the notes say why."""

    value: float | None
    lower: float | None = None
    upper: float | None = None
    level: float | None = None
    seconds: float = 0.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
