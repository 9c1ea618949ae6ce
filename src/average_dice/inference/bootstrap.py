"""The bootstrap over whole episodes: the value of a method on resamples of the log.

Rows of an episode depend on each other, so whole episodes are resampled, with replacement, and the method is refitted
to each resample. Each quarter of the resamples has its own random features, because the estimate depends on them, too.
The same number of resamples and the same seed give the same episodes and features for every method and every policy,
so that the differences between two of them are paired.

Where the behaviour policy was estimated, it is estimated again from every resample, and a method that uses it is
prepared anew: the interval includes the error of these estimates. The chosen kind of model stays.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from average_dice import memory
from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator, Prepared, uses_behaviour
from average_dice.features.logged_state_actions import is_tight
from average_dice.problem import Problem
from average_dice.progress import part, report
from average_dice.resampling import Resample, ResampleBlock, RowSums
from average_dice.threads import carried

BLOCK = 25  # resamples with sums from one matrix product: more gain little, and take more memory
TOGETHER = 6  # resamples refitted together in a thread, which reads the features of the log once for all of them,
ROWS_TOGETHER = 100_000  # but with at most this many rows in all: more would take too much memory
ROWS_AHEAD = 10_000  # up to this many rows the next group is prepared ahead; two larger ones would take too much memory
NUM_FEATURE_DRAWS = 4  # sets of random features, whose randomness the interval includes; each costs a preparation
FEATURE_DRAWS_OF_FIRST_ORDER = 2  # each costs a fit, and large logs have little randomness of features
AT_ONCE = 10  # resamples that train together: few enough for the progress bar to move,
ROWS_AT_ONCE = 200_000  # and with at most this many rows in all, because networks are evaluated on all of them at once
MOST_GROUPS = 50  # groups of episodes, left out one at a time: enough for the acceleration of BCa

Episodes = Int[np.ndarray, " _"]  # of any number: the choices of one call may differ in size
Replicates = Float[np.ndarray, " resample"]


def resampled_episodes(num_episodes: int, number: int, seed: int) -> Int[np.ndarray, "resample episode"]:
    """The episodes of each resample."""
    return np.random.default_rng((seed, 7)).integers(0, num_episodes, (number, num_episodes))


def left_out_episodes(num_episodes: int) -> list[Int[np.ndarray, " kept"]]:
    """All episodes but one, for each of them; all but one group, if there are many."""
    group = np.arange(num_episodes) % min(num_episodes, MOST_GROUPS)
    return [np.flatnonzero(group != one) for one in range(group.max() + 1)] if num_episodes > 1 else []


def replicate(
    method: Estimator,
    problem: Problem,
    chosen: Sequence[Episodes],
    *,
    key: jax.Array,
    prepared: Prepared | None = None,
    feature_draws: int = NUM_FEATURE_DRAWS,
) -> Replicates:
    """The method's value on each of these choices of episodes; NaN where it is not applicable.

    `prepared`: the method on this problem with this key, if it has been prepared already.
    """
    if refits_behaviour(method, problem):
        return _with_behaviour_again(method, problem, chosen, key, feature_draws)
    prepared = prepared or method.prepare(problem, key=key)
    if method.trains:
        return _trained(prepared, problem, chosen)
    if (found := _first_order(method, problem, chosen, key, prepared, feature_draws)) is not None:
        return found
    values: list[float] = []
    groups = _in_groups(chosen, feature_draws)
    tight = is_tight(problem)
    large = tight or problem.dataset.num_transitions > ROWS_AHEAD
    together = min(TOGETHER, max(1, ROWS_TOGETHER // problem.dataset.num_transitions))
    memory.record(memory.Reduction("bootstrap resamples refitted at once", together, 1 if tight else together))
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool, ThreadPoolExecutor(1) as ahead:

        def begin(number: int) -> "Future[_Group] | None":
            """The group of this number, while others are refitted; the first is prepared already."""
            if number == len(groups):
                return None
            again = partial(method.prepare, problem, key=jax.random.fold_in(key, number))
            return ahead.submit(carried(_Group.begin), problem, groups[number], again if number else lambda: prepared)

        number, coming = 0, begin(0)
        while coming is not None:
            group, number = coming.result(), number + 1
            coming = None if large else begin(number)
            for value in group.values(pool, 1 if tight else together):
                values.append(value)
                report(len(values), len(chosen))
            del group
            coming = begin(number) if large else coming
    return np.array(values)


def _first_order(
    method: Estimator,
    problem: Problem,
    chosen: Sequence[Episodes],
    key: jax.Array,
    prepared: Prepared,
    feature_draws: int,
) -> Replicates | None:
    """Values to first order, with two sets of random features; None if the method refits."""
    groups = _in_groups(chosen, min(feature_draws, FEATURE_DRAWS_OF_FIRST_ORDER))
    values = []
    for number, group in enumerate(groups):
        again = method.prepare(problem, key=jax.random.fold_in(key, number)) if number else prepared
        found = again.first_order(group)
        if found is None:
            return None
        values.append(found)
        report(sum(map(len, values)), len(chosen))
    return np.concatenate(values)


def refits_behaviour(method: Estimator, problem: Problem) -> bool:
    """Whether resamples estimate the behaviour policy again: it was estimated, and the method uses it."""
    record = problem.dataset.estimated_behaviour
    return record is not None and record.again is not None and uses_behaviour(method)


def _with_behaviour_again(
    method: Estimator, problem: Problem, chosen: Sequence[Episodes], key: jax.Array, feature_draws: int
) -> Replicates:
    """Estimates the behaviour policy from each resample, and prepares and fits the method with these estimates."""
    record = problem.dataset.estimated_behaviour
    assert record is not None
    assert record.again is not None
    again = record.again
    keys = [
        jax.random.fold_in(key, number) if number else key
        for number, group in enumerate(_in_groups(chosen, feature_draws))
        for _ in group
    ]

    def value(place: int) -> float:
        other = problem.with_behaviour(again(chosen[place]))
        try:
            return _value(method.prepare(other, key=keys[place]), Resample.of(other, chosen[place]))
        except NotApplicable:
            return float("nan")

    values: list[float] = []
    workers = 1 if method.trains or is_tight(problem) else os.cpu_count()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers) as pool:
        for one in pool.map(carried(value), range(len(chosen))):
            values.append(one)
            report(len(values), len(chosen))
    return np.array(values)


def _in_groups(chosen: Sequence[Episodes], number: int) -> list[Sequence[Episodes]]:
    """Groups of resamples with common random features."""
    size = -(-len(chosen) // number)
    return [chosen[first : first + size] for first in range(0, len(chosen), size)]


@dataclass(frozen=True, eq=False)
class _Group:
    """Resamples that share a prepared method. The first is refitted already, which computed what all share."""

    prepared: Prepared
    blocks: list[ResampleBlock]
    first: float

    @staticmethod
    def begin(problem: Problem, chosen: Sequence[Episodes], prepare: Callable[[], Prepared]) -> "_Group":
        prepared = prepare()
        sums: dict[RowSums, np.ndarray] = {}  # by episode, for all blocks
        blocks = [ResampleBlock(problem, chosen[start : start + BLOCK], sums) for start in range(0, len(chosen), BLOCK)]
        return _Group(prepared, blocks, _value(prepared, blocks[0].resample(0)))

    def values(self, pool: ThreadPoolExecutor, together: int) -> Iterator[float]:
        """The value on each resample, with this many refitted together in a thread."""
        yield self.first
        for block in self.blocks:
            places = list(range(1 if block is self.blocks[0] else 0, len(block.chosen)))
            some = [places[start : start + together] for start in range(0, len(places), together)]
            for values in pool.map(carried(partial(self._of_some, block)), some):
                yield from values

    def _of_some(self, block: ResampleBlock, places: Sequence[int]) -> list[float]:
        """Refits several resamples together; if one of them fails, one by one, to find which."""
        resamples = [block.resample(place) for place in places]
        try:
            return [float(fit.value) for fit in self.prepared.refit(resamples)]
        except NotApplicable:
            return [_value(self.prepared, resample) for resample in resamples]


def _trained(prepared: Prepared, problem: Problem, chosen: Sequence[Episodes]) -> Replicates:
    """Trains a few resamples together; if one of them fails, one by one, to find which."""
    values: list[float] = []
    at_once = min(AT_ONCE, max(1, ROWS_AT_ONCE // problem.dataset.num_transitions))
    firsts = range(0, len(chosen), at_once)
    for index, first in enumerate(firsts):
        some = [Resample.of(problem, one) for one in chosen[first : first + at_once]]
        with part(index, len(firsts)):
            try:
                values += [float(fit.value) for fit in prepared.refit(some)]
            except NotApplicable:
                values += [_value(prepared, resample) for resample in some]
    return np.array(values)


def _value(prepared: Prepared, resample: Resample) -> float:
    try:
        return float(prepared.refit([resample])[0].value)
    except NotApplicable:
        return float("nan")
