"""plan: how many episodes until the interval is narrow enough, or until two policies differ significantly?

From a pilot log. The standard error is that of the bootstrap; `inference/sample_size.py` says how it changes with the
number of episodes. What earlier truncation costs is found by truncating the episodes of the pilot log.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group

from average_dice.behaviour import estimate_behaviour as with_estimated_behaviour
from average_dice.data import LoggedDataset
from average_dice.data.truncation import truncated_at
from average_dice.errors import PolicyError, SettingError
from average_dice.estimators import RECOMMENDED, REGISTRY, Estimator, find, is_baseline
from average_dice.files import write_text_whole
from average_dice.inference.sample_size import Exponent, half_width
from average_dice.inference.uncertainty import IntervalSettings
from average_dice.inference.verdict import Verdict
from average_dice.memory import by_argument
from average_dice.pilot import FEWEST, Against, Expected, Expects, Needed, Pilot, Truncation
from average_dice.problem import Estimand, Problem
from average_dice.progress import shown_by_argument
from average_dice.report import planning as drawing
from average_dice.report import terminal

BEHAVIOUR = "behaviour"
FACTORS = (0.5, 1, 2, 4, 8)  # of the pilot's episodes, in the table
NUM_POINTS = 40  # of the curve


@dataclass(frozen=True)
class Plan:
    """The result of `plan`. `print` it, look at `sentences` and `needed`, write it with `to_json` or `to_html`.

    - `episodes`, `value`, `standard_error`, `half_width`: of the pilot log. `freedom`: degrees of freedom behind the
      standard error, on which the ranges depend.
    - `exponent`: the standard error falls as episodes^(−exponent); a half by the law of the square root.
    - `expected`: the half-width for each number of episodes; `curve`: the same for a chart.
    - `needed`: for the half-width `width`; None if none was given. `against`: about the other policy.
    - `truncations`: what earlier truncation would cost.
    - `more_helps`: whether more episodes of the same kind help; not if the log does not support the value.
    """

    discount: float
    estimand: Estimand
    horizon: int | None
    estimator: str
    level: float
    resamples: int
    seed: int
    episodes: int
    transitions: int
    sha256: str
    value: float
    standard_error: float
    freedom: float
    half_width: float
    exponent: Exponent | None
    verdict: Verdict
    more_helps: bool
    expected: tuple[Expected, ...]
    curve: tuple[Expected, ...]
    needed: Needed | None = None
    against: Against | None = None
    truncations: tuple[Truncation, ...] = ()
    command: str | None = None

    def with_command(self, command: str) -> "Plan":
        """The same plan with the command that made it, for the page."""
        return replace(self, command=command)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in plain sentences, the most important first."""
        return tuple(drawing.sentences(self._content()))

    def _content(self) -> dict[str, Any]:
        law = None if self.exponent is None else self.exponent.is_square_root
        return {**asdict(self), "estimand": self.estimand.value, "square_root_holds": law}

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**self._content(), "sentences": list(self.sentences)}

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        write_text_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def to_html(self, path: str | Path) -> None:
        """Writes a page with a chart, which needs no network. The file appears whole or not at all."""
        write_text_whole(path, drawing.page(self.to_dict()))

    def __rich__(self) -> Group:
        return drawing.draw(self.to_dict())

    def __str__(self) -> str:
        return terminal.as_text(self)


@shown_by_argument
@by_argument
def plan(
    dataset: LoggedDataset,
    policy: Any,
    discount: float,
    *,
    width: float | None = None,
    episodes: Sequence[int] | None = None,
    against: Any = None,
    against_name: str | None = None,
    max_steps: Sequence[int] = (),
    power: float = 0.8,
    estimator: str = RECOMMENDED,
    horizon: int | None = None,
    estimate_behaviour: bool = False,
    level: float = 0.95,
    bootstrap: int = 100,
    seed: int = 0,
    memory: int | str | None = None,
    progress: bool = False,
    starting: Callable[[str], None] = lambda name: None,
) -> Plan:
    """How many episodes does it take, judging by a pilot log?

    - `width`: the wanted half-width of the interval of the value: ± this much.
    - `episodes`: numbers of episodes for the table of expected half-widths; by default half to eight times the log's.
    - `against`: another policy, or `"behaviour"`: how many episodes until the difference is significant with
      probability `power`? `against_name`: what it is called.
    - `max_steps`: shorter lengths at which episodes could be truncated: what becomes of the width, and of the value?
    - `estimator`: the name of a method that does not train. The others as in `evaluate`.

    >>> print(plan(pilot, policy, 0.95, width=0.05))  # doctest: +SKIP
    """
    _check(dataset, width, episodes, max_steps, power, bootstrap, discount)
    method = _method(estimator)
    if estimate_behaviour:
        starting("estimating the behaviour policy")
        dataset = with_estimated_behaviour(dataset, seed=seed)
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    pilot = Pilot(method, IntervalSettings(level, bootstrap, 0, seed), dataset.num_episodes)
    starting(estimator)
    here = pilot.found(question(dataset, policy, discount))
    starting("resamples of fewer episodes")
    law, freedom = pilot.law(here), pilot.freedom(here)
    other = None
    if against is not None:
        is_behaviour = isinstance(against, str) and against == BEHAVIOUR
        name = against_name or (BEHAVIOUR if is_behaviour else "the other policy")
        starting(name)
        rival = None if is_behaviour else pilot.found(_named(name, question, dataset, against, discount))
        other = pilot.against(here, rival, name, power)
    truncations = []
    for steps in sorted(set(max_steps)):
        starting(f"truncated after {steps} steps")
        truncations.append(pilot.truncated(here, question(truncated_at(dataset, steps), policy, discount), steps))
    expects = Expects(here.standard_error, freedom, law, dataset.num_episodes, level, other)
    given = episodes or [max(2, round(factor * dataset.num_episodes)) for factor in FACTORS]
    return Plan(
        discount=here.problem.discount,
        estimand=here.problem.estimand,
        horizon=horizon,
        estimator=estimator,
        level=level,
        resamples=bootstrap,
        seed=seed,
        episodes=dataset.num_episodes,
        transitions=dataset.num_transitions,
        sha256=dataset.sha256,
        value=here.value,
        standard_error=here.standard_error,
        freedom=freedom,
        half_width=half_width(here.standard_error, dataset.num_episodes, dataset.num_episodes, level),
        exponent=law,
        verdict=here.verdict,
        more_helps=here.supported,
        expected=tuple(expects.at(number) for number in sorted(set(given))),
        curve=tuple(expects.at(number) for number in _points(given, dataset.num_episodes)),
        needed=None if width is None else expects.needed(width),
        against=other,
        truncations=tuple(truncations),
    )


def _check(
    dataset: LoggedDataset,
    width: float | None,
    episodes: Sequence[int] | None,
    max_steps: Sequence[int],
    power: float,
    bootstrap: int,
    discount: float,
) -> None:
    """Raises if a setting makes no sense."""
    if width is not None and not 0 < width < np.inf:
        raise SettingError(f"the width must be a number above 0, not {width:g}.")
    if episodes is not None and (not episodes or min(episodes) < 2):
        raise SettingError(f"numbers of episodes must be at least 2, not {list(episodes)}.")
    if not 0.5 <= power < 1:
        raise SettingError(f"the power must be at least 0.5 and below 1, not {power:g}.")
    if bootstrap < FEWEST:
        raise SettingError(f"a plan takes at least {FEWEST} bootstrap resamples, not {bootstrap}.")
    if dataset.num_episodes < FEWEST:
        raise SettingError(f"a pilot log needs at least {FEWEST} episodes; this one has {dataset.num_episodes}.")
    longest = int(dataset.lengths.max())
    if max_steps and discount == 1:
        raise SettingError("earlier truncation needs a discount below 1. Leave out max_steps.")
    if wrong := [steps for steps in max_steps if not 1 <= steps <= longest]:
        raise SettingError(f"the longest episode has {longest} steps: a truncation after {wrong[0]} cannot be tried.")


def _method(name: str) -> Estimator:
    found = find(name)
    if len(found) != 1 or is_baseline(found[0]):
        raise SettingError(f"a plan is for one estimator that is not a baseline, not {name}.")
    method = REGISTRY[found[0]].make()
    if method.trains:
        raise SettingError(f"{name} trains anew on every resample, which a plan does not wait for: choose another.")
    return method


def _named(name: str, question: Callable[..., Problem], *args: Any) -> Problem:
    """The problem of the other policy; an error names it."""
    try:
        return question(*args)
    except PolicyError as error:
        raise PolicyError(f"{name}: {error}") from None


def _points(given: Sequence[int], pilot: int) -> list[int]:
    """Numbers of episodes for a chart, evenly spaced."""
    low, high = min(*given, pilot), max(*given, pilot)
    return sorted({round(one) for one in np.linspace(low, high, NUM_POINTS)})
