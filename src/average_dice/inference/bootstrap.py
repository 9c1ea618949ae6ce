"""The bootstrap over whole episodes: what the method would have said had the log been another one like it.

Rows of an episode hang together, so episodes are drawn, with replacement, and the method is refitted to each draw.
Random features are drawn anew for each quarter of the draws: the estimate depends on them, too. The same number of
draws and the same seed give the same episodes and features for every method and every policy: differences between two
of them are then differences between pairs.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator
from average_dice.estimators.base import Refit
from average_dice.problem import Problem
from average_dice.progress import part, report
from average_dice.resampling import Block, Draw

BLOCK = 25  # draws, of closed forms, whose sums are formed at once
NUM_FEATURE_DRAWS = 4  # random features are drawn anew so often, so that the interval counts their chance, too
AT_ONCE = 10  # draws, of methods that train …
ROWS_AT_ONCE = 200_000  # … but no more than have so many rows together: networks are asked about all of them
MOST_GROUPS = 50  # of episodes, one of which at a time is left out


def drawn_episodes(num_episodes: int, num_draws: int, seed: int) -> Int[np.ndarray, "draw episode"]:
    """Which episodes are drawn."""
    return np.random.default_rng((seed, 7)).integers(0, num_episodes, (num_draws, num_episodes))


def left_out_episodes(num_episodes: int) -> list[Int[np.ndarray, " kept"]]:
    """All episodes but one, for each of them; but one group, where there are many."""
    group = np.arange(num_episodes) % min(num_episodes, MOST_GROUPS)
    return [np.flatnonzero(group != one) for one in range(group.max() + 1)] if num_episodes > 1 else []


def replicate(
    method: Estimator,
    problem: Problem,
    draws: Sequence[Int[np.ndarray, " drawn"]],
    *,
    key: jax.Array,
    feature_draws: int = NUM_FEATURE_DRAWS,
) -> Float[np.ndarray, " draw"]:
    """The method's value on each draw of episodes; NaN where it is not applicable."""
    if method.trains:
        return _trained(method, problem, draws, key)
    values: list[float] = []
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:  # a draw a thread, not a row
        for number, some in enumerate(_in_groups(draws, feature_draws)):
            refit = method.prepare(problem, key=key if number == 0 else jax.random.fold_in(key, number))
            blocks = [Block(problem, some[first : first + BLOCK]) for first in range(0, len(some), BLOCK)]
            _value(refit, blocks[0].draw(0))  # alone: it forms what all of them share
            for block in blocks:
                for value in pool.map(partial(_value_of, refit, block), range(len(block.chosen))):
                    values.append(value)
                    report(len(values), len(draws))
    return np.array(values)


def _in_groups(draws: Sequence[np.ndarray], number: int) -> list[Sequence[np.ndarray]]:
    """Draws that have their random features in common."""
    size = -(-len(draws) // number)
    return [draws[first : first + size] for first in range(0, len(draws), size)]


def _trained(
    method: Estimator, problem: Problem, draws: Sequence[np.ndarray], key: jax.Array
) -> Float[np.ndarray, " draw"]:
    """A few draws train at once; if one of them fails, they train again one by one, to see which."""
    values: list[float] = []
    at_once = min(AT_ONCE, max(1, ROWS_AT_ONCE // problem.dataset.num_transitions))
    firsts = range(0, len(draws), at_once)
    for index, first in enumerate(firsts):
        some = [Draw.of(problem, chosen) for chosen in draws[first : first + at_once]]
        with part(index, len(firsts)):
            try:
                values += [float(fit.value) for fit in method.fit_many(problem, keys=[key] * len(some), draws=some)]
            except NotApplicable:
                refit = method.prepare(problem, key=key)
                values += [_value(refit, draw) for draw in some]
    return np.array(values)


def _value_of(refit: Refit, block: Block, place: int) -> float:
    return _value(refit, block.draw(place))


def _value(refit: Refit, draw: Draw) -> float:
    try:
        return float(refit(draw).value)
    except NotApplicable:
        return float("nan")
