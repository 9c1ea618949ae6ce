"""evaluate: the one call most users make."""

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
from rich.console import Group

from average_dice import memory as memory_limit
from average_dice import plotting
from average_dice.answers import Answer, Run, answer
from average_dice.behaviour import estimate_behaviour as with_estimated_behaviour
from average_dice.data import LoggedDataset
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.data.groups import groups_of
from average_dice.data.understood import notes_of, others_of
from average_dice.errors import SettingError, did_you_mean
from average_dice.estimators import RECOMMENDED, REGISTRY, Estimate, Estimator, Fit, Interval, find, is_baseline
from average_dice.estimators.baseline.average_reward import ALL_STEPS, PER_LOGGED_STEP
from average_dice.estimators.baseline.behaviour_return import TO_TRUNCATION
from average_dice.features.logged_state_actions import is_tight, require_memory
from average_dice.files import write_text_whole
from average_dice.inference.behaviour import Behaviour
from average_dice.inference.bootstrap import ROWS_AHEAD, Replicates
from average_dice.inference.diagnostics import Diagnostics, diagnose, with_reward
from average_dice.inference.difference import Difference, OnBehaviour
from average_dice.inference.refutation import Case, Refutations, order_in_time, run_refuters
from average_dice.inference.rules import Check
from average_dice.inference.smoothing import smoothing_note
from average_dice.inference.state_map import StateMap, check_features, map_states
from average_dice.inference.uncertainty import IntervalSettings
from average_dice.inference.verdict import Verdict
from average_dice.listing import split_names
from average_dice.notes import Note, NoteCode
from average_dice.policies.remarks import remarks_of
from average_dice.problem import Estimand, Problem, Rows
from average_dice.progress import shown_by_argument
from average_dice.report import notebook, page, terminal
from average_dice.report.estimands import WORDS, Words
from average_dice.report.formatting import percent, short
from average_dice.return_distribution import RESAMPLES as RETURN_RESAMPLES
from average_dice.return_distribution import ReturnDistribution
from average_dice.return_distribution import distribution as distribution_of
from average_dice.version import __version__

NUMBERS = ("value", "lower", "upper", "level", "return", "seconds")
FRAME = pa.schema(
    [
        ("estimator", pa.string()),
        *((name, pa.float64()) for name in NUMBERS),
        ("interval", pa.string()),
        ("notes", pa.string()),
    ]
)  # the columns of `Evaluation.to_frame`
LABELS = (PER_LOGGED_STEP, ALL_STEPS, TO_TRUNCATION)  # notes that are shown beside the name of the method, too
LONGEST_NAME = 80  # characters of a policy's `repr` on the report: a longer one is no name
OF_BEHAVIOUR = "Behaviour policy: "
AGAINST_BEHAVIOUR = "Against the behaviour policy: "
NO_DIFFERENCE = f"{AGAINST_BEHAVIOUR}not compared: "


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`: an estimate by each requested method, and how far to trust it.

    `print` it, look at `value`, `interval` and `verdict`, write it with `to_json` or `to_html`. `evaluation["fqe"]` is
    the estimate by that method.

    - `judged`: the estimate that the verdict is about; the recommended one, or the first that was requested.
    - `checks`: every check with its value, the good values, and its status.
    - `behaviour`: the value of the behaviour policy, with its interval, or why there is none.
    - `against_behaviour`: the judged value minus that of the behaviour policy by the same method, with its interval;
      without it, `no_difference` says why.
    - `reward`: the name of the reward. `rewards`: an answer for each reward that was asked for, this one among them.
    - `groups`: an answer for each group of episodes by the column `by`, from the episodes of that group alone.
    - `title`, `policy`, `log` and `created`: the title of the report, the names of the policy and the log, and the date
      (ISO), all for readers of the report.
    - `behaviour_estimate`: how the probabilities of the logged actions were estimated; None if they were not.
    - `distribution`: that of the return of an episode, if it was requested.
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
    behaviour_estimate: EstimatedBehaviour | None = None
    states: StateMap | None = None
    curves: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    command: str | None = None
    reward: str = "reward"
    rewards: Mapping[str, Answer] = field(default_factory=dict)
    by: str | None = None
    groups: Mapping[str, Answer] = field(default_factory=dict)
    title: str | None = None
    policy: str | None = None
    log: str | None = None
    created: str | None = None
    distribution: ReturnDistribution | None = None
    refutations: Refutations | None = None
    fits: Mapping[str, Fit] = field(default_factory=dict, repr=False, compare=False)
    replicates: Mapping[str, Replicates] = field(default_factory=dict, repr=False, compare=False)

    @property
    def recommended_estimate(self) -> Estimate | None:
        """The estimate of the recommended method, if it was requested."""
        return self.estimates.get(self.recommended)

    @property
    def value(self) -> float | None:
        """The value of the policy by the judged method; None if it gives none."""
        return None if self.judged is None else self.estimates[self.judged].value

    @property
    def interval(self) -> Interval | None:
        """The interval of `value`; None without one."""
        return None if self.judged is None else self.estimates[self.judged].interval

    @property
    def weights(self) -> Rows | None:
        """The weight of each row of the log in the value: `value` is the sum of weights · rewards.

        None for a method whose value is no such sum, as the recommended one, which also learns values of states, and
        fqe. `estimators="average-dice-features"` has weights; so have the other ratio methods and importance sampling.
        """
        fit = None if self.judged is None else self.fits.get(self.judged)
        return None if fit is None or fit.weights is None else np.asarray(fit.weights / len(fit.weights))

    def __getitem__(self, estimator: str) -> Estimate:
        """The estimate by the method of this name."""
        if estimator not in self.estimates:
            known = ", ".join(self.estimates)
            meant = did_you_mean(estimator, self.estimates)
            raise SettingError(f"there is no estimate by {estimator}.{meant} There are {known}.")
        return self.estimates[estimator]

    def __repr__(self) -> str:
        if self.judged is None:
            return f"Evaluation(only baselines: {', '.join(self.estimates)})"
        return f"Evaluation({self.judged} {self.estimates[self.judged].in_short}, {self.verdict.level})"

    def plot(self, what: str = "estimates", ax: Any = None) -> Any:
        """A forest plot with a row for each of the `estimates`, `rewards` or `groups`. Needs matplotlib.

        Draws on the axes `ax`, or on a new figure, and returns the axes. The dashed line is the behaviour policy.
        """
        return plotting.forest(self.to_dict(), what, ax)

    def with_command(self, command: str) -> "Evaluation":
        """The same evaluation with the command that made it, for the report."""
        return replace(self, command=command)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; numbers that JSON cannot hold become null."""
        content: dict[str, Any] = _without_nonfinite(
            {
                "title": self.title,
                "policy": self.policy,
                "log": self.log,
                "date": self.created,
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
                "behaviour": self._behaviour_content(self.behaviour),
                "against_behaviour": self._difference_content(self.against_behaviour),
                "no_difference": self.no_difference,
                "reward": self.reward,
                "rewards": [{"reward": name, **self._answer_content(one)} for name, one in self.rewards.items()],
                "by": self.by,
                "groups": [{"group": name, **self._answer_content(one)} for name, one in self.groups.items()],
                "behaviour_estimate": None if self.behaviour_estimate is None else self.behaviour_estimate.to_dict(),
                "refutations": None if self.refutations is None else self.refutations.to_dict(),
                "states": None if self.states is None else asdict(self.states),
                "curves": self.curves,
                "command": self.command,
                "distribution": None if self.distribution is None else self.distribution.to_dict(),
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

    def _answer_content(self, found: Answer) -> dict[str, Any]:
        """The JSON form of an answer: its estimate, the verdict on it, and the behaviour policy."""
        return {
            **self._content(found.estimator or "", found.estimate),
            "episodes": found.episodes,
            "verdict": asdict(found.verdict),
            "behaviour": self._behaviour_content(found.behaviour),
            "against_behaviour": self._difference_content(found.against_behaviour),
            "no_difference": found.no_difference,
        }

    def _behaviour_content(self, found: Behaviour) -> dict[str, Any]:
        """The value of the behaviour policy as in `_content`, and in a sentence."""
        interval = found.interval
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

    def _difference_content(self, found: Difference | None) -> dict[str, Any] | None:
        if found is None:
            return None
        words = found.in_words(short, self._words.unit)
        sentence = f"{AGAINST_BEHAVIOUR}{words}, both by {self.judged} on the same bootstrap resamples"
        return {**asdict(found), "judgement": found.judgement, "sentence": sentence}

    @property
    def _definition(self) -> str:
        """What the number is, with the horizon."""
        parts = [self._words.definition]
        if self.horizon is not None:
            parts.append(f"Only the rewards of the first {self.horizon} steps count.")
        if self.reward != "reward":
            parts.append(f"The reward is column {self.reward}.")
        return " ".join(parts)

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
        errors = None
        if truth is not None:
            errors = {name: None if one.value is None else one.value - truth for name, one in self.estimates.items()}
        drawn = terminal.draw_evaluation(self.to_dict(), errors)
        return drawn if self.distribution is None else Group(drawn, self.distribution)

    def _repr_html_(self) -> str:
        return notebook.render(self.to_dict())

    def __rich__(self) -> Group:
        return self.rendered()

    def __str__(self) -> str:
        return terminal.as_text(self)


@shown_by_argument
@memory_limit.by_argument
def evaluate(
    dataset: LoggedDataset,
    policy: Any,
    discount: float,
    *,
    estimators: str | Sequence[str] | Mapping[str, Estimator] = "recommended",
    rewards: str | Sequence[str] | None = None,
    by: str | None = None,
    horizon: int | None = None,
    estimate_behaviour: bool = False,
    level: float = 0.95,
    bootstrap: int = 100,
    bootstrap_trained: int = 0,
    features: tuple[int, int] | None = None,
    distribution: bool = False,
    seed: int = 0,
    refute: bool = False,
    memory: int | str | None = None,
    progress: bool = False,
    title: str | None = None,
    policy_name: str | None = None,
    log_name: str | None = None,
    created: date | None = None,
    on_behaviour: OnBehaviour | None = None,
    starting: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Estimates what `policy` would earn, from the log alone, with intervals and a verdict.

    - `policy`: anything that `as_policy` accepts: a policy, a model, a function, a table, rules, the path of a file.
      None if the log has a `target_log_prob` column.
    - `estimators`: `recommended` (with the baselines), `all`, names (a list, or separated by commas), or methods of
      your own by name: `{"mine": ad.AverageDICE(labels=plain)}`.
    - `rewards`: what to count, if not the log's own `reward`: names of extra columns, and of `reward`. The evaluation
      is about the first; `evaluation.rewards` has all of them, on the same bootstrap resamples.
    - `by`: an extra column; `evaluation.groups` has a value for each of its groups of episodes.
    - `discount`: from 0 to 1. With 1, every episode must terminate, or give a `horizon`.
    - `estimate_behaviour`: estimate the probabilities of the logged actions first (`ad.estimate_behaviour`).
    - `horizon`: the value counts the rewards of this many steps; None for all.
    - `level`: confidence level of the intervals. `bootstrap`: number of resamples; with 0 only methods that need none
      have intervals. `bootstrap_trained`: the same for methods that train; each resample trains the method again.
    - `features`: two dimensions of the observation for the map of states; principal components if None.
    - `distribution`: also how the return of an episode varies, as by `distribution`.
    - `refute`: also tries to refute the estimate (see `ad.refute`), with about 100 refits; what fails enters the
      verdict.
    - `memory`: the limit of memory, in bytes or as `"2GiB"`; by default the environment variable AVERAGE_DICE_MEMORY,
      or half of what the machine has. Above it fewer random features are used, and a note says so.
    - `title`, `policy_name`, `log_name` and `created` (today if None) head the report, and change no number.
    - `on_behaviour`: what the behaviour policy earns, kept for other policies on the same log, as by `compare`.
    - `progress` shows a progress bar. `starting` is called with the name of each method before it starts.

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
    if estimate_behaviour:
        starting("estimating the behaviour policy")
        dataset = with_estimated_behaviour(dataset, seed=seed)
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    problem = question(dataset, policy, discount)
    if policy is None and dataset.target_log_prob is None and not all(map(is_baseline, methods)):
        raise SettingError("give a policy, or a log with a target_log_prob column: there is nothing to evaluate.")
    counted = {name: problem.dataset.reward_named(name) for name in _names_of(rewards)}
    groups = {} if by is None else groups_of(problem.dataset, by)
    require_memory(problem)
    check_features(problem, features)
    reward, *others = counted
    problem = problem if reward == "reward" else problem.with_reward(counted[reward])
    varies = None
    if distribution:
        number, rewarded = RETURN_RESAMPLES if bootstrap else 0, dataset.with_reward(dataset.reward_named(reward))
        varies = distribution_of(rewarded, policy, discount, horizon=horizon, level=level, bootstrap=number, seed=seed)
    kept = problem.keep_for_other_rewards() if others and _is_small(problem) else []
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
    if judged is not None:
        for text in remarks_of(problem.policy):
            runs[judged] = runs[judged].with_note(Note(NoteCode.POLICY_REMARK, text))
    record = dataset.estimated_behaviour
    if judged is not None and record is not None:
        for text in record.notes:
            runs[judged] = runs[judged].with_note(Note(NoteCode.BEHAVIOUR_ESTIMATED, text))
    if judged is not None:
        starting("behaviour policy")
    refutations, run = None, runs.get(judged or "")
    if refute and judged is not None and run is not None and run.fit is not None:
        refutations = _refuted(judged, run, problem, settings, key, starting)
    found = answer(judged, run, problem, diagnostics, settings, refutations, key=key, on_behaviour=on_behaviour)
    of_rewards = {reward: found} if rewards is not None else {}
    of_groups: dict[str, Answer] = {}
    if judged is None and (others or groups):
        raise SettingError("values of several rewards or groups need an estimator that is not a baseline.")
    if judged is not None:
        for name in others:
            starting(f"reward {name}")
            other = problem.with_reward(counted[name])
            run = Run.of(methods[judged], other, settings, key)
            of_rewards[name] = answer(judged, run, other, with_reward(diagnostics, other), settings, key=key)
        for name, episodes in groups.items():
            starting(f"{by} {name}")
            part = problem.select_episodes(episodes)
            run = Run.of(methods[judged], part, settings, key)
            diagnosed = _with_numbers(
                diagnose(part, key=key), problem.dataset.episode[problem.dataset.starts[episodes]]
            )
            of_groups[name] = answer(judged, run, part, diagnosed, settings, key=key)
    kept.clear()
    fits = {name: run.fit for name, run in runs.items() if run.fit is not None}
    return Evaluation(
        discount=discount,
        estimand=problem.estimand,
        horizon=horizon,
        seed=seed,
        dataset=_summary(dataset, dataset.reward_named(reward)),
        estimates={name: run.estimate for name, run in runs.items()},
        recommended=RECOMMENDED,
        verdict=found.verdict,
        judged=judged,
        versions={
            "average-dice": __version__,
            "jax": jax.__version__,
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
        diagnostics=diagnostics,
        checks=found.checks,
        behaviour=found.behaviour,
        against_behaviour=found.against_behaviour,
        no_difference=None if found.no_difference is None else f"{NO_DIFFERENCE}{found.no_difference}",
        behaviour_estimate=record,
        states=None if judged is None else map_states(problem, fits.get(judged), features, key=key),
        curves={
            name: {"step": curve.step.tolist(), "value": curve.value.tolist(), "loss": curve.loss.tolist()}
            for name, fit in fits.items()
            if (curve := fit.history) is not None
        },
        reward=reward,
        rewards=of_rewards,
        by=by,
        groups=of_groups,
        title=title,
        policy=policy_name or name_of_policy(policy),
        log=log_name or _name_of_log(dataset),
        created=(created or date.today()).isoformat(),
        distribution=varies,
        refutations=refutations,
        fits=fits,
        replicates={name: run.replicates for name, run in runs.items() if run.replicates is not None},
    )


def _with_numbers(found: Diagnostics, numbers: np.ndarray) -> Diagnostics:
    """The diagnostics of a group, whose episodes have these numbers in the whole log."""
    heaviest = tuple(replace(one, episode=int(numbers[one.episode])) for one in found.heaviest)
    return replace(found, heaviest=heaviest)


def _is_small(problem: Problem) -> bool:
    """Whether the features of all bootstrap resamples can be kept for other rewards."""
    return problem.dataset.num_transitions <= ROWS_AHEAD and not is_tight(problem)


def _names_of(rewards: str | Sequence[str] | None) -> list[str]:
    """Each name once; the log's own reward if none is given."""
    if rewards is None:
        return ["reward"]
    names = split_names(rewards) if isinstance(rewards, str) else rewards
    found = list(dict.fromkeys(name.strip() for name in names))
    if not found or "" in found:
        raise SettingError("give the name of at least one reward, such as reward or an extra column.")
    return found


def name_of_policy(policy: Any) -> str:
    """What reports call a policy without a name: its `repr` if that is short, else its class."""
    if policy is None:
        return "target_log_prob column of the log"
    shown = repr(policy)
    has_own = getattr(type(policy), "__repr__", None) is not object.__repr__  # which shows an address
    return shown if has_own and len(shown) <= LONGEST_NAME and "\n" not in shown else type(policy).__name__


def _name_of_log(dataset: LoggedDataset) -> str:
    """The task or environment of a log that was made here, or the start of its hash."""
    made_in = dataset.metadata.get("environment", f"log {dataset.sha256[:12]}")
    return str(dataset.metadata.get("task", made_in))


def _refuted(
    name: str, run: Run, problem: Problem, settings: IntervalSettings, key: jax.Array, starting: Callable[[str], None]
) -> Refutations:
    """What the refuters find about the estimate, with the resamples of its interval."""
    order = order_in_time(problem.dataset, None)
    case = Case(problem, run.method, key, settings.seed, order, given=run.replicates)
    return run_refuters(name, case, starting=starting)


def _summary(dataset: LoggedDataset, reward: np.ndarray) -> dict[str, Any]:
    last = dataset.starts + dataset.lengths - 1
    return {
        "sha256": dataset.sha256,
        "transitions": dataset.num_transitions,
        "episodes": dataset.num_episodes,
        "terminated": int(dataset.terminated[last].sum()),
        "lengths": [int(dataset.lengths.min()), float(dataset.lengths.mean()), int(dataset.lengths.max())],
        "rewards": [float(reward.min()), float(reward.mean()), float(reward.max())],
        "observation": dataset.observation.shape[1],
        "categorical": list(dataset.categorical),
        "action_features": 0 if dataset.action_features is None else dataset.action_features.shape[1],
        "action": "discrete" if dataset.is_discrete else f"continuous, {dataset.action.shape[1]} wide",
        "behaviour_known": dataset.behaviour_log_prob is not None,
        "behaviour_model": None if dataset.estimated_behaviour is None else dataset.estimated_behaviour.model,
        "metadata": {name: str(value) for name, value in others_of(dataset.metadata).items()},
        "notes": list(notes_of(dataset.metadata)),
        "names": json.loads(dataset.names.to_json()),
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
