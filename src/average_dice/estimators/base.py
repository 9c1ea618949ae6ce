"""The one contract.

    method.prepare(problem, key=key)    →  Prepared     what the log and all its resamples share, done once
    prepared.fit()                      →  Fit          of the log
    prepared.refit(resamples)           →  [Fit, …]     of bootstrap resamples of its episodes

`method.fit(problem, key=key)` is short for the first two. Calls go one way only: fit → prepare → refit. A closed form
returns a `PreparedClosedForm`, a method that trains derives from `TrainedEstimator`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, final

import jax
import numpy as np

from average_dice import memory
from average_dice.errors import SettingError, did_you_mean
from average_dice.estimators.results import Fit
from average_dice.problem import Problem
from average_dice.randomness import key_name, key_or_seed_0
from average_dice.resampling import Resample


class Prepared(ABC):
    """A method that has computed, for one log, everything that its resamples share."""

    @final
    def fit(self) -> Fit:
        """The fit to the log; computed once."""
        return self._fit_once

    @cached_property
    def _fit_once(self) -> Fit:
        return self.fit_log()

    @abstractmethod
    def fit_log(self) -> Fit:
        """The fit to the log; use `fit`, which computes it once."""

    @abstractmethod
    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        """The fit to each of these resamples. Raises `NotApplicable` if one of them cannot be fitted."""

    @property
    def is_first_order(self) -> bool:
        """Whether its values on resamples are of first order, without refits."""
        return False

    def first_order(self, chosen: Sequence[np.ndarray]) -> np.ndarray | None:
        """The value on each of these choices of episodes to first order, without a refit; None if it has no such form.

        For logs so large that refits would take too long.
        """
        return None


ADDED_LATER = "added later"


class Estimator(ABC):
    """A method with its settings: a frozen dataclass that implements `prepare`.

    Increase `revision` when the same settings give other numbers than before: stored results are then run again. A new
    setting whose default changes no number has `field(default=…, metadata={ADDED_LATER: True})`: they stay valid.
    """

    revision: ClassVar[int] = 1

    @property
    def trains(self) -> bool:
        """Whether it is trained by gradient steps. A method made of parts trains if one of them does."""
        return False

    @abstractmethod
    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        """Computes what the log and its resamples share. The same key gives the same answers to the last digit.

        Raises `NotApplicable` if the problem lacks something that the method needs.
        """

    @final
    def fit(self, problem: Problem, *, key: jax.Array | None = None) -> Fit:
        """Estimates J(π) from the log. Without a key, that of seed 0."""
        with memory.recording() as reductions:
            found = self.prepare(problem, key=key_or_seed_0(key)).fit()
        return replace(found, notes=(*found.notes, *memory.note_of(reductions)))

    def fit_seeds(self, problem: Problem, *, keys: Sequence[jax.Array]) -> list[Fit]:
        """One fit for each key. Methods that train override this and train them all at once."""
        return [self.fit(problem, key=key) for key in keys]

    def with_training(self, *, num_steps: int, num_checkpoints: int, **options: float) -> "Estimator":
        """The same method with another training length and other options; methods that train override this."""
        raise SettingError(f"{type(self).__name__} does not train: it takes no number of steps.")


def prepared_once(method: Estimator, problem: Problem, *, key: jax.Array) -> Prepared:
    """`method.prepare`, computed once for the same method, problem and key."""
    try:
        hash(method)
    except TypeError:  # a setting cannot be hashed
        return method.prepare(problem, key=key)
    return problem.once((method, key_name(key)), lambda: method.prepare(problem, key=key))


@dataclass(frozen=True, eq=False)
class PreparedClosedForm(Prepared):
    """`solve(resample, *fits of the parts) → Fit`. The parts are the prepared methods that this one is made of."""

    problem: Problem
    solve: Callable[..., Fit]
    parts: tuple[Prepared, ...] = field(default=())

    def fit_log(self) -> Fit:
        return self.solve(Resample.everything(self.problem), *(part.fit() for part in self.parts))

    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        found = [part.refit(resamples) for part in self.parts]
        return [self.solve(resample, *(fits[place] for fits in found)) for place, resample in enumerate(resamples)]


class TrainedEstimator(Estimator):
    """A method that trains by gradient descent, for many keys or resamples at once: it implements `train`.

    Its dataclass has the fields `num_steps` and `num_checkpoints`.
    """

    @property
    def trains(self) -> bool:
        return True

    @abstractmethod
    def train(
        self, problem: Problem, *, keys: Sequence[jax.Array], resamples: Sequence[Resample] | None = None
    ) -> list[Fit]:
        """One fit for each key, to the whole log or each to its own resample."""

    @final
    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        return PreparedTraining(self, problem, key)

    @final
    def fit_seeds(self, problem: Problem, *, keys: Sequence[jax.Array]) -> list[Fit]:
        return self.train(problem, keys=keys)

    def with_training(self, *, num_steps: int, num_checkpoints: int, **options: float) -> "Estimator":
        changes: dict[str, Any] = {"num_steps": num_steps, "num_checkpoints": num_checkpoints, **options}
        return with_options(self, changes)


@dataclass(frozen=True, eq=False)
class PreparedTraining(Prepared):
    """Only the key is shared: every resample trains from the same initial parameters."""

    method: TrainedEstimator
    problem: Problem
    key: jax.Array

    def fit_log(self) -> Fit:
        return self.method.train(self.problem, keys=[self.key])[0]

    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        return self.method.train(self.problem, keys=[self.key] * len(resamples), resamples=resamples)


def with_options(settings: Any, options: dict[str, Any]) -> Any:
    """A dataclass with some of its fields replaced. An unknown field raises an error that names it."""
    if unknown := [name for name in options if name not in settings.__dataclass_fields__]:
        meant = did_you_mean(unknown[0], settings.__dataclass_fields__)
        raise SettingError(f"{type(settings).__name__} has no option {', '.join(unknown)}.{meant}")
    return replace(settings, **options)
