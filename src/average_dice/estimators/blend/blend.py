"""The recommended estimator: many doubly robust estimates, blended by their errors as estimated from the log.

A critic q with TD error δ = (1 − γ) r + γ m v(s′) − q(s, a) gives, for every j, the estimate that uses products of
ratios for j steps and the critic from there on, and one more with the weights of Average-DICE:

    J_j = E[v(s₀)] + (1/K) Σ_{rows, t<j} γᵗ W_t δ_t          W_t = ρ_{0:t} over its mean over episodes
    J_w = E[v(s₀)] + mean of w ρ δ / (1 − γ)

W_t is also divided by the share of episodes not yet truncated at t.
j = 0 is fitted Q evaluation, j = ∞ is weighted DR. There is one critic for each of several ridges and each of several
random sets of features. No single estimate is best on every log: products have too much variance where π and μ differ,
ridges add bias, critics extrapolate. The error of each is estimated from episodes:

- the starts and the critic: v(s₀) + γʲ p_j ζδ, where ζ = φᵀA⁻ᵀE[φ(s₀)] is how the solution θ = A⁻¹b responds to a row.
  The ratios correct the first j steps, and p_j is the share of episodes that go on after them.
- the products: γᵗ δ_t / √ESS_t summed over t < j, where ESS_t is the effective sample size of episodes at step t. The
  size of δ is taken from all episodes: if one episode has all the weight, the weighted ones show no spread.

`mix` computes the weights. Its reference is the precision-weighted mean of the estimates that are corrected to the end
of the log. The error that the blend reports for itself is in-sample, the least among many, and too small: use it for
comparisons, not as an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from average_dice.errors import NotApplicable
from average_dice.estimators.base import ADDED_LATER, Estimator, Prepared, PreparedClosedForm, prepared_once
from average_dice.estimators.blend._candidates import (
    BY_CRITIC,
    VALUES,
    Candidate,
    candidates_of,
    errors_of,
    shares_by_kind,
)
from average_dice.estimators.blend._critics import Critics, ScoredCritic
from average_dice.estimators.blend._mixing_weights import Reference, mix, reference_of
from average_dice.estimators.blend._table_critics import TableCritics
from average_dice.estimators.blend.row_weights import RowWeights, discounted, evenly
from average_dice.estimators.blend.streamed import PreparedStreamed, StreamedSettings
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.ratio.targets import ratio_on_state
from average_dice.estimators.results import Critic, Fit
from average_dice.features.repeated_states import RepeatedStates
from average_dice.models import ShrunkTable
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem
from average_dice.resampling import Resample

# Notes of the ratio that do not hold for the blend.
OF_THE_RATIO = (NoteCode.VALUE_RULE, NoteCode.TRUNCATION_HELD, NoteCode.TRUNCATION_IGNORED)
TABLE_RATIO = AverageDICE(ShrunkTable(), regress=ratio_on_state)
# Standard errors. The bias of shrinkage adds up over steps, and where products of ratios have collapsed, only a table
# with little shrinkage shows it. Chosen among a few on logs of the clinic (docs/clinic.md).
TABLE_OVERLAP = 1.0
# Rows above which the features of the log are formed block by block, and bootstrap resamples are of first order. With
# fewer episodes these would be too narrow (docs/speed.md).
LARGE_WITH_MANY_EPISODES, MANY_EPISODES, LARGE = 30_000, 200, 200_000


@dataclass(frozen=True)
class Blend(Estimator):
    """Fitted Q, weighted DR and Average-DICE, blended by their estimated errors, in closed form.

    Its critics have all `ridges` on random sets of `num_features` Fourier features, a set for each of the `weights` of
    rows.
    If the TD errors of the first set depend on the step by more than `clock` standard errors, something unobserved
    depends on time: one more set of features then includes the step.
    `ratio` gives the weights of rows. `overlap`: by how many standard errors two estimates may differ by chance.
    `tables`: whether tables with shrinkage are further candidates, as critics (of discrete actions) and as a ratio.
    None: where states repeat, and tables as critics where the log has most of π's actions in these states.
    Without a policy object there are no critics, and the value is that of `ratio`. Without μ there are no ratios, and
    the value is that of the critics.
    """

    num_features: int = 200  # the cost of the linear systems grows with its cube
    weights: tuple[RowWeights, ...] = (evenly, discounted)
    ridges: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)  # from little bias to little variance, a decade apart
    ratio: Estimator = AverageDICE()
    overlap: float = 2.0  # as in intervals of 95 %; 1 and 4 give similar errors (docs/recommended.md)
    clock: float = 15.0  # far above chance: without a hidden clock the step would only add noise
    tables: bool | None = field(default=None, metadata={ADDED_LATER: True})

    @property
    def trains(self) -> bool:
        return self.ratio.trains

    def with_training(self, *, num_steps: int, num_checkpoints: int, **options: float) -> "Estimator":
        trained = self.ratio.with_training(num_steps=num_steps, num_checkpoints=num_checkpoints, **options)
        return replace(self, ratio=trained)

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        if self.reads_in_blocks(problem):
            return PreparedStreamed(self.streamed_settings, problem, key)
        try:
            with threadpool_limits(1, "blas"):  # more BLAS threads would wait for each other
                critics = Critics.of(problem, self.num_features, self.weights, self.ridges, self.clock, key)
        except NotApplicable as reason:
            return self._by_ratio_alone(problem, key, str(reason))
        by_table = self._uses_tables(problem)
        tables = TableCritics.of(problem) if by_table and problem.dataset.is_discrete else None
        if tables is not None and self.tables is None and not tables.are_dense:
            tables = None
        try:
            ratios: tuple[Prepared, ...] = (prepared_once(self.ratio, problem, key=key),)
            if by_table:
                ratios += (prepared_once(TABLE_RATIO, problem, key=jax.random.key(0)),)  # it has nothing random
        except NotApplicable as reason:
            return PreparedBlend(self, problem, critics, tables, (), f"by learnt values alone: {reason}")
        return PreparedBlend(self, problem, critics, tables, ratios)

    def reads_in_blocks(self, problem: Problem) -> bool:
        """Whether the log is so large that it is read in blocks. Tables, and other ratios, are not made for blocks."""
        data, ratio = problem.dataset, self.ratio
        large = data.num_transitions > (LARGE if data.num_episodes < MANY_EPISODES else LARGE_WITH_MANY_EPISODES)
        default = isinstance(ratio, AverageDICE) and ratio == AverageDICE()
        return large and default and problem.policy is not None and not self._uses_tables(problem)

    @property
    def streamed_settings(self) -> StreamedSettings:
        """Those of the form that reads a log in blocks."""
        return StreamedSettings(self.num_features, self.weights, self.ridges, self.overlap, self.clock)

    def _uses_tables(self, problem: Problem) -> bool:
        return RepeatedStates.of(problem).repeat if self.tables is None else self.tables

    def _by_ratio_alone(self, problem: Problem, key: jax.Array, reason: str) -> Prepared:
        note = Note(NoteCode.NO_POLICY, f"by importance ratios alone: {reason}")

        def solve_for(resample: Resample, weighting: Fit) -> Fit:
            return replace(weighting, notes=(*weighting.notes, note))

        return PreparedClosedForm(problem, solve_for, (prepared_once(self.ratio, problem, key=key),))

    def blend(
        self,
        problem: Problem,
        critics: list[ScoredCritic],
        mean_critic: Critic,
        weightings: Sequence[Fit],
        notes: tuple[Note, ...],
        with_tables: bool,
    ) -> Fit:
        """The fit to a log, from its critics and its ratios, if there are any.

        `with_tables`: whether the last critics are tables.
        """
        weights = [one.weights for one in weightings if one.weights is not None]
        # With a table as a second reference, a few effective episodes must not overrule it. Without one, the factor of
        # small samples would only leave products out that are the best there is: errors on three tasks were a tenth
        # larger with it.
        candidates = candidates_of(problem, critics, weights, strict=with_tables)
        full = np.array([candidate.full for candidate in candidates])
        values = np.array([candidate.value for candidate in candidates])
        errors = errors_of(candidates, len(critics))
        reference = reference_of(errors, full)
        first = Reference(reference, self.overlap)
        references = [first]
        if with_tables:
            table = _least_shrunk(candidates)
            if first.bias(values, errors) @ table == 0:  # products of ratios do not contradict it
                references.append(Reference(table, TABLE_OVERLAP))
        found = mix(values, errors, references)
        return Fit(
            float(np.clip(found.value, *problem.value_bounds)),
            ratio_function=weightings[0].ratio_function if weightings else None,
            critic=mean_critic,
            diagnostics={
                "in_sample_error": found.standard_error,
                "reference": float(reference @ values),
                "reference_error": float(np.linalg.norm(reference @ errors)),
                **shares_by_kind([one.kind for one in candidates], full, values, found.weights),
                **({"effective_episodes": problem.effective_episodes} if weightings else {}),
            },
            notes=notes,
        )


@dataclass(frozen=True, eq=False)
class PreparedBlend(Prepared):
    """The prepared critics and ratios; `no_ratio` says why there is no ratio."""

    method: Blend
    problem: Problem
    critics: Critics
    tables: TableCritics | None
    ratios: tuple[Prepared, ...]
    no_ratio: str = ""

    def fit_log(self) -> Fit:
        weightings = [ratio.fit() for ratio in self.ratios]
        with threadpool_limits(1, "blas"):
            learnt, mean_critic = self.critics.learn_log()
            (by_table,) = self._by_table([Resample.everything(self.problem)])
            return self.method.blend(
                self.problem,
                [*learnt, *by_table],
                mean_critic,
                weightings,
                self._notes(weightings),
                self.tables is not None,
            )

    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        by_ratio = [ratio.refit(resamples) for ratio in self.ratios]
        learnt, tables = self.critics.learn(resamples), self._by_table(resamples)
        fits = []
        for place, resample in enumerate(resamples):
            critics, mean_critic = learnt[place]
            weightings = [fits_of_one[place] for fits_of_one in by_ratio]
            fits.append(
                self.method.blend(
                    resample.problem,
                    [*critics, *tables[place]],
                    mean_critic,
                    weightings,
                    self._notes(weightings),
                    self.tables is not None,
                )
            )
        return fits

    def _by_table(self, resamples: Sequence[Resample]) -> list[list[ScoredCritic]]:
        return [[] for _ in resamples] if self.tables is None else self.tables.learn(resamples)

    def _notes(self, weightings: Sequence[Fit]) -> tuple[Note, ...]:
        repeats = len(self.ratios) > 1 or self.tables is not None
        tables = (_tables_note(self.problem),) if repeats else ()
        if not weightings:
            return (Note(NoteCode.NO_RATIOS, self.no_ratio), *tables)
        kept = [note for note in weightings[0].notes if note.code not in OF_THE_RATIO]
        return (*kept, *((BY_CRITIC,) if self.problem.misses_rewards else ()), *tables)


def _tables_note(problem: Problem) -> Note:
    number = RepeatedStates.of(problem).number
    return Note(NoteCode.TABLES, f"states repeat ({number:,} different ones): tables are among the candidates")


def _least_shrunk(candidates: list[Candidate]) -> np.ndarray:
    """All weight on the value of the last critic, the table with the least shrinkage."""
    last = max(place for place, candidate in enumerate(candidates) if candidate.kind == VALUES)
    return (np.arange(len(candidates)) == last).astype(np.float64)
