"""The recommended estimator on a log in blocks: the same estimate as `Blend`, without tables, from passes over the log.

    1. sums by step, and a sample of episodes from which the features are designed
    2. the sums of the critics                      3. the sums of the ratio
    4. rows at the bounds of the rewards, a few times if there are any
    5. values of the candidates                     6. their errors, and their values on bootstrap resamples

Memory does not grow with the log but for its number of episodes in the folds of the ratio.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from average_dice.blocked_problem import BlockedProblem
from average_dice.estimators.blend._critics import PARTS
from average_dice.estimators.blend._mixing_weights import Reference, mix
from average_dice.estimators.blend._streamed_candidates import (
    CandidatePasses,
    Counts,
    ProductsByStep,
    StreamedCandidates,
)
from average_dice.estimators.blend._streamed_critics import CriticSet, solve_critics
from average_dice.estimators.blend._streamed_ratio import fit_ratio
from average_dice.estimators.blend.blend import Blend, reference_of, shares_by_kind
from average_dice.estimators.blend.row_weights import RowWeights, evenly
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.features.logged_state_actions import designed
from average_dice.labels import HeldAtTruncation
from average_dice.models import FourierFeatures
from average_dice.step_sums import StepSums


@dataclass(frozen=True, eq=False)
class StreamedBlend:
    """The value, its values on bootstrap resamples, and the value of each candidate."""

    value: float
    replicates: Float[np.ndarray, " resample"]
    candidates: StreamedCandidates
    diagnostics: dict[str, float]
    num_passes: int


def fit_streamed(
    method: Blend, problem: BlockedProblem, *, key: jax.Array, resamples: int = 0, seed: int = 0
) -> StreamedBlend:
    """Fits the blend, with this many bootstrap resamples."""
    before = problem.num_passes[0]

    def critic_set(number: int, weight: RowWeights, *, with_step: bool = False) -> CriticSet:
        key_of = jax.random.fold_in(key, number)
        _, features = designed(problem.sample, method.num_features, key_of, with_step=with_step)
        return CriticSet(features, with_step, weight)

    sets = [critic_set(number, weight) for number, weight in enumerate(method.weights)]
    solved = solve_critics(problem, sets, method.ridges)
    ratio = products = None
    if problem.no_ratio is None:
        default = method.ratio
        assert isinstance(default, AverageDICE)
        assert isinstance(default.model, FourierFeatures)
        assert isinstance(default.completion, HeldAtTruncation)
        ratio = fit_ratio(problem, default.model, default.completion, key)
        products = ProductsByStep.of(problem, method.few)
    passes = CandidatePasses(problem, solved, ratio, products)
    sums = passes.value_sums(quantiles(problem.sums, PARTS))
    dependence = step_dependence(sums.parts[: len(method.ridges)], problem.sums.num_episodes)
    if dependence.min() > method.clock:
        solved = [*solved, *solve_critics(problem, [critic_set(len(sets), evenly, with_step=True)], method.ridges)]
        passes = CandidatePasses(problem, solved, ratio, products)
        sums = passes.value_sums(quantiles(problem.sums, PARTS))
    found = passes.candidates(sums, Counts(resamples, seed))
    errors = found.errors
    reference = Reference(reference_of(errors, found.full), method.overlap)
    bounds = problem.value_bounds

    def blended(values: np.ndarray) -> float:
        return float(np.clip(mix(values, errors, [reference]).value, *bounds))

    best = mix(found.values, errors, [reference])
    return StreamedBlend(
        float(np.clip(best.value, *bounds)),
        np.array([blended(values) for values in found.resampled.T]),
        found,
        {
            "in_sample_error": best.standard_error,
            "reference": float(reference.weights @ found.values),
            "reference_error": float(np.linalg.norm(reference.weights @ errors)),
            **shares_by_kind(found.kinds, found.full, found.values, best.weights),
        },
        problem.num_passes[0] - before,
    )


def quantiles(sums: StepSums, shares: tuple[float, ...]) -> Float[np.ndarray, " quantile"]:
    """Quantiles of the steps of all rows, as `np.quantile` interpolates them."""
    ends = np.cumsum(sums.reached)
    places = np.array(shares) * (sums.num_transitions - 1)
    low, high = (np.searchsorted(ends, found(places), side="right") for found in (np.floor, np.ceil))
    return low + (high - low) * (places - np.floor(places))


def step_dependence(parts: np.ndarray, num_episodes: int) -> Float[np.ndarray, " critic"]:
    """See `_critics.step_dependence`: from Σ and Σ² over episodes, [critic, part, 2]."""
    mean = parts[..., 0] / num_episodes
    variance = (parts[..., 1] - num_episodes * mean**2) / max(num_episodes - 1, 1)
    error = np.sqrt(np.maximum(variance, 0.0) / num_episodes)
    return np.divide(np.abs(mean), error, out=np.zeros_like(mean), where=error > 0).max(axis=1)
