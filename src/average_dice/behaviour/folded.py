"""FoldedLog: a log whose episodes are divided into folds. The model of a fold is fitted to all other folds.

A bootstrap resample keeps the folds of the log, so that all copies of an episode lie in one fold.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.data import LoggedDataset
from average_dice.features.fourier import FourierMap
from average_dice.features.repeated_states import RepeatedStates
from average_dice.problem import Problem

NUM_COSINES = 300  # random Fourier features

Rows = Float[np.ndarray, " transition"]


@dataclass(frozen=True, eq=False)
class FoldedLog:
    """`fold` holds the fold of each row; `num_folds` is at least 2."""

    data: LoggedDataset
    fold: Int[np.ndarray, " transition"]
    num_folds: int
    seed: int

    @staticmethod
    def of(data: LoggedDataset, folds: int, seed: int) -> "FoldedLog":
        """Whole episodes, at random."""
        number = min(folds, data.num_episodes)
        by_episode = np.random.default_rng((seed, 11)).permutation(data.num_episodes) % number
        return FoldedLog(data, np.repeat(by_episode, data.lengths), number, seed)

    @property
    def every(self) -> Rows:
        """The weights of rows in the whole log: 1."""
        return np.ones(self.data.num_transitions)

    def weights_of(self, chosen: Int[np.ndarray, " chosen"]) -> Rows:
        """How often these episodes, which may repeat, contain each row."""
        counts = np.bincount(chosen, minlength=self.data.num_episodes)
        return np.repeat(counts, self.data.lengths).astype(np.float64)

    def splits(self, weights: Rows) -> Iterator[tuple[int, Int[np.ndarray, " train"], Int[np.ndarray, " rest"]]]:
        """For each fold: its number, the rows to learn from, and the rows to predict."""
        for one in range(self.num_folds):
            yield one, np.flatnonzero((self.fold != one) & (weights > 0)), np.flatnonzero(self.fold == one)

    @cached_property
    def num_actions(self) -> int:
        """Of discrete actions: those of the mask or of the features, or up to the largest in the log."""
        data = self.data
        seen = int(data.action.max()) + 1
        known = [len(one[0]) for one in (data.action_mask,) if one is not None]
        known += [len(one) for one in (data.action_features,) if one is not None]
        return max([seen, *known])

    @cached_property
    def mask(self) -> Bool[np.ndarray, "transition choice"] | None:
        """The actions that are allowed in each row; None if all are."""
        given = self.data.action_mask
        return None if given is None or given.all() else given

    @cached_property
    def linear(self) -> Float[np.ndarray, "transition feature"]:
        """1 and the standardised inputs."""
        return self.fourier[:, : self._map.waves.shape[0]]

    @cached_property
    def fourier(self) -> Float[np.ndarray, "transition feature"]:
        """1, the standardised inputs, and random cosines of them."""
        return self._map(self._inputs).astype(np.float64)

    @cached_property
    def _inputs(self) -> Float[np.ndarray, "transition input"]:
        return self.data.encoding.encode(self.data.observation)

    @cached_property
    def _map(self) -> FourierMap:
        return FourierMap.draw(self._inputs, NUM_COSINES, np.random.default_rng((self.seed, 12)))

    @cached_property
    def states(self) -> RepeatedStates:
        """The states of the log, by number."""
        return RepeatedStates.of(Problem(self.data, None, 0.0))
