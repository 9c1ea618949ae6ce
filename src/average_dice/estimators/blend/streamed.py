"""The recommended estimator on a log in blocks: the same estimate as `Blend`, without tables, from passes over the log.

    1. sums by step, and a sample of episodes from which the features are designed
    2. the sums of the critics                      3. the sums of the ratio
    4. rows at the bounds of the rewards, a few times if there are any
    5. values of the candidates                     6. their errors, and their values on bootstrap resamples

Memory does not grow with the log but for its number of episodes in the folds of the ratio.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from average_dice.blocked_problem import BlockedProblem
from average_dice.data.blocks import LogBlocks
from average_dice.estimators._shared.linear_critic import linear_critic
from average_dice.estimators.base import Prepared
from average_dice.estimators.blend._candidates import BY_CRITIC, shares_by_kind
from average_dice.estimators.blend._counts import NO_RESAMPLES, Counts, GivenCounts
from average_dice.estimators.blend._critics import PARTS
from average_dice.estimators.blend._mixing_weights import Reference, mix, reference_of
from average_dice.estimators.blend._on_blocks import ProductsByStep
from average_dice.estimators.blend._streamed_candidates import CandidatePasses, ValueSums
from average_dice.estimators.blend._streamed_critics import CriticSet, solve_critics
from average_dice.estimators.blend._streamed_ratio import fit_ratio
from average_dice.estimators.blend.row_weights import RowWeights, evenly
from average_dice.estimators.results import Critic, Fit
from average_dice.features.likeness import Likeness
from average_dice.features.logged_state_actions import LoggedStateActions, designed, likeness_of
from average_dice.labels import HeldAtTruncation
from average_dice.models import FourierFeatures
from average_dice.notes import Note, NoteCode
from average_dice.passes import ROWS
from average_dice.problem import Problem
from average_dice.resampling import Resample
from average_dice.step_sums import StepSums

UNSETTLED = Note(
    NoteCode.UNSETTLED,
    "learnt values at the bounds of the rewards did not converge, so the interval, to first order, may be wrong: "
    "evaluate a part of the episodes, with fewer than 30,000 rows, for one from refits",
)


@dataclass(frozen=True)
class StreamedSettings:
    """See `Blend`."""

    num_features: int
    weights: tuple[RowWeights, ...]
    ridges: tuple[float, ...]
    overlap: float
    clock: float
    ratio_features: FourierFeatures = FourierFeatures()
    completion: HeldAtTruncation = HeldAtTruncation()


@dataclass(frozen=True, eq=False)
class StreamedBlend:
    """The blend of a log in blocks: `value`, and its values on bootstrap resamples.

    The last pass includes the resamples of `counts`; others take one more pass.
    """

    settings: StreamedSettings
    problem: BlockedProblem
    passes: CandidatePasses
    sums: ValueSums
    reference: Reference
    errors: Float[np.ndarray, "candidate source"]
    value: float
    diagnostics: dict[str, float]
    counts: Counts
    resampled: Float[np.ndarray, "candidate resample"]  # values of the candidates on the resamples of `counts`
    likeness: Likeness | None  # kept here, so that the next random features of the same log find it

    @staticmethod
    def fit(
        settings: StreamedSettings, problem: BlockedProblem, *, key: jax.Array, counts: Counts = NO_RESAMPLES
    ) -> "StreamedBlend":
        """All passes."""
        with threadpool_limits(1, "blas"):  # more BLAS threads would wait for each other
            return StreamedBlend._fit(settings, problem, key, counts)

    @staticmethod
    def _fit(settings: StreamedSettings, problem: BlockedProblem, key: jax.Array, counts: Counts) -> "StreamedBlend":
        likeness = likeness_of(problem.sample)

        def critic_set(number: int, weight: RowWeights, *, with_step: bool = False) -> CriticSet:
            key_of = jax.random.fold_in(key, number)
            same, features = designed(problem.sample, settings.num_features, key_of, with_step=with_step)
            assert same is likeness
            return CriticSet(features, with_step, weight)

        sets = [critic_set(number, weight) for number, weight in enumerate(settings.weights)]
        solved = solve_critics(problem, sets, settings.ridges)
        ratio = products = None
        if problem.no_ratio is None:
            ratio = fit_ratio(problem, settings.ratio_features, settings.completion, key)
            products = ProductsByStep.of(problem)
        passes, parts = CandidatePasses(problem, solved, ratio, products), quantiles(problem.sums, PARTS)
        sums = passes.value_sums(parts)
        dependence = step_dependence(sums.parts[: len(settings.ridges)], problem.sums.num_episodes)
        if dependence.min() > settings.clock:
            with_step = critic_set(len(sets), evenly, with_step=True)
            passes = replace(passes, solved=[*solved, *solve_critics(problem, [with_step], settings.ridges)])
            sums = passes.value_sums(parts)
        found = passes.candidates(sums, counts)
        errors = found.errors
        reference = Reference(reference_of(errors, found.full), settings.overlap)
        best = mix(found.values, errors, [reference])
        return StreamedBlend(
            settings,
            problem,
            passes,
            sums,
            reference,
            errors,
            float(np.clip(best.value, *problem.value_bounds)),
            {
                "in_sample_error": best.standard_error,
                "reference": float(reference.weights @ found.values),
                "reference_error": float(np.linalg.norm(reference.weights @ errors)),
                **shares_by_kind(found.kinds, found.full, found.values, best.weights),
            },
            counts,
            found.resampled,
            likeness,
        )

    def replicates(self, counts: Counts) -> Float[np.ndarray, " resample"]:
        """The values on bootstrap resamples, to first order: candidates change, and the blend weights them anew."""
        known = counts == self.counts
        resampled = self.resampled if known else self.passes.candidates(self.sums, counts).resampled
        blended = [mix(values, self.errors, [self.reference]).value for values in resampled.T]
        return np.clip(blended, *self.problem.value_bounds)

    @property
    def critic(self) -> Critic:
        """The mean over ridges on the first features, for any state."""
        first = self.passes.solved[0]
        features = LoggedStateActions.without_rows(self.problem.sample, first.critics.features)
        return linear_critic(features, first.thetas.mean(axis=1), self.problem.value_bounds)


@dataclass(frozen=True, eq=False)
class PreparedStreamed(Prepared):
    """The blend of a large log in memory, which is read in blocks."""

    settings: StreamedSettings
    problem: Problem
    key: jax.Array

    @cached_property
    def blend(self) -> StreamedBlend:
        """Fitted once."""
        blocks = LogBlocks.of_dataset(self.problem.dataset, ROWS)
        blocked = BlockedProblem.of(blocks, self.problem.policy, self.problem.discount)
        return StreamedBlend.fit(self.settings, blocked, key=self.key)

    def fit_log(self) -> Fit:
        return fit_of(self.blend)

    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        return [PreparedStreamed(self.settings, one.problem, self.key).fit() for one in resamples]

    @property
    def is_first_order(self) -> bool:
        return True

    def first_order(self, chosen: Sequence[np.ndarray]) -> Float[np.ndarray, " resample"]:
        return self.blend.replicates(GivenCounts.of_resamples(chosen, self.problem.dataset.num_episodes))


def fit_of(found: StreamedBlend) -> Fit:
    """As the blend gives it."""
    notes: list[Note] = []
    if found.problem.no_ratio is not None:
        notes.append(Note(NoteCode.NO_RATIOS, f"by learnt values alone: {found.problem.no_ratio}"))
    elif found.problem.is_truncated and found.problem.discount > 0:
        notes.append(BY_CRITIC)
    if any(critic.unsettled is not None for one in found.passes.solved for critic in one.solved):
        notes.append(UNSETTLED)
    return Fit(found.value, critic=found.critic, diagnostics=found.diagnostics, notes=tuple(notes))


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
