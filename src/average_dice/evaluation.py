"""evaluate: the one call most users make."""

import json
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa
from rich.console import Group

from average_dice import memory as memory_limit
from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import (
    RECOMMENDED,
    REGISTRY,
    Estimate,
    Estimator,
    Fit,
    Prepared,
    find,
    is_baseline,
    prepared_once,
)
from average_dice.estimators.baseline.average_reward import ALL_STEPS, PER_LOGGED_STEP
from average_dice.estimators.baseline.behaviour_return import TO_TRUNCATION
from average_dice.features.logged_state_actions import is_tight, require_memory
from average_dice.files import write_text_whole
from average_dice.inference.behaviour import Behaviour, by_same_method, from_logged_returns, without_value
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.diagnostics import Diagnostics, diagnose
from average_dice.inference.difference import Difference, behaviour_value, difference
from average_dice.inference.refutation import Case, Refutations, order_in_time, run_refuters
from average_dice.inference.rules import Check
from average_dice.inference.smoothing import smoothing_note
from average_dice.inference.state_map import StateMap, check_features, map_states
from average_dice.inference.uncertainty import IntervalSettings, Uncertainty, bootstrap_values, uncertainty
from average_dice.inference.verdict import Verdict, judge, run_checks
from average_dice.notes import Note, NoteCode
from average_dice.policies import Policy
from average_dice.problem import Estimand, Problem
from average_dice.report import notebook, page, terminal
from average_dice.report.estimands import WORDS, Words
from average_dice.report.formatting import percent, short

NUMBERS = ("value", "lower", "upper", "level", "return", "seconds")
FRAME = pa.schema(
    [
        ("estimator", pa.string()),
        *((name, pa.float64()) for name in NUMBERS),
        ("interval", pa.string()),
        ("notes", pa.string()),
    ]
)  # the columns of `Evaluation.to_frame`
ROWS_KEPT = 50_000  # on larger logs preparations are not kept for other methods: memory counts more than time
LABELS = (PER_LOGGED_STEP, ALL_STEPS, TO_TRUNCATION)  # notes that are shown beside the name of the method, too
OF_BEHAVIOUR = "Behaviour policy: "
AGAINST_BEHAVIOUR = "Against the behaviour policy: "
NO_DIFFERENCE = f"{AGAINST_BEHAVIOUR}not compared: "


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`: an estimate by each requested method, and how far to trust it.

    `print` it, look at `recommended_estimate.value` and `verdict`, write it with `to_json` or `to_html`.

    - `judged`: the estimate that the verdict is about; the recommended one, or the first that was requested.
    - `checks`: every check with its value, the good values, and its status.
    - `behaviour`: the value of the behaviour policy, with its interval, or why there is none.
    - `against_behaviour`: the judged value minus that of the behaviour policy by the same method, with its interval;
      without it, `no_difference` says why.
    - `refutations`: what the refuters found, if they were asked for.
    - `fits` and `replicates`: the fits of the methods and their values on bootstrap resamples; not in the JSON.
    """

    discount: float
    estimand: Estimand
    horizon: int | None
    seed: int
    dataset: Mapping[str, Any]
    estimates: Mapping[str, Estimate]
    recommended: str
    verdict: Verdict
    versions: Mapping[str, str]
    judged: str | None = None
    diagnostics: Diagnostics | None = None
    checks: tuple[Check, ...] = ()
    behaviour: Behaviour = Behaviour(None, None, None, "no value")
    against_behaviour: Difference | None = None
    no_difference: str | None = None
    states: StateMap | None = None
    curves: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    command: str | None = None
    refutations: Refutations | None = None
    fits: Mapping[str, Fit] = field(default_factory=dict, repr=False, compare=False)
    replicates: Mapping[str, Replicates] = field(default_factory=dict, repr=False, compare=False)

    @property
    def recommended_estimate(self) -> Estimate | None:
        """The estimate of the recommended method, if it was requested."""
        return self.estimates.get(self.recommended)

    def with_command(self, command: str) -> "Evaluation":
        """The same evaluation with the command that made it, for the report."""
        return replace(self, command=command)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; numbers that JSON cannot hold become null."""
        gain = self.against_behaviour
        content: dict[str, Any] = _without_nonfinite(
            {
                "discount": self.discount,
                "estimand": self.estimand.value,
                "horizon": self.horizon,
                "definition": self._definition,
                "seed": self.seed,
                "dataset": self.dataset,
                "estimates": [self._content(name, one) for name, one in self.estimates.items()],
                "recommended": self.recommended,
                "judged": self.judged,
                "verdict": asdict(self.verdict),
                "checks": [asdict(check) for check in self.checks],
                "diagnostics": None if self.diagnostics is None else asdict(self.diagnostics),
                "behaviour": self._behaviour_content(),
                "against_behaviour": None if gain is None else self._difference_content(gain),
                "no_difference": self.no_difference,
                "refutations": None if self.refutations is None else self.refutations.to_dict(),
                "states": None if self.states is None else asdict(self.states),
                "curves": self.curves,
                "command": self.command,
                "versions": self.versions,
            }
        )
        return content

    def _content(self, name: str, found: Estimate) -> dict[str, Any]:
        """The JSON form of an estimate, with the return E[Σ γᵗ r] and a label where its number may mislead."""
        off_scale = any(note.code is NoteCode.OTHER_SCALE for note in found.notes)
        whole = None if off_scale else self._return_of(found.value)
        label = next((note.text for note in found.notes if note in LABELS), None)
        return {"estimator": name, **found.to_dict(), "return": whole, "label": label}

    def _return_of(self, value: float | None) -> float | None:
        """E[Σ γᵗ r] = value / (1 − γ); the value itself where γ is 0 or 1."""
        normaliser = 1 - self.discount if self.estimand is Estimand.PER_STEP else 1.0
        return None if value is None else value / normaliser

    def _behaviour_content(self) -> dict[str, Any]:
        """The value of the behaviour policy as in `_content`, and in a sentence."""
        found, interval = self.behaviour, self.behaviour.interval
        whole = self._return_of(found.value)
        sentence = f"{OF_BEHAVIOUR}{found.source}"
        if found.value is not None:
            numbers = f"{self._words.name} {short(found.value)}"
            if interval is not None:
                ends = f"{short(interval.lower)} to {short(interval.upper)}"
                numbers += f" ({percent(interval.level)} interval {ends})"
            numbers += f", return {short(whole)}" if self._words.return_heading else ""
            sentence = f"{OF_BEHAVIOUR}{numbers}, {found.source}"
        return {
            "estimator": found.estimator,
            "value": found.value,
            "return": whole,
            "lower": None if interval is None else interval.lower,
            "upper": None if interval is None else interval.upper,
            "level": None if interval is None else interval.level,
            "interval": None if interval is None else interval.kind,
            "source": found.source,
            "sentence": sentence,
        }

    def _difference_content(self, found: Difference) -> dict[str, Any]:
        words = found.in_words(short, self._words.unit)
        sentence = f"{AGAINST_BEHAVIOUR}{words}, both by {self.judged} on the same bootstrap resamples"
        return {**asdict(found), "judgement": found.judgement, "sentence": sentence}

    @property
    def _definition(self) -> str:
        """What the number is, with the horizon."""
        if self.horizon is None:
            return self._words.definition
        return f"{self._words.definition} Only the rewards of the first {self.horizon} steps count."

    @property
    def _words(self) -> Words:
        return WORDS[self.estimand]

    def to_frame(self) -> Any:
        """The estimates as a table, one row each: a pandas DataFrame if pandas is installed, else an Arrow table."""
        rows = [
            {**content, "notes": "; ".join(content["notes"])}
            for content in (self._content(name, one) for name, one in self.estimates.items())
        ]
        table = pa.Table.from_pylist(rows, schema=FRAME)
        return table.to_pandas() if find_spec("pandas") else table

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        write_text_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def to_html(self, path: str | Path) -> None:
        """Writes the report: one page that needs no network. The file appears whole or not at all."""
        write_text_whole(path, page.render(self.to_dict()))

    def rendered(self, truth: float | None = None) -> Group:
        """For a terminal: the verdict, the estimates (with their errors where the truth is known) and the notes."""
        if truth is None:
            return terminal.draw_evaluation(self.to_dict())
        errors = {name: None if one.value is None else one.value - truth for name, one in self.estimates.items()}
        return terminal.draw_evaluation(self.to_dict(), errors)

    def _repr_html_(self) -> str:
        return notebook.render(self.to_dict())

    def __rich__(self) -> Group:
        return self.rendered()

    def __str__(self) -> str:
        return terminal.as_text(self)


@memory_limit.by_argument
def evaluate(
    dataset: LoggedDataset,
    policy: Policy | None,
    discount: float,
    *,
    estimators: str | Sequence[str] | Mapping[str, Estimator] = "recommended",
    horizon: int | None = None,
    level: float = 0.95,
    bootstrap: int = 100,
    bootstrap_trained: int = 0,
    features: tuple[int, int] | None = None,
    seed: int = 0,
    refute: bool = False,
    memory: int | str | None = None,
    starting: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Estimates what `policy` would earn, from the log alone, with intervals and a verdict.

    - `policy`: None if the log has a `target_log_prob` column.
    - `estimators`: `recommended` (with the baselines), `all`, names (a list, or separated by commas), or methods of
      your own by name: `{"mine": ad.AverageDICE(labels=plain)}`.
    - `discount`: from 0 to 1. With 1, every episode must terminate, or give a `horizon`.
    - `horizon`: the value counts the rewards of this many steps; None for all.
    - `level`: confidence level of the intervals. `bootstrap`: number of resamples, 0 for no intervals.
      `bootstrap_trained`: the same for methods that train; each resample trains the method again.
    - `features`: two dimensions of the observation for the map of states; principal components if None.
    - `refute`: also tries to refute the estimate (see `ad.refute`), with about 100 refits; what fails enters the
      verdict.
    - `memory`: the limit of memory, in bytes or as `"2GiB"`; by default the environment variable AVERAGE_DICE_MEMORY,
      or half of what the machine has. Above it fewer random features are used, and a note says so.
    - `starting` is called with the name of each method before it starts.

    A method that is not applicable to the log or the policy has no value, and its note says why. The verdict is about
    the recommended estimate or, if that was not requested, the first that is not a baseline.

    >>> evaluation = evaluate(data, policy, 0.95)  # doctest: +SKIP
    >>> print(evaluation)                          # doctest: +SKIP
    """
    if not 0 <= seed < 2**32:
        raise SettingError(f"the seed must lie between 0 and {2**32 - 1}, not {seed}.")
    settings = IntervalSettings(level, bootstrap, bootstrap_trained, seed)
    methods = (
        estimators if isinstance(estimators, Mapping) else {name: REGISTRY[name].make() for name in find(estimators)}
    )
    if not methods:
        raise SettingError("give at least one estimator.")
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    problem = question(dataset, policy, discount)
    require_memory(problem)
    check_features(problem, features)
    key = jax.random.key(seed)
    runs: dict[str, Run] = {}
    for name, method in methods.items():
        starting(name)
        runs[name] = Run.of(method, problem, settings, key)
    if (note := smoothing_note(problem, key=key)) is not None:  # about values of the policy: baselines have none
        has_value = {name for name, run in runs.items() if run.fit is not None and not is_baseline(name)}
        runs = {name: run.with_note(note) if name in has_value else run for name, run in runs.items()}
    starting("diagnostics")
    diagnostics = diagnose(problem, key=key)
    judged = next((name for name in (RECOMMENDED, *runs) if name in runs and not is_baseline(name)), None)
    if judged is not None and dataset.categorical_advice is not None:
        runs[judged] = runs[judged].with_note(Note(NoteCode.LOOKS_CATEGORICAL, dataset.categorical_advice))
    estimate = None if judged is None else runs[judged].estimate
    gain, no_gain = None, "only baselines were evaluated"
    behaviour = without_value(no_gain)
    if judged is not None:
        starting("behaviour policy")
        try:
            gain, behaviour = _against_behaviour(judged, runs[judged], problem, settings, key)
        except NotApplicable as reason:
            no_gain = str(reason)
            behaviour = without_value(no_gain)
    if not problem.misses_rewards:
        behaviour = from_logged_returns(problem, settings, key=key)
    refutations = None
    if refute and judged is not None and runs[judged].fit is not None:
        refutations = _refuted(judged, runs[judged], problem, settings, key, starting)
    fits = {name: run.fit for name, run in runs.items() if run.fit is not None}
    return Evaluation(
        discount=discount,
        estimand=problem.estimand,
        horizon=horizon,
        seed=seed,
        dataset=_summary(dataset),
        estimates={name: run.estimate for name, run in runs.items()},
        recommended=RECOMMENDED,
        verdict=judge(estimate, diagnostics, dataset.num_episodes, problem.estimand, refutations),
        judged=judged,
        versions={
            "average-dice": version("average-dice"),
            "jax": jax.__version__,
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
        diagnostics=diagnostics,
        checks=run_checks(estimate, diagnostics, dataset.num_episodes, problem.estimand, refutations),
        behaviour=behaviour,
        against_behaviour=gain,
        no_difference=None if gain is not None else f"{NO_DIFFERENCE}{no_gain}",
        states=None if judged is None else map_states(problem, fits.get(judged), features, key=key),
        curves={
            name: {"step": curve.step.tolist(), "value": curve.value.tolist(), "loss": curve.loss.tolist()}
            for name, fit in fits.items()
            if (curve := fit.history) is not None
        },
        refutations=refutations,
        fits=fits,
        replicates={name: run.replicates for name, run in runs.items() if run.replicates is not None},
    )


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


def _against_behaviour(
    name: str, run: Run, problem: Problem, settings: IntervalSettings, key: jax.Array
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
    behaviour, baselines = behaviour_value(method, problem, len(replicates), settings.seed, key=key)
    episodes = problem.dataset.num_episodes
    gain = difference(value, behaviour, replicates, baselines, settings.level, episodes)
    return gain, by_same_method(name, behaviour, baselines, settings.level, episodes)


def _refuted(
    name: str, run: Run, problem: Problem, settings: IntervalSettings, key: jax.Array, starting: Callable[[str], None]
) -> Refutations:
    """What the refuters find about the estimate, with the resamples of its interval."""
    order = order_in_time(problem.dataset, None)
    case = Case(problem, run.method, key, settings.seed, order, given=run.replicates)
    return run_refuters(name, case, starting=starting)


def _summary(dataset: LoggedDataset) -> dict[str, Any]:
    last = dataset.starts + dataset.lengths - 1
    return {
        "sha256": dataset.sha256,
        "transitions": dataset.num_transitions,
        "episodes": dataset.num_episodes,
        "terminated": int(dataset.terminated[last].sum()),
        "lengths": [int(dataset.lengths.min()), float(dataset.lengths.mean()), int(dataset.lengths.max())],
        "rewards": [float(dataset.reward.min()), float(dataset.reward.mean()), float(dataset.reward.max())],
        "observation": dataset.observation.shape[1],
        "categorical": list(dataset.categorical),
        "action_features": 0 if dataset.action_features is None else dataset.action_features.shape[1],
        "action": "discrete" if dataset.is_discrete else f"continuous, {dataset.action.shape[1]} wide",
        "behaviour_known": dataset.behaviour_log_prob is not None,
        "metadata": {name: str(value) for name, value in dataset.metadata.items()},
    }


def _without_nonfinite(content: Any) -> Any:
    match content:
        case float() if not math.isfinite(content):
            return None
        case Mapping():
            return {name: _without_nonfinite(value) for name, value in content.items()}
        case list() | tuple():
            return [_without_nonfinite(value) for value in content]
    return content
