"""compare: several policies on one log, with each other and with the behaviour policy.

All of them are evaluated on the same bootstrap resamples, so their values change together from resample to resample,
and the differences are paired. The intervals of all differences hold together (`inference/simultaneous.py`), so that
"this policy is the best" has the stated confidence, however many policies are compared.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Group

from average_dice.behaviour import estimate_behaviour as with_estimated_behaviour
from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, PolicyError, SettingError
from average_dice.estimators import RECOMMENDED
from average_dice.evaluation import evaluate
from average_dice.evaluation_result import Evaluation
from average_dice.files import write_text_whole
from average_dice.inference.best_policies import BestPolicies, Contender, Ranked
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.difference import Difference, OnBehaviour, difference
from average_dice.inference.rules import NOT_SUPPORTED
from average_dice.memory import by_argument
from average_dice.progress import shown_by_argument
from average_dice.report import page, terminal
from average_dice.report.estimands import WORDS
from average_dice.report.formatting import percent

BEHAVIOUR = "behaviour"


@dataclass(frozen=True)
class Comparison:
    """The evaluation of each policy, and the differences between pairs: (one, other) → value of one minus the other.

    The interval of each difference is for that difference alone; those of `simultaneous_differences` hold together.
    `title` and `command` are for the report. `behaviour_replicates`: the behaviour policy's values on the bootstrap
    resamples; not in the JSON.
    """

    evaluations: Mapping[str, Evaluation]
    differences: Mapping[tuple[str, str], Difference]
    title: str | None = None
    command: str | None = None
    behaviour_replicates: Replicates | None = field(default=None, repr=False, compare=False)

    def with_command(self, command: str) -> "Comparison":
        """The same comparison with the command that made it, for the report."""
        return replace(self, command=command)

    @property
    def best(self) -> str:
        """The policy with the largest value, which may be the behaviour policy."""
        values = self._values
        return max(values, key=lambda name: values[name])

    @property
    def best_is_clear(self) -> bool:
        """Whether every other policy is excluded as the best, which takes a log that supports every value."""
        return self.not_excluded == (self.best,)

    @property
    def not_excluded(self) -> tuple[str, ...]:
        """The policies that cannot be excluded as the best, the behaviour policy among them.

        A policy is excluded if another is significantly better by the simultaneous intervals. One whose value the log
        does not support is never excluded, and excludes no other.
        """
        return self._together.not_excluded

    @property
    def ranking(self) -> tuple[Ranked, ...]:
        """All policies from the largest value, with the simultaneous intervals of their differences from the first."""
        return self._together.ranking(self._values)

    @property
    def simultaneous_differences(self) -> Mapping[tuple[str, str], Difference]:
        """As `differences`, with intervals that hold together with the confidence level."""
        return {pair: self._together.difference(*pair) for pair in self.differences}

    @property
    def summary(self) -> str:
        """Which policy has the largest value, whether significantly, and which values the log does not support."""
        largest = f"Largest {WORDS[self._first.estimand].name}: {self.best}"
        if self._unsupported:
            unsupported = ", ".join(self._unsupported)
            return f"{largest}, but no conclusion: the log does not support the value of {unsupported}.{self._may_be}"
        if self.best_is_clear:
            return f"{largest}, significantly better than every other policy."
        return f"{largest}, but not significantly better than every other policy.{self._may_be}"

    @property
    def _may_be(self) -> str:
        """Which of the policies with simultaneous intervals may be the best."""
        names = [name for name in self.not_excluded if name in self._together.among]
        if self._together.found is None:
            return ""
        start = "Of the others, the best is" if self._unsupported else "The best is"
        one_of = "" if len(names) == 1 else "one of "
        return f" {start} {one_of}{', '.join(names)} ({percent(self._together.level)} confidence over all pairs)."

    @property
    def _first(self) -> Evaluation:
        """Any of the evaluations: the estimand and the behaviour policy are the same in all."""
        return next(iter(self.evaluations.values()))

    @property
    def _values(self) -> dict[str, float]:
        """The values that are shown, with that of the behaviour policy last."""
        behaviour = self._first.behaviour.value
        assert behaviour is not None
        return {**{name: _value(found) for name, found in self.evaluations.items()}, BEHAVIOUR: behaviour}

    @cached_property
    def _together(self) -> BestPolicies:
        """All policies, and the behaviour policy by the same method."""
        gap = next(found for (_, other), found in self.differences.items() if other == BEHAVIOUR)
        contenders = {
            name: Contender(_value(found), found.replicates.get(RECOMMENDED), found.verdict.level != NOT_SUPPORTED)
            for name, found in self.evaluations.items()
        }
        contenders[BEHAVIOUR] = Contender(gap.baseline, self.behaviour_replicates)
        return BestPolicies.of(contenders, gap.level, self._first.dataset["episodes"])

    @property
    def _unsupported(self) -> list[str]:
        return [name for name, found in self.evaluations.items() if found.verdict.level == NOT_SUPPORTED]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "title": self.title,
            "log": self._first.log,
            "date": self._first.created,
            "command": self.command,
            "behaviour": self._first.to_dict()["behaviour"],
            "policies": [{**found.to_dict(), "policy": name} for name, found in self.evaluations.items()],
            "differences": [
                {"policy": one, "other": other, **asdict(found), "judgement": found.judgement}
                for (one, other), found in self.differences.items()
            ],
            "best": self.best,
            "best_is_clear": self.best_is_clear,
            "not_excluded": list(self.not_excluded),
            "ranking": [_ranked_content(one) for one in self.ranking],
            "simultaneous": self._simultaneous_content(),
            "summary": self.summary,
        }

    def _simultaneous_content(self) -> dict[str, Any]:
        """The intervals that hold together, in the order of `differences`, and how they were found."""
        found = self._together.found
        return {
            "level": self._together.level,
            "critical": None if found is None else found.critical,
            "kind": None if found is None else found.kind,
            "policies": list(self._together.among),
            "differences": [
                {"policy": one, "other": other, **asdict(gap), "judgement": gap.judgement}
                for (one, other), gap in self.simultaneous_differences.items()
            ],
        }

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        write_text_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def to_html(self, path: str | Path) -> None:
        """Writes the report: one page that needs no network. The file appears whole or not at all."""
        write_text_whole(path, page.render_comparison(self.to_dict()))

    def __rich__(self) -> Group:
        return terminal.draw_comparison(self.to_dict())

    def __str__(self) -> str:
        return terminal.as_text(self)


@shown_by_argument
@by_argument
def compare(
    dataset: LoggedDataset,
    policies: Mapping[str, Any],
    discount: float,
    *,
    horizon: int | None = None,
    estimate_behaviour: bool = False,
    level: float = 0.95,
    bootstrap: int = 100,
    seed: int = 0,
    memory: int | str | None = None,
    progress: bool = False,
    title: str | None = None,
    log_name: str | None = None,
    created: date | None = None,
    starting: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Which of the policies has the largest value, and is any of them better than the behaviour policy?

    `policies`: by name, each anything that `as_policy` accepts. `memory`: the limit of memory; `progress`: shows a
    progress bar; `title`, `log_name` and `created` head the report: all as in `evaluate`. `estimate_behaviour`:
    estimate the probabilities of the logged actions first (`ad.estimate_behaviour`); all policies and resamples share
    these estimates.

    >>> print(compare(data, {"old": old, "new": new}, 0.95))  # doctest: +SKIP
    """
    if not policies:
        raise SettingError("give at least one policy.")
    if BEHAVIOUR in policies:
        raise SettingError(f"the name {BEHAVIOUR!r} is reserved for the policy that made the log: choose another name.")
    if bootstrap < 2:
        raise SettingError("comparing policies takes at least two bootstrap resamples.")
    if estimate_behaviour:
        starting("estimating the behaviour policy")
        dataset = with_estimated_behaviour(dataset, seed=seed)
    if dataset.estimated_behaviour is not None:
        dataset = replace(dataset, estimated_behaviour=dataset.estimated_behaviour.remembered())
    on_behaviour = OnBehaviour()  # the same for all policies: half of the work of each
    evaluations = {}
    for name, policy in policies.items():
        starting(name)
        found = _evaluated(
            name,
            dataset,
            policy,
            discount,
            estimators=[RECOMMENDED],
            horizon=horizon,
            level=level,
            bootstrap=bootstrap,
            seed=seed,
            policy_name=name,
            log_name=log_name,
            created=created,
            on_behaviour=on_behaviour,
        )
        if found.estimates[RECOMMENDED].value is None or found.against_behaviour is None:
            raise NotApplicable(f"{name}: {'; '.join(str(note) for note in found.estimates[RECOMMENDED].notes)}")
        evaluations[name] = found
    differences = {
        (name, BEHAVIOUR): found.against_behaviour
        for name, found in evaluations.items()
        if found.against_behaviour is not None
    }
    for one, other in combinations(evaluations, 2):
        here, there = evaluations[one], evaluations[other]
        found_difference = difference(
            _value(here),
            _value(there),
            here.replicates[RECOMMENDED],
            there.replicates[RECOMMENDED],
            level,
            dataset.num_episodes,
        )
        supported = NOT_SUPPORTED not in (here.verdict.level, there.verdict.level)
        differences[one, other] = replace(found_difference, supported=supported)
    _, replicates = next(iter(on_behaviour.found.values()))
    return Comparison(evaluations, differences, title, behaviour_replicates=replicates)


def _evaluated(name: str, *args: Any, **settings: Any) -> Evaluation:
    """The evaluation of one policy; an error names it."""
    try:
        return evaluate(*args, **settings)
    except PolicyError as error:
        raise PolicyError(f"{name}: {error}") from None


def _ranked_content(one: Ranked) -> dict[str, Any]:
    """The JSON form of a line of the ranking: the difference is that from the first."""
    gap = one.difference
    return {
        "rank": one.rank,
        "policy": one.policy,
        "value": one.value,
        "status": one.status,
        "difference": None if gap is None else gap.value,
        "lower": None if gap is None else gap.lower,
        "upper": None if gap is None else gap.upper,
        "excluded_by": list(one.excluded_by),
    }


def _value(found: Evaluation) -> float:
    value = found.estimates[RECOMMENDED].value
    assert value is not None
    return value
