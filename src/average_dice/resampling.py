"""Bootstrap resamples: episodes of a log, sampled with replacement.

A refit to a resample reuses results of the log: features of rows, importance ratios, and sums over the rows of each
episode, Σ_rows left rightᵀ. The sums of an episode count as often as the resample contains the episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

import numpy as np
from jaxtyping import Float, Int

from average_dice import memory
from average_dice.problem import Problem
from average_dice.threads import in_threads

# Sums by episode are kept if they take no more memory than this (256 MiB). Otherwise they are formed in parts for each
# block of resamples, or each resample sums over its rows.
MOST_BYTES = 2**28
SHARE_OF_SUMS = 32  # of the limit of memory: several such sums are kept at once
PART_BYTES = 2**26  # of sums by episode that are formed in parts
LONG_EPISODES = 16  # steps on average: sums of shorter ones take many small matrix products
ROWS_AT_ONCE = 16_384  # in sums over rows: more gain nothing


def most_bytes() -> int:
    """`MOST_BYTES`, or a small part of the limit of memory."""
    return min(MOST_BYTES, memory.limit() // SHARE_OF_SUMS)


# Cached columns of a problem that a resample can take over instead of computing them again.
BY_ROW = ("target_log_prob", "log_ratio", "ratio", "log_product")
BY_EPISODE = ("final_log_product",)
OF_LOG = ("forbidden_actions",)  # of π at the states of the log, which are those of every resample


@dataclass(frozen=True, eq=False)
class Resample:
    """`problem` is that of the resampled log; its episodes are the `chosen` ones of the whole log, which may repeat.

    `chosen` and `rows` are None for the whole log, each episode once.
    """

    problem: Problem
    chosen: Int[np.ndarray, " resampled"] | None
    rows: Int[np.ndarray, " transition"] | None  # rows of the whole log, in the order of the resample
    counts: Float[np.ndarray, " episode"]  # how often each episode of the whole log was chosen
    block: "tuple[ResampleBlock, int] | None" = None  # the resamples it was made with, and its place among them

    @staticmethod
    def everything(problem: Problem) -> "Resample":
        """The whole log, each episode once."""
        return Resample(problem, None, None, np.ones(problem.dataset.num_episodes))

    @staticmethod
    def of(whole: Problem, chosen: Int[np.ndarray, " resampled"]) -> "Resample":
        """The log of the chosen episodes."""
        data = whole.dataset
        rows = data.rows_of(chosen)
        resampled = whole.select_episodes(chosen)
        for names, which in ((BY_ROW, rows), (BY_EPISODE, chosen)):
            resampled.__dict__.update({name: whole.__dict__[name][which] for name in names if name in whole.__dict__})
        resampled.__dict__.update({name: whole.__dict__[name] for name in OF_LOG if name in whole.__dict__})
        return Resample(resampled, chosen, rows, np.bincount(chosen, minlength=data.num_episodes).astype(np.float64))

    def on(self, problem: Problem) -> "Resample":
        """The same episodes of another problem on the same log."""
        if self.chosen is None:
            return Resample.everything(problem)
        return replace(Resample.of(problem, self.chosen), block=self.block)

    @property
    def num_rows(self) -> int:
        """The number of rows, repeated ones included."""
        return self.problem.dataset.num_transitions

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """From values of the whole log's rows to those of the resample's rows."""
        return values if self.rows is None else values[self.rows]

    def of_episodes(self, values: np.ndarray) -> np.ndarray:
        """From values of the whole log's episodes to those of the resample's episodes."""
        return values if self.chosen is None else values[self.chosen]

    def onto_rows(self, values: Float[np.ndarray, " transition"], num_rows: int) -> Float[np.ndarray, " row"]:
        """From values of the resample's rows to sums on the whole log's rows."""
        return values if self.rows is None else np.bincount(self.rows, values, num_rows)

    def mean_over_episodes(self, values: np.ndarray) -> np.ndarray:
        """The resample's mean of values of the whole log's episodes."""
        return np.asarray(self.counts @ values / self.counts.sum())


@dataclass(frozen=True, eq=False)
class ResampleBlock:
    """Resamples made together: one matrix product computes the sums over episodes for all of them.

    `by_episode` holds the sums by episode. Blocks that are refitted one after the other share it, so that the sums are
    formed once, and are gone with the last of these blocks.
    """

    problem: Problem
    chosen: Sequence[Int[np.ndarray, " _"]]  # resamples of one block may differ in size
    by_episode: "dict[RowSums, Float[np.ndarray, 'episode product']]" = field(default_factory=dict)
    _of_block: "dict[RowSums, Float[np.ndarray, 'resample product']]" = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def counts(self) -> Float[np.ndarray, "resample episode"]:
        """How often each resample contains each episode."""
        number = self.problem.dataset.num_episodes
        return np.stack([np.bincount(one, minlength=number) for one in self.chosen]).astype(np.float64)

    def resample(self, place: int) -> Resample:
        """The resample at this place of the block."""
        return replace(Resample.of(self.problem, self.chosen[place]), block=(self, place))

    def sums(self, rows: "RowSums") -> Float[np.ndarray, "resample product"]:
        """The sums of each resample."""
        with self._lock:
            if rows not in self._of_block:
                self._of_block[rows] = self._sums(rows)
            return self._of_block[rows]

    def _sums(self, rows: "RowSums") -> Float[np.ndarray, "resample product"]:
        num_left, num_right = rows.left.shape[1], rows.right.shape[1]
        if 8 * num_left * num_right * (self.problem.dataset.num_episodes + len(self.chosen)) <= most_bytes():
            if rows not in self.by_episode:
                self.by_episode[rows] = rows.by_episode()
            return self.counts @ self.by_episode[rows]
        found = np.empty((len(self.chosen), num_left, num_right))
        some = max(1, min(PART_BYTES, most_bytes()) // (8 * num_right * self.problem.dataset.num_episodes))
        for start in range(0, num_left, some):
            part = RowSums(self.problem, rows.left[:, start : start + some], rows.right)
            found[:, start : start + some] = (self.counts @ part.by_episode()).reshape(len(found), -1, num_right)
        return found.reshape(len(found), -1)


@dataclass(frozen=True, eq=False)
class RowSums:
    """Σ left rightᵀ over the rows of a resample, from `left` and `right` on the whole log's rows."""

    problem: Problem
    left: Float[np.ndarray, "transition left"]
    right: Float[np.ndarray, "transition right"]

    def mean(self, resample: Resample) -> Float[np.ndarray, "left right"]:
        """E[left rightᵀ]."""
        if resample.chosen is None:
            return self.left.T @ self.right / resample.num_rows
        num_left, num_right = self.left.shape[1], self.right.shape[1]
        num_sums = len(resample.counts) + (0 if resample.block is None else len(resample.block[0].chosen))
        if 8 * num_left * num_right * num_sums <= most_bytes():
            return self._sums(resample).reshape(num_left, num_right) / resample.num_rows
        if resample.block is not None and self._in_parts(len(resample.block[0].chosen)):
            return self._sums(resample).reshape(num_left, num_right) / resample.num_rows
        return self._over_rows(resample.counts[self.problem.episode_index] / resample.num_rows)

    def _in_parts(self, num_resamples: int) -> bool:
        """Whether sums by episode, formed in parts, save time: a resample then costs episodes instead of rows."""
        data, num_products = self.problem.dataset, self.left.shape[1] * self.right.shape[1]
        long = data.num_transitions >= LONG_EPISODES * data.num_episodes
        return long and 8 * num_products * num_resamples <= most_bytes()

    def _over_rows(self, weight: Float[np.ndarray, " transition"]) -> Float[np.ndarray, "left right"]:
        """Σ weight left rightᵀ over the rows with a weight, some at a time."""
        total = np.zeros((self.left.shape[1], self.right.shape[1]))
        every = np.flatnonzero(weight)
        some = memory.rows_at_once(ROWS_AT_ONCE)
        for start in range(0, len(every), some):
            rows = every[start : start + some]
            if self.left is self.right:  # a product with its own transpose costs half
                rooted = self.left[rows] * np.sqrt(weight[rows])[:, None]
                total += rooted.T @ rooted
            else:
                total += (self.left[rows] * weight[rows, None]).T @ self.right[rows]
        return total

    def _sums(self, resample: Resample) -> Float[np.ndarray, " product"]:
        if resample.block is None:
            return np.asarray(resample.counts @ self.by_episode())
        block, place = resample.block
        return block.sums(self)[place]

    def by_episode(self) -> Float[np.ndarray, "episode product"]:
        """The sums over the rows of each episode."""
        data = self.problem.dataset
        sums = np.empty((data.num_episodes, self.left.shape[1] * self.right.shape[1]))

        def add(episode: int) -> None:
            rows = slice(data.starts[episode], data.starts[episode] + data.lengths[episode])
            sums[episode] = (self.left[rows].T @ self.right[rows]).ravel()

        in_threads(add, range(data.num_episodes))
        return sums
