"""Evaluation: the result of `evaluate`, and the forms in which it is written and shown."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Group

from average_dice import plotting
from average_dice.answers import Answer
from average_dice.data.estimated import EstimatedBehaviour
from average_dice.errors import SettingError, did_you_mean
from average_dice.estimators import Estimate, Fit, Interval
from average_dice.estimators.baseline.average_reward import ALL_STEPS, PER_LOGGED_STEP
from average_dice.estimators.baseline.behaviour_return import TO_TRUNCATION
from average_dice.files import write_text_whole
from average_dice.inference.behaviour import Behaviour
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.diagnostics import Diagnostics
from average_dice.inference.difference import Difference
from average_dice.inference.refutation import Refutations
from average_dice.inference.rules import Check
from average_dice.inference.state_map import StateMap
from average_dice.inference.verdict import Verdict
from average_dice.notes import NoteCode
from average_dice.problem import Estimand, Rows
from average_dice.report import notebook, page, terminal
from average_dice.report.estimands import WORDS, Words
from average_dice.report.formatting import percent, short
from average_dice.return_distribution import ReturnDistribution

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


def _without_nonfinite(content: Any) -> Any:
    match content:
        case float() if not math.isfinite(content):
            return None
        case Mapping():
            return {name: _without_nonfinite(value) for name, value in content.items()}
        case list() | tuple():
            return [_without_nonfinite(value) for value in content]
    return content
