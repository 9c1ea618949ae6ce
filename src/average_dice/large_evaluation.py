"""evaluate on a log in blocks, which may be larger than the memory.

The value, its interval and the difference from the behaviour policy come from passes over the whole log. Diagnostics,
checks and the map of states come from a random sample of its episodes, and a note says so.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy import stats

from average_dice.blocked_problem import BlockedProblem
from average_dice.data import LogBlocks, LoggedDataset
from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED, Blend, Estimate, Interval
from average_dice.estimators.blend._counts import PoissonCounts
from average_dice.estimators.blend.streamed import StreamedBlend, fit_of
from average_dice.evaluation_result import NO_DIFFERENCE, Evaluation
from average_dice.inference.behaviour import LOGGED_RETURNS, MEAN_OF, Behaviour, by_same_method, without_value
from average_dice.inference.bootstrap import FEATURE_DRAWS_OF_FIRST_ORDER, Replicates
from average_dice.inference.difference import difference
from average_dice.inference.rules import NOT_SUPPORTED
from average_dice.inference.uncertainty import IntervalSettings, of_replicates, to_first_order
from average_dice.inference.verdict import judge, run_checks
from average_dice.notes import Note, NoteCode
from average_dice.passes import THREADS, Executor
from average_dice.policies import as_policy
from average_dice.problem import Problem

OfSample = Callable[[LoggedDataset, Any], Evaluation]


def evaluate_blocks(
    blocks: LogBlocks,
    policy: Any,
    discount: float,
    settings: IntervalSettings,
    of_sample: OfSample,
    starting: Callable[[str], None] = lambda name: None,
    executor: Executor = THREADS,
) -> Evaluation:
    """The evaluation by the recommended estimator. `of_sample` evaluates a log in memory, without resamples."""
    if policy is None:
        raise SettingError(
            "give a policy: a log that is read in blocks needs one, and cannot use a target_log_prob column instead."
        )
    if isinstance(policy, str | Path):
        policy = as_policy(policy)  # read here and once: other machines may not see the file
    start, key = time.perf_counter(), jax.random.key(settings.seed)
    starting("reading the log")
    problem = BlockedProblem.of(blocks, policy, discount, executor=executor)
    starting(RECOMMENDED)
    counts = PoissonCounts(settings.bootstrap, settings.seed)
    found = StreamedBlend.fit(Blend().streamed_settings, problem, key=key, counts=counts)
    seconds = time.perf_counter() - start
    fit, episodes = fit_of(found), problem.sums.num_episodes
    replicates = _replicates(found, key)
    interval = None
    if settings.bootstrap > 1:
        interval = of_replicates(fit.value, replicates, settings.level, episodes).interval
        interval = None if interval is None else to_first_order(interval)
    estimate = Estimate(fit.value, interval, seconds, fit.diagnostics, (*fit.notes, _note_of(problem)))
    starting("diagnostics")
    sample = of_sample(problem.sample.dataset, problem.policy)
    assert sample.diagnostics is not None
    verdict = judge(estimate, sample.diagnostics, episodes, problem.sample.estimand)
    starting("behaviour policy")
    gain, no_gain, behaviour = None, "this needs two bootstrap resamples (--bootstrap)", None
    if settings.bootstrap > 1:
        on_policy = StreamedBlend.fit(Blend().streamed_settings, _on_policy(problem), key=key, counts=counts)
        baselines = _replicates(on_policy, key)
        gain = difference(fit.value, on_policy.value, replicates, baselines, settings.level, episodes)
        gain = replace(gain, supported=verdict.level != NOT_SUPPORTED)
        behaviour = by_same_method(RECOMMENDED, on_policy.value, baselines, settings.level, episodes)
        if behaviour.interval is not None:
            behaviour = replace(behaviour, interval=to_first_order(behaviour.interval))
    if not problem.is_truncated or problem.discount == 0:
        behaviour = _logged_returns(problem, settings.level)
    return replace(
        sample,
        estimates={RECOMMENDED: estimate},
        verdict=verdict,
        judged=RECOMMENDED,
        checks=run_checks(estimate, sample.diagnostics, episodes, problem.sample.estimand),
        behaviour=behaviour or without_value(no_gain),
        against_behaviour=gain,
        no_difference=None if gain is not None else f"{NO_DIFFERENCE}{no_gain}",
        dataset={**sample.dataset, **_summary(problem)},
        curves={},
        fits={RECOMMENDED: fit},
        replicates={RECOMMENDED: replicates},
    )


def _replicates(found: StreamedBlend, key: jax.Array) -> Replicates:
    """Values on the resamples that it was fitted with, the second half of them with other random features."""
    number = found.resampled.shape[1]
    if number < 2:
        return np.empty(0)
    half = -(-number // FEATURE_DRAWS_OF_FIRST_ORDER)
    again = StreamedBlend.fit(found.settings, found.problem, key=jax.random.fold_in(key, 1), counts=found.counts)
    return np.concatenate([found.replicates(found.counts)[:half], again.replicates(again.counts)[half:]])


@dataclass(frozen=True, eq=False)
class _SingleAction:
    """Gives the blocks of a log as those of a process without choices."""

    blocks: LogBlocks
    policy: Any
    discount: float

    def __call__(self, first: int, last: int) -> Iterator[LoggedDataset]:
        return (self.of(dataset).dataset for dataset in self.blocks.part(first, last))

    def paths_of(self, first: int, last: int) -> list[Path]:
        return self.blocks.paths_of(first, last)

    def of(self, dataset: LoggedDataset) -> Problem:
        return Problem(dataset, self.policy, self.discount).with_single_action()


def _on_policy(problem: BlockedProblem) -> BlockedProblem:
    """The log as a process without choices: its value is that of the behaviour policy."""
    source = _SingleAction(problem.blocks, problem.policy, problem.discount)
    blocks = replace(problem.blocks, source=source)
    blocks.__dict__["encoding"] = problem.blocks.encoding  # of the same observations: another pass would find it again
    policy = source.of(problem.sample.dataset).policy
    return BlockedProblem.of(blocks, policy, problem.discount, executor=problem.executor)


def _returns_of(first: int, block: Problem) -> tuple[float, float]:
    """Σ and Σ² of the logged returns of a block."""
    returns = block.by_episode(block.normaliser * block.discount**block.dataset.step * block.dataset.reward)
    return float(returns.sum()), float(returns @ returns)


def _logged_returns(problem: BlockedProblem, level: float) -> Behaviour:
    """The mean of the logged returns, with Student's t."""
    total, squares = problem.total(_returns_of, _added)
    number = problem.sums.num_episodes
    mean = total / number
    interval = None
    if number > 1:
        spread = np.sqrt(max(squares / number - mean**2, 0.0) / (number - 1))
        reach = float(stats.t.ppf(0.5 + level / 2, number - 1) * spread)
        interval = Interval(mean - reach, mean + reach, level, f"Student's t over {number} episodes")
    return Behaviour(mean, interval, LOGGED_RETURNS, MEAN_OF[problem.sample.estimand])


def _note_of(problem: BlockedProblem) -> Note:
    sample, number = problem.sample.dataset.num_episodes, problem.sums.num_episodes
    from_sample = (
        ""
        if sample == number
        else (
            f"; diagnostics, checks and the map of states are from {sample:,} of {number:,} episodes, chosen at random"
        )
    )
    return Note(NoteCode.IN_BLOCKS, f"the log was read in blocks; tables are no candidates{from_sample}")


def _hash_and_rewards(first: int, block: Problem) -> tuple[list[str], float]:
    return [block.dataset.sha256], float(block.dataset.reward.sum())


def _added(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one + other for one, other in zip(left, right, strict=True))


def _summary(problem: BlockedProblem) -> dict[str, Any]:
    """What the report says of the whole log instead of the sample."""
    sums = problem.sums
    hashes, rewards = problem.total(_hash_and_rewards, _added)
    return {
        "sha256": hashlib.sha256("".join(hashes).encode()).hexdigest(),
        "transitions": sums.num_transitions,
        "episodes": sums.num_episodes,
        "terminated": int(sums.terminated.sum()),
        "lengths": [problem.blocks.shortest, sums.num_transitions / sums.num_episodes, problem.blocks.longest],
        "rewards": [problem.blocks.reward_min, rewards / sums.num_transitions, problem.blocks.reward_max],
    }
