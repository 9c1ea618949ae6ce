"""States that repeat: integer codes, categories, binned measurements. Each state of the log gets a number."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from average_dice.problem import Problem

# States repeat if this share of the rows has a state that other episodes have, too. Measurements hardly ever do.
SHARE_REPEATED = 0.5

MOST_STATES = 2_000  # tables solve a linear system of this size for each resample


@dataclass(frozen=True, eq=False)
class RepeatedStates:
    """The numbers of the states of a log. A state that no row starts from has the number `number`: unknown."""

    problem: Problem

    @staticmethod
    def of(problem: Problem) -> "RepeatedStates":
        """Made once for each problem."""
        return problem.once(RepeatedStates, lambda: RepeatedStates(problem))

    @cached_property
    def _sorted(self) -> tuple[Int[np.ndarray, " state"], Float[np.ndarray, " state"]]:
        """The first row of each state, and the states' hashes in order."""
        hashes, first = np.unique(self._hash(self.problem.dataset.observation), return_index=True)
        return first, hashes

    @property
    def number(self) -> int:
        """The number of different states."""
        return len(self._sorted[0])

    @cached_property
    def observations(self) -> Float[np.ndarray, "state observation"]:
        """The observation of each state."""
        return self.problem.dataset.observation[self._sorted[0]]

    @property
    def first_row(self) -> Int[np.ndarray, " state"]:
        """The first row with each state."""
        return self._sorted[0]

    @cached_property
    def logged(self) -> Int[np.ndarray, " transition"]:
        """The state of each row."""
        return self.find(self.problem.dataset.observation)

    @cached_property
    def after(self) -> Int[np.ndarray, " transition"]:
        """The state after each row; unknown after a termination."""
        data = self.problem.dataset
        return np.where(data.terminated, self.number, self.find(data.next_observation))

    @property
    def start(self) -> Int[np.ndarray, " episode"]:
        """The first state of each episode."""
        return self.logged[self.problem.dataset.starts]

    def find(self, observations: Float[np.ndarray, "row observation"]) -> Int[np.ndarray, " row"]:
        """The states with exactly these observations."""
        _, hashes = self._sorted
        place = np.minimum(np.searchsorted(hashes, self._hash(observations)), len(hashes) - 1)
        known = (self.observations[place] == observations).all(axis=1)
        return np.where(known, place, self.number)

    @cached_property
    def repeat(self) -> bool:
        """Whether states recur in other episodes often enough for tables, and are few enough."""
        if self.number > MOST_STATES:
            return False
        visits = np.unique(np.column_stack([self.logged, self.problem.episode_index]), axis=0)
        return float(np.mean(np.bincount(visits[:, 0])[self.logged] > 1)) >= SHARE_REPEATED

    @staticmethod
    def _hash(observations: Float[np.ndarray, "row observation"]) -> Float[np.ndarray, " row"]:
        """A number for each row: equal rows have equal ones, and different rows almost surely different ones."""
        directions = np.random.default_rng(0).standard_normal(observations.shape[1])
        return (observations * directions).sum(axis=1)
