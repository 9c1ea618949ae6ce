"""compare: several policies on one log, with each other and with the behaviour policy.

All of them are evaluated on the same bootstrap resamples, so their values change together from resample to resample,
and the differences are paired.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Group

from average_dice.behaviour import estimate_behaviour as with_estimated_behaviour
from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, PolicyError, SettingError
from average_dice.estimators import RECOMMENDED
from average_dice.evaluation import Evaluation, evaluate
from average_dice.files import write_text_whole
from average_dice.inference.difference import Difference, difference
from average_dice.inference.rules import NOT_SUPPORTED
from average_dice.memory import by_argument
from average_dice.progress import shown_by_argument
from average_dice.report import page, terminal
from average_dice.report.estimands import WORDS

BEHAVIOUR = "behaviour"


@dataclass(frozen=True)
class Comparison:
    """The evaluation of each policy, and the differences between pairs: (one, other) → value of one minus the other.

    `title` and `command` are for the report.
    """

    evaluations: Mapping[str, Evaluation]
    differences: Mapping[tuple[str, str], Difference]
    title: str | None = None
    command: str | None = None

    def with_command(self, command: str) -> "Comparison":
        """The same comparison with the command that made it, for the report."""
        return replace(self, command=command)

    @property
    def best(self) -> str:
        """The policy with the largest value, which may be the behaviour policy."""
        values = {name: _value(found) for name, found in self.evaluations.items()}
        behaviour = self._first.behaviour.value
        assert behaviour is not None
        return max([*values, BEHAVIOUR], key=lambda name: values.get(name, behaviour))

    @property
    def best_is_clear(self) -> bool:
        """Whether the best is significantly better than every other policy, and the log supports every value."""
        return self._best_is_significant and not self._unsupported

    @property
    def summary(self) -> str:
        """Which policy has the largest value, whether significantly, and which values the log does not support."""
        largest = f"Largest {WORDS[self._first.estimand].name}: {self.best}"
        if self._unsupported:
            unsupported = ", ".join(self._unsupported)
            return f"{largest}, but no conclusion: the log does not support the value of {unsupported}."
        significant = "significantly better" if self._best_is_significant else "but not significantly better"
        return f"{largest}, {significant} than every other policy."

    @property
    def _first(self) -> Evaluation:
        """Any of the evaluations: the estimand and the behaviour policy are the same in all."""
        return next(iter(self.evaluations.values()))

    @property
    def _best_is_significant(self) -> bool:
        return all(
            found.judgement == ("better" if pair[0] == self.best else "worse")
            for pair, found in self.differences.items()
            if self.best in pair
        )

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
            "summary": self.summary,
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
    return Comparison(evaluations, differences, title)


def _evaluated(name: str, *args: Any, **settings: Any) -> Evaluation:
    """The evaluation of one policy; an error names it."""
    try:
        return evaluate(*args, **settings)
    except PolicyError as error:
        raise PolicyError(f"{name}: {error}") from None


def _value(found: Evaluation) -> float:
    value = found.estimates[RECOMMENDED].value
    assert value is not None
    return value
