"""The bootstrap over whole episodes: the value of a method on resamples of the log.

Rows of an episode depend on each other, so episodes are resampled, with replacement, and the method is refitted to each
resample. Random features are drawn anew for each quarter of the resamples: the estimate depends on them, too. The same
number of resamples and the same seed give the same episodes and features for every method and every policy, so that
the difference between two of them is a difference of pairs.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator, Prepared
from average_dice.problem import Problem
from average_dice.progress import part, report
from average_dice.resampling import Resample, ResampleBlock

BLOCK = 25  # resamples whose sums are formed in one matrix product: more gain little, and take more memory
TOGETHER = 6  # resamples refitted at once in a thread: the features of the log are read once for all of them
NUM_FEATURE_DRAWS = 4  # so often random features are drawn anew, so that the interval counts their randomness, too
AT_ONCE = 10  # resamples that train at once, so that the progress bar moves …
ROWS_AT_ONCE = 200_000  # … and no more than have so many rows together: networks are evaluated on all of them
MOST_GROUPS = 50  # of episodes, one of which at a time is left out: enough for the acceleration of BCa

Episodes = Int[np.ndarray, " resampled"]
Replicates = Float[np.ndarray, " resample"]


def resampled_episodes(num_episodes: int, number: int, seed: int) -> Int[np.ndarray, "resample episode"]:
    """The episodes of each resample."""
    return np.random.default_rng((seed, 7)).integers(0, num_episodes, (number, num_episodes))


def left_out_episodes(num_episodes: int) -> list[Int[np.ndarray, " kept"]]:
    """All episodes but one, for each of them; all but one group, where there are many."""
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
    prepared = prepared or method.prepare(problem, key=key)
    if method.trains:
        return _trained(prepared, problem, chosen)
    values: list[float] = []
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:  # a resample a thread
        for number, some in enumerate(_in_groups(chosen, feature_draws)):
            if number:
                prepared = method.prepare(problem, key=jax.random.fold_in(key, number))
            for value in _closed_form(prepared, problem, some, pool):
                values.append(value)
                report(len(values), len(chosen))
    return np.array(values)


def _in_groups(chosen: Sequence[Episodes], number: int) -> list[Sequence[Episodes]]:
    """Resamples that have their random features in common."""
    size = -(-len(chosen) // number)
    return [chosen[first : first + size] for first in range(0, len(chosen), size)]


def _closed_form(
    prepared: Prepared, problem: Problem, chosen: Sequence[Episodes], pool: ThreadPoolExecutor
) -> Iterator[float]:
    for first in range(0, len(chosen), BLOCK):
        block = ResampleBlock(problem, chosen[first : first + BLOCK])
        yield from _values(prepared, block, range(1))  # alone: it forms the sums that all of them share
        some = [
            range(start, min(start + TOGETHER, len(block.chosen))) for start in range(1, len(block.chosen), TOGETHER)
        ]
        for values in pool.map(lambda places, block=block: _values(prepared, block, places), some):
            yield from values


def _values(prepared: Prepared, block: ResampleBlock, places: Sequence[int]) -> list[float]:
    """Several resamples at once; if one of them fails, one by one, to see which."""
    resamples = [block.resample(place) for place in places]
    try:
        return [float(fit.value) for fit in prepared.refit(resamples)]
    except NotApplicable:
        return [_value(prepared, resample) for resample in resamples]


def _trained(prepared: Prepared, problem: Problem, chosen: Sequence[Episodes]) -> Replicates:
    """A few resamples train at once; if one of them fails, they train again one by one, to see which."""
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
