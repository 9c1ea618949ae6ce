"""Draw: episodes of a log, some of them several times and some not at all, as a bootstrap draws them.

A refit on a draw needs what a fit needs, and most of it is known from the log as it was: features of rows, ratios, and
sums over the rows of an episode, Σ_rows left rightᵀ, of which a draw takes each as often as it takes the episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

import numpy as np
from jaxtyping import Float, Int

from average_dice.problem import Problem

# Sums by episode are kept if they take no more bytes than this; else each draw forms its own.
MOST_BYTES = 2**28

# What is known of each row or episode, whoever is drawn with it.
OF_ROWS = ("target_log_prob", "log_ratio", "ratio", "log_product")
OF_EPISODES = ("final_log_product",)


@dataclass(frozen=True, eq=False)
class Draw:
    """`problem` is that of the episodes drawn, which are the `chosen` ones of the log; None: the log as it is."""

    problem: Problem
    chosen: Int[np.ndarray, " drawn"] | None
    rows: Int[np.ndarray, " transition"] | None  # of the log, in the order of the draw
    counts: Float[np.ndarray, " episode"]  # how often each episode of the log was drawn
    block: "tuple[Block, int] | None" = None  # the draws it was made with, and its place among them

    @staticmethod
    def everything(problem: Problem) -> "Draw":
        return Draw(problem, None, None, np.ones(problem.dataset.num_episodes))

    @staticmethod
    def of(whole: Problem, chosen: Int[np.ndarray, " drawn"]) -> "Draw":
        data = whole.dataset
        rows = data.rows_of(chosen)
        drawn = Problem(data.select_episodes(chosen), whole.policy, whole.discount)
        for names, which in ((OF_ROWS, rows), (OF_EPISODES, chosen)):
            drawn.__dict__.update({name: whole.__dict__[name][which] for name in names if name in whole.__dict__})
        return Draw(drawn, chosen, rows, np.bincount(chosen, minlength=data.num_episodes).astype(np.float64))

    @property
    def num_rows(self) -> int:
        return self.problem.dataset.num_transitions

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """Values of the log's rows, as the draw has them."""
        return values if self.rows is None else values[self.rows]

    def of_episodes(self, values: np.ndarray) -> np.ndarray:
        """Values of the log's episodes, as the draw has them."""
        return values if self.chosen is None else values[self.chosen]

    def onto_rows(self, values: Float[np.ndarray, " transition"], num_rows: int) -> Float[np.ndarray, " row"]:
        """Values of the draw's rows, summed where they are the same row of the log."""
        return values if self.rows is None else np.bincount(self.rows, values, num_rows)

    def mean_over_episodes(self, values: np.ndarray) -> np.ndarray:
        """Of values of the log's episodes."""
        return np.asarray(self.counts @ values / self.counts.sum())


@dataclass(frozen=True, eq=False)
class Block:
    """Draws made together: sums over episodes are formed for all of them in one matrix product."""

    problem: Problem
    chosen: Sequence[Int[np.ndarray, " drawn"]]

    @cached_property
    def counts(self) -> Float[np.ndarray, "draw episode"]:
        number = self.problem.dataset.num_episodes
        return np.stack([np.bincount(one, minlength=number) for one in self.chosen]).astype(np.float64)

    def draw(self, place: int) -> Draw:
        return replace(Draw.of(self.problem, self.chosen[place]), block=(self, place))


@dataclass(frozen=True, eq=False)
class RowSums:
    """Σ left rightᵀ over the rows of a draw, from the log's `left` and `right`."""

    problem: Problem
    left: Float[np.ndarray, "transition left"]
    right: Float[np.ndarray, "transition right"]
    _of_blocks: "dict[Block, Float[np.ndarray, 'draw product']]" = field(default_factory=dict)  # of the last one only
    _lock: Lock = field(default_factory=Lock)

    def mean(self, draw: Draw) -> Float[np.ndarray, "left right"]:
        """E[left rightᵀ]."""
        if draw.chosen is None:
            return self.left.T @ self.right / draw.num_rows
        num_left, num_right = self.left.shape[1], self.right.shape[1]
        num_sums = len(draw.counts) + (0 if draw.block is None else len(draw.block[0].chosen))
        if 8 * num_left * num_right * num_sums <= MOST_BYTES:
            return self._sums(draw).reshape(num_left, num_right) / draw.num_rows
        times = draw.counts[self.problem.episode_index]
        return (self.left * (times / draw.num_rows)[:, None]).T @ self.right

    def _sums(self, draw: Draw) -> Float[np.ndarray, " product"]:
        if draw.block is None:
            return np.asarray(draw.counts @ self._by_episode)
        block, place = draw.block
        with self._lock:
            if block not in self._of_blocks:
                self._of_blocks.clear()
                self._of_blocks[block] = block.counts @ self._by_episode
            return self._of_blocks[block][place]

    @cached_property
    def _by_episode(self) -> Float[np.ndarray, "episode product"]:
        data = self.problem.dataset
        sums = np.empty((data.num_episodes, self.left.shape[1] * self.right.shape[1]))
        for episode, (start, length) in enumerate(zip(data.starts, data.lengths, strict=True)):
            rows = slice(start, start + length)
            sums[episode] = (self.left[rows].T @ self.right[rows]).ravel()
        return sums
