"""An answer: the value of the policy by one method, with the verdict on it and what the behaviour policy earns.

An evaluation has one answer for its (first) reward, one for each other reward, and one for each group of episodes.
"""

import time
from dataclasses import dataclass, field, replace

import jax

from average_dice import memory as memory_limit
from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable
from average_dice.estimators import Estimate, Estimator, Fit, Interval, Prepared, prepared_once
from average_dice.features.logged_state_actions import is_tight
from average_dice.inference.behaviour import Behaviour, by_same_method, from_logged_returns, without_value
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.diagnostics import Diagnostics
from average_dice.inference.difference import Difference, OnBehaviour, difference
from average_dice.inference.refutation.results import Refutations
from average_dice.inference.rules import NOT_SUPPORTED, Check
from average_dice.inference.uncertainty import IntervalSettings, Uncertainty, bootstrap_values, uncertainty
from average_dice.inference.verdict import SUPPORTED, Verdict, judge, run_checks
from average_dice.listing import as_option
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem

ROWS_KEPT = 50_000  # on larger logs preparations are not kept for other methods: memory counts more than time


@dataclass(frozen=True)
class Answer:
    """The value of one reward or of one group of episodes.

    - `estimator`: the name of the method; None if there are only baselines. `estimate`: by this method.
    - `verdict`: on this estimate, with the `checks` and `diagnostics` behind it.
    - `behaviour`: what the behaviour policy earns; `against_behaviour`: the difference from it, by the same method on
      the same bootstrap resamples. Without a difference, `no_difference` says why.
    - `episodes`: how many the estimate is from. `replicates`: its values on bootstrap resamples.
    """

    estimator: str | None
    estimate: Estimate
    verdict: Verdict
    behaviour: Behaviour
    against_behaviour: Difference | None
    no_difference: str | None
    episodes: int
    diagnostics: Diagnostics = field(repr=False)
    checks: tuple[Check, ...] = field(default=(), repr=False)
    replicates: Replicates | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> float | None:
        """The value of the policy; None if the method gives none."""
        return self.estimate.value

    @property
    def interval(self) -> Interval | None:
        """Its interval; None without one."""
        return self.estimate.interval

    def __repr__(self) -> str:
        return f"Answer({self.estimate.in_short}, {self.verdict.level})"


@dataclass(frozen=True, eq=False)
class Run:
    """One method on the log: prepared once for its value, its interval and the difference from the behaviour policy."""

    method: Estimator
    estimate: Estimate
    fit: Fit | None = None
    prepared: Prepared | None = None
    replicates: Replicates | None = None

    @staticmethod
    def of(method: Estimator, problem: Problem, settings: IntervalSettings, key: jax.Array) -> "Run":
        """Prepares and fits the method, and finds its interval."""
        start = time.perf_counter()
        with memory_limit.recording() as reductions:
            try:
                prepared = prepared_once(method, problem, key=key)
                fit = prepared.fit()
            except NotApplicable as reason:
                note = Note(NoteCode.NOT_APPLICABLE, f"not applicable: {reason}")
                return Run(method, Estimate(None, notes=(note,)))
            seconds = time.perf_counter() - start
            found: Uncertainty = uncertainty(method, problem, prepared, settings, key=key)
        notes = fit.notes if found.note is None else (*fit.notes, found.note)
        notes += memory_limit.note_of(reductions)
        estimate = Estimate(fit.value, found.interval, seconds, fit.diagnostics, notes)
        kept = prepared if problem.dataset.num_transitions <= ROWS_KEPT and not is_tight(problem) else None
        return Run(method, estimate, fit, kept, found.replicates)

    def with_note(self, note: Note) -> "Run":
        """The same run with one more note."""
        return replace(self, estimate=replace(self.estimate, notes=(*self.estimate.notes, note)))


def answer(
    name: str | None,
    run: Run | None,
    problem: Problem,
    diagnostics: Diagnostics,
    settings: IntervalSettings,
    refutations: Refutations | None = None,
    *,
    key: jax.Array,
    on_behaviour: OnBehaviour | None = None,
) -> Answer:
    """The answer by a method that was run on the problem; None if only baselines were."""
    data, estimate = problem.dataset, None if run is None else run.estimate
    verdict = judge(estimate, diagnostics, data.num_episodes, problem.estimand, refutations)
    if estimate is not None and estimate.value is not None:
        verdict = _with_advice(verdict, data)
    gain, no_gain = None, "only baselines were evaluated"
    behaviour = without_value(no_gain)
    if name is not None and run is not None:
        try:
            gain, behaviour = _against_behaviour(name, run, problem, settings, key, on_behaviour or OnBehaviour())
            gain = replace(gain, supported=verdict.level != NOT_SUPPORTED)
        except NotApplicable as reason:
            no_gain = str(reason)
            behaviour = without_value(no_gain)
    if not problem.misses_rewards:
        behaviour = from_logged_returns(problem, settings, key=key)
    return Answer(
        estimator=name,
        estimate=estimate or Estimate(None),
        verdict=verdict,
        behaviour=behaviour,
        against_behaviour=gain,
        no_difference=None if gain is not None else no_gain,
        episodes=data.num_episodes,
        diagnostics=diagnostics,
        checks=run_checks(estimate, diagnostics, data.num_episodes, problem.estimand, refutations),
        replicates=None if run is None else run.replicates,
    )


def _with_advice(verdict: Verdict, data: LoggedDataset) -> Verdict:
    """Codes that are taken for measurements spoil features and regressions, so to declare them is the first remedy."""
    if verdict.level == SUPPORTED or not data.looks_categorical:
        return verdict
    known = data.names.observations
    called = [known[place] if known else str(place) for place in data.looks_categorical]
    columns = ", ".join(called)
    one = len(data.looks_categorical) == 1
    subject, them = (f"column {columns} holds", "it") if one else (f"columns {columns} hold", "them")
    remedy = f"if observation {subject} codes of categories, declare {them}: --categorical {as_option(called)}"
    return replace(verdict, remedies=(remedy, *verdict.remedies))


def _against_behaviour(
    name: str, run: Run, problem: Problem, settings: IntervalSettings, key: jax.Array, on_behaviour: OnBehaviour
) -> tuple[Difference, Behaviour]:
    """The difference from the behaviour policy by the same method on the same resamples, and the latter's value.

    Raises `NotApplicable` with the reason if there is none.
    """
    method, value, replicates = run.method, run.estimate.value, run.replicates
    if value is None:
        raise NotApplicable("the method gives no value")
    number = settings.resamples_of(method)
    if replicates is None and number > 1 and not method.trains and problem.dataset.num_episodes > 1:
        # its interval needed no resamples
        replicates = bootstrap_values(method, problem, number, settings.seed, key=key, prepared=run.prepared)
    if replicates is None:
        raise NotApplicable("this needs two episodes and two bootstrap resamples (--bootstrap, --bootstrap-trained)")
    behaviour, baselines = on_behaviour.value(method, problem, len(replicates), settings.seed, key=key)
    episodes = problem.dataset.num_episodes
    gain = difference(value, behaviour, replicates, baselines, settings.level, episodes)
    return gain, by_same_method(name, behaviour, baselines, settings.level, episodes)
