"""sensitivity: how far could something that was not recorded move the value, and when would it change the answer?

The bounds themselves are in `inference/sensitivity`; here they get confidence ends by the bootstrap over episodes, and
the tipping Γ.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group

from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, SettingError
from average_dice.files import write_text_whole
from average_dice.inference.bootstrap import resampled_episodes
from average_dice.inference.episode_weights import effective_number, episode_weights
from average_dice.inference.intervals import percentile
from average_dice.inference.sensitivity import (
    LARGEST_GAMMA,
    LOWER,
    UPPER,
    Bounds,
    Deviation,
    EveryStep,
    Form,
    Memoryless,
    OneStep,
    clipped,
    in_odds,
    in_probability,
    possible_range,
    tipping_gamma,
)
from average_dice.labels import over_mean_at_step
from average_dice.policies import Policy
from average_dice.problem import Estimand, Problem
from average_dice.progress import report
from average_dice.report import sensitivity as drawing
from average_dice.report import terminal
from average_dice.resampling import Resample

GAMMAS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
FEWEST_EPISODES = 10  # effective ones: with fewer, resamples do not show how much weights vary
MOST_FAILURES = 0.1  # of the resamples: with more failures, the others are no longer a fair sample
BISECTION, SECTIONS = 1, 15  # points at once in the search of the tipping Γ: the table takes one Γ at a time anyway


@dataclass(frozen=True)
class Bound:
    """Bounds on the value at one Γ, and their confidence ends; None without bootstrap resamples.

    An interval from `lower_end` to `upper_end` covers both bounds with the confidence level.
    """

    gamma: float
    lower: float
    upper: float
    lower_end: float | None = None
    upper_end: float | None = None


@dataclass(frozen=True)
class Tipping:
    """The Γ at which the bounds no longer exclude the reference, with its interval; None: beyond `LARGEST_GAMMA`.

    The lower end of the interval is the Γ up to which the conclusion holds with confidence.
    """

    gamma: float | None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Curve:
    """Bounds against Γ under one assumption. `value` is the estimate at Γ = 1, `reference` what it is compared with."""

    name: str
    assumption: str
    sharpness: str
    value: float
    reference: float
    bounds: tuple[Bound, ...]
    tipping: Tipping


@dataclass(frozen=True)
class Sensitivity:
    """The result of `sensitivity`: bounds on the value by Γ under one or several assumptions, and tipping points.

    - `value`: the estimate if nothing is unrecorded (Γ = 1), by weighted per-decision importance sampling, not by the
      recommended estimator.
    - `possible`: the least and the largest value that the rewards allow; bounds are clipped there.
    - `reference`: what the value is compared with, and `reference_name`: what that is.
    - `curves`: the first is the most cautious.
    """

    discount: float
    estimand: Estimand
    horizon: int | None
    value: float
    reference: float
    reference_name: str
    curves: tuple[Curve, ...]
    level: float
    resamples: int
    seed: int
    episodes: int
    transitions: int
    sha256: str
    notes: tuple[str, ...] = ()
    command: str | None = None
    possible: tuple[float, float] | None = None

    @property
    def better(self) -> bool:
        """Whether the value at Γ = 1 is above the reference."""
        return self.value > self.reference

    @property
    def conclusions(self) -> tuple[str, ...]:
        """One sentence for each curve: up to which Γ the comparison with the reference holds."""
        return tuple(self._conclusion(curve) for curve in self.curves)

    def _conclusion(self, curve: Curve) -> str:
        claim = f"{_side(curve.value, curve.reference)} {self.reference_name}"
        found = curve.tipping
        if found.gamma is None:
            text = f"{curve.name}: {claim} for every Γ up to {LARGEST_GAMMA:g}"
        else:
            text = f"{curve.name}: {claim} up to Γ = {found.gamma:.3g}"
        if found.lower is None:
            return text
        if found.lower <= 1:
            return f"{text}; with {self.level:.0%} confidence it is open already at Γ = 1, by chance alone"
        return f"{text}, with {self.level:.0%} confidence up to Γ = {found.lower:.3g}"

    def with_command(self, command: str) -> "Sensitivity":
        """The same result with the command that made it, for the page."""
        return replace(self, command=command)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            **asdict(self),
            "estimand": self.estimand.value,
            "better": self.better,
            "conclusions": list(self.conclusions),
            "largest_gamma": LARGEST_GAMMA,
        }

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        write_text_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def to_html(self, path: str | Path) -> None:
        """Writes the page, which needs no network. The file appears whole or not at all."""
        write_text_whole(path, drawing.page(self.to_dict()))

    def _repr_html_(self) -> str:
        return drawing.fragment(self.to_dict())

    def __rich__(self) -> Group:
        return drawing.draw(self.to_dict())

    def __str__(self) -> str:
        return terminal.as_text(self)


def _side(value: float, reference: float) -> str:
    if value == reference:
        return "equal to"
    return "above" if value > reference else "below"


def sensitivity(
    dataset: LoggedDataset,
    policy: Policy | None,
    discount: float,
    gammas: Sequence[float | int] = GAMMAS,
    *,
    against: float | int | None = None,
    step: int | None = None,
    horizon: int | None = None,
    deviation: Deviation | None = None,
    level: float = 0.95,
    bootstrap: int = 100,
    seed: int = 0,
) -> Sensitivity:
    """Bounds on the value of `policy` if the logged actions also depended on something that was not recorded.

    - `gammas`: how far the odds of a logged action, given everything, may lie from the recorded ones: by a factor Γ.
      (For continuous actions: the density.) At 1 nothing was unrecorded.
    - `against`: the value that the policy is compared with; by default what the log shows of the behaviour policy.
    - `step`: for the form with a single affected step, which one; by default the worst.
    - `deviation`: `in_odds` or `in_probability` of `average_dice.inference.sensitivity`.
    - `bootstrap`: number of resamples of episodes for confidence ends; 0 for none.

    The log needs `behaviour_log_prob`. Resamples take it as given, also where it was estimated.

    >>> print(sensitivity(data, policy, 0.95))  # doctest: +SKIP
    """
    if not gammas or min(gammas) < 1 or not all(math.isfinite(gamma) for gamma in gammas):
        raise SettingError(
            f"each Γ must be a number of at least 1, not {', '.join(f'{one:g}' for one in gammas) or 'none'}."
        )
    if not 0 < level < 1:
        raise SettingError(f"the confidence level must lie between 0 and 1, not {level}.")
    if bootstrap < 0 or bootstrap == 1:
        raise SettingError("give at least two bootstrap resamples, or 0 for none.")
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    problem = question(dataset, policy, discount)
    try:
        _ = problem.log_ratio
    except NotApplicable as reason:
        raise NotApplicable(f"no sensitivity analysis: {reason}") from None
    deviation = deviation or (in_odds if dataset.is_discrete else in_probability)
    forms, notes = _forms(problem, deviation, step)
    found = np.unique(np.array(gammas, np.float64))
    against = None if against is None else float(against)
    name = "the behaviour policy" if against is None else f"{against:g}"
    here = [_Replicate.of(form, problem, Resample.everything(problem), found, against) for form in forms]
    directions = [one.at_one > one.reference for one in here]
    whole = [one.with_tipping(better) for one, better in zip(here, directions, strict=True)]
    resampled: list[list[_Replicate]] = [[] for _ in forms]
    number = bootstrap if problem.dataset.num_episodes > 1 else 0
    for count, chosen in enumerate(resampled_episodes(problem.dataset.num_episodes, number, seed), start=1):
        resample = Resample.of(problem, chosen)
        for form, kept, better in zip(forms, resampled, directions, strict=True):
            try:
                kept.append(_Replicate.of(form, problem, resample, found, against).with_tipping(better))
            except (NotApplicable, np.linalg.LinAlgError):
                continue
        report(count, number)
    for form, kept in zip(forms, resampled, strict=True):
        if len(kept) < (1 - MOST_FAILURES) * number:
            notes.append(f"{form.name}: no confidence ends, {number - len(kept)} of {number} resamples failed")
            kept.clear()
    return Sensitivity(
        discount=problem.discount,
        estimand=problem.estimand,
        horizon=horizon,
        value=whole[0].at_one,
        reference=whole[0].reference,
        reference_name=name,
        curves=tuple(
            _curve(form, found, one, kept, level, problem.dataset.num_episodes)
            for form, one, kept in zip(forms, whole, resampled, strict=True)
        ),
        level=level,
        resamples=number,
        seed=seed,
        episodes=dataset.num_episodes,
        transitions=dataset.num_transitions,
        sha256=dataset.sha256,
        notes=tuple(notes),
        possible=possible_range(problem),
    )


def _forms(problem: Problem, deviation: Deviation, step: int | None) -> tuple[list[Form], list[str]]:
    """The forms that apply to the log, the most cautious first; and notes about them."""
    one_step = problem.estimand is Estimand.ONE_STEP
    forms: list[Form] = [EveryStep(deviation, one_step)]
    if not one_step:
        forms.append(OneStep(deviation, step))
    elif step is not None:
        raise SettingError("the log has one step only. Leave out the step.")
    notes = []
    products = np.exp(over_mean_at_step(problem, problem.log_product + problem.log_ratio) - problem.log_uncensored)
    effective = effective_number(episode_weights(problem, products))
    if effective < FEWEST_EPISODES:
        notes.append(
            f"the effective number of episodes is {effective:.1f}, below {FEWEST_EPISODES}: too few for the value at "
            "Γ = 1, and for bounds by products"
        )
    if problem.misses_rewards:
        notes.append("forms by products count the rewards up to truncation, and so does the behaviour policy's value")
    try:
        table = Memoryless.of(deviation, problem)
    except NotApplicable:
        return forms, notes
    if table.unlogged > 0.005:
        left_out = f"{table.unlogged:.0%} of the policy's actions are not in the log in that state and are left out"
        notes.append(f"{table.name}: {left_out}")
    return [*forms, table], notes


@dataclass(frozen=True, eq=False)
class _Replicate:
    """The bounds of a form on one resample."""

    bounds: Bounds
    lower: np.ndarray
    upper: np.ndarray
    at_one: float
    reference: float
    points: int
    tipping: float = math.nan

    @staticmethod
    def of(form: Form, problem: Problem, resample: Resample, gammas: np.ndarray, against: float | None) -> "_Replicate":
        bounds = clipped(form.on(resample), *possible_range(problem))
        lower, upper = bounds(gammas, LOWER), bounds(gammas, UPPER)
        at_one = float(lower[0] if gammas[0] == 1 else bounds(np.ones(1), LOWER)[0])
        reference = _behaviour(form, resample) if against is None else against
        points = BISECTION if isinstance(form, Memoryless) else SECTIONS
        return _Replicate(bounds, lower, upper, at_one, reference, points)

    def with_tipping(self, better: bool) -> "_Replicate":
        """With the tipping Γ of this conclusion."""
        return replace(self, tipping=tipping_gamma(self.bounds, self.reference, better, self.points))


def _behaviour(form: Form, resample: Resample) -> float:
    """What the behaviour policy earned in these episodes: nothing is unknown about it.

    Rewards after truncation are ignored, as in the forms by products; a table has values for them, too.
    """
    if isinstance(form, Memoryless) and resample.problem.misses_rewards:
        return form.behaviour_value(resample)
    problem = resample.problem
    weight = np.exp(problem.log_discount - problem.log_uncensored)
    return float(problem.normaliser * (weight @ problem.dataset.reward) / problem.dataset.num_episodes)


def _curve(
    form: Form, gammas: np.ndarray, whole: _Replicate, replicates: list[_Replicate], level: float, episodes: int
) -> Curve:
    bounds = [Bound(float(g), float(a), float(b)) for g, a, b in zip(gammas, whole.lower, whole.upper, strict=True)]
    tipping = Tipping(_finite(whole.tipping))
    if replicates:
        lower, upper = (np.stack([getattr(one, end) for one in replicates]) for end in ("lower", "upper"))
        bounds = [
            replace(
                one,
                lower_end=min(percentile(lower[:, place], level, episodes)[0], one.lower),
                upper_end=max(percentile(upper[:, place], level, episodes)[1], one.upper),
            )
            for place, one in enumerate(bounds)
        ]
        capped = np.minimum([one.tipping for one in replicates], 2 * LARGEST_GAMMA)  # beyond: a number for percentiles
        ends = percentile(capped, level, episodes)
        low, high = (math.inf if end > LARGEST_GAMMA else end for end in ends)
        tipping = replace(tipping, lower=min(low, LARGEST_GAMMA), upper=_finite(high))
    return Curve(form.name, form.assumption, form.sharpness, whole.at_one, whole.reference, tuple(bounds), tipping)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
