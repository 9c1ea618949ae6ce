"""A problem whose log is read block by block: what all blocks share, and the problem of each block."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Int

from average_dice.data import LoggedDataset
from average_dice.data.blocks import LogBlocks
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.errors import NotApplicable
from average_dice.passes import THREADS, Executor, Part, Piece, Work, total
from average_dice.problem import Problem
from average_dice.step_sums import StepSums

SAMPLE_ROWS = 50_000  # in the sample of episodes from which features are designed: more would change nothing


@dataclass(frozen=True)
class RewardSums:
    """The least and the largest reward, and the most losses, gains and rewards other than 0 of an episode."""

    low: float
    high: float
    losses: int
    gains: int
    paid: int

    @staticmethod
    def of(problem: Problem) -> "RewardSums":
        """Of a block."""
        reward = problem.dataset.reward
        most = [
            int(problem.by_episode(found.astype(np.float64)).max()) for found in (reward < 0, reward > 0, reward != 0)
        ]
        return RewardSums(float(reward.min()), float(reward.max()), *most)

    def merge(self, other: "RewardSums") -> "RewardSums":
        """Of both blocks."""
        most = (max(getattr(self, name), getattr(other, name)) for name in ("losses", "gains", "paid"))
        return RewardSums(min(self.low, other.low), max(self.high, other.high), *most)


@dataclass(frozen=True, eq=False)
class _First:
    """What the first pass keeps of a piece. `kept`: its episodes in the sample."""

    sums: StepSums
    rewards: RewardSums
    no_ratio: str | None
    kept: list[LoggedDataset]

    @staticmethod
    def of(wanted: np.ndarray, policy: Any, discount: float, piece: Piece) -> "_First":
        first, dataset = piece
        problem, no_ratio = _of_block(dataset, policy, discount), None
        try:
            sums = StepSums.of(problem)
        except NotApplicable as reason:
            sums, no_ratio = StepSums.of(problem, with_products=False), str(reason)
        inside = wanted[(wanted >= first) & (wanted < first + dataset.num_episodes)] - first
        kept = []
        if len(inside):
            kept.append(dataset if len(inside) == dataset.num_episodes else dataset.select_episodes(inside))
        return _First(sums, RewardSums.of(problem), no_ratio, kept)

    def merge(self, other: "_First") -> "_First":
        sums, rewards = self.sums.merge(other.sums), self.rewards.merge(other.rewards)
        return _First(sums, rewards, self.no_ratio or other.no_ratio, self.kept + other.kept)


@dataclass(frozen=True, eq=False)
class BlockedProblem:
    """What is the value of `policy` at this discount, according to a log in blocks?

    `sums` and `rewards` are those of the whole log. `sample` is the problem of some of its episodes, chosen at random;
    of all of them if the log is small. `executor` computes the passes; what it sends elsewhere has no sample.
    """

    blocks: LogBlocks
    policy: Any
    discount: float
    sums: StepSums
    rewards: RewardSums
    sample: Problem
    no_ratio: str | None  # why there are no ratios
    executor: Executor = THREADS
    num_passes: list[int] = field(default_factory=lambda: [1])

    @staticmethod
    def of(
        blocks: LogBlocks, policy: Any, discount: float, *, seed: int = 0, executor: Executor = THREADS
    ) -> "BlockedProblem":
        """Reads the log once."""
        work = Work(partial(_First.of, _sampled(blocks, seed), policy, discount), _First.merge)
        found = total(work, blocks, executor)
        sample = _of_block(_joined(found.kept), policy, discount if found.sums.horizon > 1 else 0.0)
        return BlockedProblem(
            blocks, sample.policy, sample.discount, found.sums, found.rewards, sample, found.no_ratio, executor
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sample": None, "executor": None, "blocks": None}

    def total(self, of: Callable[[int, Problem], Part], merge: Callable[[Part, Part], Part]) -> Part:
        """One pass: `of` each piece, by the number of its first episode and its problem, and all of them merged."""
        self.num_passes[0] += 1
        return total(Work(partial(_of_piece, of, self), merge), self.blocks, self.executor)

    @property
    def normaliser(self) -> float:
        """See `Problem.normaliser`."""
        return 1.0 - self.discount if self.discount < 1 else 1.0

    @property
    def scale(self) -> float:
        """See `Problem.scale`."""
        return self.sums.num_transitions / self.sums.num_episodes * self.normaliser

    @property
    def is_truncated(self) -> bool:
        """See `Problem.is_truncated`."""
        return bool(self.sums.truncated.any())

    @cached_property
    def value_bounds(self) -> tuple[float, float]:
        """See `Problem.value_bounds`."""
        one = self.rewards
        if not self.sums.terminated.any():
            return one.low, one.high
        low, high = min(one.low, 0.0), max(one.high, 0.0)
        if self.discount == 1:
            return one.losses * low, one.gains * high
        pays_once = not self.is_truncated and one.paid <= 1
        return (self.normaliser * low, self.normaliser * high) if pays_once else (low, high)


def _of_piece(of: Callable[[int, Problem], Part], shared: BlockedProblem, piece: Piece) -> Part:
    problem = _of_block(piece.dataset, shared.policy, shared.discount)
    problem.__dict__["log_uncensored_at_step"] = shared.sums.log_uncensored
    return of(piece.first, problem)


def _of_block(dataset: LoggedDataset, policy: Any, discount: float) -> Problem:
    """The discount stays, even if all episodes of the block have one step."""
    problem = Problem(dataset, policy, discount)
    object.__setattr__(problem, "discount", discount)
    return problem


def _joined(parts: list[LoggedDataset]) -> LoggedDataset:
    """The episodes of all parts, which are sorted and checked already, numbered from 0."""
    if len(parts) == 1:
        return parts[0]
    found, first = copy(parts[0]), parts[0]
    for name in (*REQUIRED, *OPTIONAL):
        if getattr(first, name) is not None:
            object.__setattr__(found, name, np.concatenate([getattr(one, name) for one in parts]))
    lengths = np.concatenate([one.lengths for one in parts])
    object.__setattr__(found, "episode", np.repeat(np.arange(len(lengths)), lengths))
    extra = {name: np.concatenate([one.extra[name] for one in parts]) for name in first.extra}
    object.__setattr__(found, "extra", extra)
    for name in ("is_one_step", "starts", "lengths", "looks_categorical", "sha256"):
        found.__dict__.pop(name, None)
    return found


def _sampled(blocks: LogBlocks, seed: int) -> Int[np.ndarray, " episode"]:
    """The numbers of the episodes of the sample, in order."""
    number = blocks.num_episodes
    if blocks.num_transitions <= SAMPLE_ROWS:
        return np.arange(number)
    some = max(2, round(SAMPLE_ROWS * number / blocks.num_transitions))
    return np.sort(np.random.default_rng((seed, 11)).choice(number, min(some, number), replace=False))
