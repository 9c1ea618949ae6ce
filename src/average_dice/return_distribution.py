"""distribution: how the return of an episode under π varies: its distribution function, quantiles and tails."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group

from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, SettingError
from average_dice.files import write_text_whole
from average_dice.inference.distribution import (
    ROUNDING,
    WeightedReturns,
    discounted_returns,
    ends_of_certainty,
    episode_products,
    missing_part,
)
from average_dice.inference.episode_weights import effective_number
from average_dice.inference.intervals import percentile
from average_dice.inference.pareto import pareto_k
from average_dice.inference.rules import NOT_SUPPORTED, WEAK
from average_dice.inference.verdict import LEVELS, SUPPORTED, Verdict
from average_dice.policies import Policy
from average_dice.problem import Problem
from average_dice.progress import report
from average_dice.report import distribution as drawing
from average_dice.report import terminal

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RESAMPLES = 1000  # by default: each takes milliseconds
MOST_POINTS = 200  # of the distribution function in the result: more cannot be seen in a chart
MOST_FAILURES = 0.1  # of the resamples: with more failures, the others are no longer a fair sample
FEWEST_EPISODES = 10  # effective ones, for any statement about a distribution
FEWEST_IN_TAIL = 10  # effective ones beyond a quantile, or in a tail: with fewer, intervals miss the truth too often
HEAVY = 0.7  # Pareto k̂: beyond it estimates with these weights are not reliable
SMALL_PART = 0.1  # of the range of the central 90 %: what truncated episodes may miss without a warning


@dataclass(frozen=True)
class Statistic:
    """A number of the distribution with its interval, and the same number of the behaviour policy.

    The interval is None without bootstrap resamples, and where too few effective episodes lie in the tail.
    `kind`: mean, quantile, cvar or below; `at`: the share of a quantile or a tail, or the threshold.
    """

    kind: str
    at: float | None
    value: float
    lower: float | None
    upper: float | None
    behaviour: float

    @property
    def name(self) -> str:
        """In words, for tables."""
        return drawing.name_of(asdict(self))


@dataclass(frozen=True)
class DistributionFunction:
    """F at some returns, with a simultaneous band: with the confidence level, all of F lies within it."""

    returns: tuple[float, ...]
    probability: tuple[float, ...]
    lower: tuple[float, ...] | None
    upper: tuple[float, ...] | None
    behaviour: tuple[float, ...]


@dataclass(frozen=True)
class ReturnDistribution:
    """The result of `distribution`.

    - `statistics`: the mean, quantiles, the CVaR and the probabilities of falling below thresholds.
    - `effective_episodes`: of the weights; `missing`: how much truncated episodes could still change a return.
    - `verdict`: whether the log supports statements about the distribution; not that on the value.
    """

    discount: float
    horizon: int | None
    costs: bool
    statistics: tuple[Statistic, ...]
    function: DistributionFunction
    effective_episodes: float
    episodes: int
    missing: tuple[float, float]
    verdict: Verdict
    level: float
    resamples: int
    seed: int
    sha256: str
    notes: tuple[str, ...] = ()

    def find(self, kind: str, at: float | int | None = None) -> Statistic:
        """The statistic of this kind, at this share or threshold: `find("quantile", 0.5)`."""
        for one in self.statistics:
            if one.kind == kind and (at is None or one.at == at):
                return one
        raise SettingError(f"there is no {kind}{'' if at is None else f' at {at:g}'} here. Ask `distribution` for it.")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        write_text_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def _repr_html_(self) -> str:
        return drawing.fragment(self.to_dict())

    def __rich__(self) -> Group:
        return drawing.draw(self.to_dict())

    def __str__(self) -> str:
        return terminal.as_text(self)


def distribution(
    dataset: LoggedDataset,
    policy: Policy | None,
    discount: float,
    *,
    thresholds: Sequence[float | int] = (),
    quantiles: Sequence[float] = QUANTILES,
    cvar: float = 0.05,
    costs: bool = False,
    horizon: int | None = None,
    level: float = 0.95,
    bootstrap: int = RESAMPLES,
    seed: int = 0,
) -> ReturnDistribution:
    """The distribution of the return Σ γᵗ r of an episode under `policy`, from the log alone.

    - `thresholds`: the probability of a return below each. `quantiles`: shares between 0 and 1.
    - `cvar`: the mean of the lowest 5 % of returns, for example; with `costs`, of the highest.
    - `bootstrap`: number of resamples of episodes for intervals and the band; 0 for none.

    Truncated episodes count with the return up to truncation, and `missing` says how much that could change it. A
    `horizon` at or before the first truncation avoids this.

    >>> print(distribution(data, policy, 1.0, thresholds=[0]))  # doctest: +SKIP
    """
    _check(quantiles, cvar, level, bootstrap)
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    problem = question(dataset, policy, discount)
    try:
        products = episode_products(problem)
    except NotApplicable as reason:
        raise NotApplicable(f"no distribution of the return: {reason}") from None
    returns = discounted_returns(problem)
    order = np.argsort(returns, kind="stable")
    returns, products = returns[order], products[order]
    whole = WeightedReturns.of(returns, products)
    own = WeightedReturns.of(returns, np.ones_like(returns))
    asked = _asked(quantiles, cvar, costs, [float(one) for one in thresholds])
    points = np.flatnonzero(np.append(np.diff(returns) > 0, True))  # the last of equal returns
    number = bootstrap if len(returns) > 1 else 0
    found, distances = _replicates(whole, products, asked, points, number, seed)
    notes = []
    if len(found) < max((1 - MOST_FAILURES) * number, 2):
        if number:
            notes.append(f"no intervals: {number - len(found)} of {number} bootstrap resamples have no weight")
        found, distances = found[:0], distances[:0]
    effective = effective_number(products)
    missing = missing_part(problem)
    statistics = tuple(
        _statistic(kind, at, of, whole, own, found[:, place], level, effective)
        for place, (kind, at, of) in enumerate(asked)
    )
    return ReturnDistribution(
        discount=problem.discount,
        horizon=horizon,
        costs=costs,
        statistics=statistics,
        function=_function(whole, own, points, distances, level),
        effective_episodes=effective,
        episodes=len(returns),
        missing=missing,
        verdict=_judged(whole, statistics, effective, missing, pareto_k(products)),
        level=level,
        resamples=number,
        seed=seed,
        sha256=dataset.sha256,
        notes=tuple(notes),
    )


def _check(quantiles: Sequence[float], cvar: float, level: float, bootstrap: int) -> None:
    if not all(0 < share < 1 for share in quantiles):
        raise SettingError(f"quantiles must lie between 0 and 1, not {list(quantiles)}.")
    if not 0 < cvar < 1:
        raise SettingError(f"the share of the tail, cvar, must lie between 0 and 1, not {cvar}.")
    if not 0 < level < 1:
        raise SettingError(f"the confidence level must lie between 0 and 1, not {level}.")
    if bootstrap < 0 or bootstrap == 1:
        raise SettingError("give at least two bootstrap resamples, or 0 for none.")


Asked = tuple[str, float | None, Callable[[WeightedReturns], float]]


def _asked(quantiles: Sequence[float], cvar: float, costs: bool, thresholds: Sequence[float]) -> list[Asked]:
    """What is computed, on the log and on every resample."""
    return [
        ("mean", None, lambda one: one.mean),
        *(("quantile", float(share), partial(WeightedReturns.quantile, share=share)) for share in sorted(quantiles)),
        ("cvar", cvar, partial(WeightedReturns.tail_mean, share=cvar, upper=costs)),
        *(("below", at, partial(WeightedReturns.below, threshold=at)) for at in sorted(thresholds)),
    ]


def _replicates(
    whole: WeightedReturns, products: np.ndarray, asked: Sequence[Asked], points: np.ndarray, number: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each number on each resample, and the largest distance of the resample's F from that of the log."""
    generator, size = np.random.default_rng((seed, 8)), len(products)
    cumulative = whole.cumulative[points]
    found, distances = [], []
    for count in range(number):
        counts = np.bincount(generator.integers(0, size, size), minlength=size)
        report(count + 1, number)
        if not (weights := counts * products).any():
            continue
        resampled = WeightedReturns.of(whole.returns, weights)
        found.append([of(resampled) for _, _, of in asked])
        distances.append(np.abs(resampled.cumulative[points] - cumulative).max())
    return np.array(found).reshape(len(found), len(asked)), np.array(distances)


def _statistic(
    kind: str,
    at: float | None,
    of: Callable[[WeightedReturns], float],
    whole: WeightedReturns,
    own: WeightedReturns,
    replicates: np.ndarray,
    level: float,
    effective: float,
) -> Statistic:
    value = of(whole)
    lower = upper = None
    if len(replicates):
        if effective * _tail(kind, at) >= FEWEST_IN_TAIL:
            lower, upper = percentile(replicates, level, len(whole.returns))
        if kind == "below" and not ROUNDING < value < 1 - ROUNDING:
            lower, upper = ends_of_certainty(value, effective, level)
    return Statistic(kind, at, value, lower, upper, of(own))


def _function(
    whole: WeightedReturns, own: WeightedReturns, points: np.ndarray, distances: np.ndarray, level: float
) -> DistributionFunction:
    """F at the different returns, or at some of them if there are many."""
    reach = float(np.quantile(distances, level, method="weibull")) if len(distances) else None
    if len(points) > MOST_POINTS:
        points = points[np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int)]
    probability = np.minimum(whole.cumulative[points], 1.0)
    band = None if reach is None else (np.maximum(probability - reach, 0), np.minimum(probability + reach, 1))
    return DistributionFunction(
        returns=tuple(map(float, whole.returns[points])),
        probability=tuple(map(float, probability)),
        lower=None if band is None else tuple(map(float, band[0])),
        upper=None if band is None else tuple(map(float, band[1])),
        behaviour=tuple(map(float, np.minimum(own.cumulative[points], 1.0))),
    )


def _judged(
    whole: WeightedReturns,
    statistics: Sequence[Statistic],
    effective: float,
    missing: tuple[float, float],
    heavy: float,
) -> Verdict:
    """Whether the weights and the ends of the episodes allow statements about the distribution."""
    findings: list[tuple[str, str, str, str]] = []  # level, rule, reason, remedy
    more = "more episodes, or a policy closer to the behaviour policy"
    if effective < FEWEST_EPISODES:
        reason = f"the effective number of episodes is {effective:.1f}, below {FEWEST_EPISODES}"
        findings.append((NOT_SUPPORTED, "effective-episodes", reason, more))
    elif thin := [one for one in statistics if effective * _tail(one.kind, one.at) < FEWEST_IN_TAIL]:
        names = ", ".join(one.name for one in thin)
        fewest = effective * min(_tail(one.kind, one.at) for one in thin)
        reason = f"few effective episodes in the tail ({fewest:.1f}, below {FEWEST_IN_TAIL}), so no interval: {names}"
        findings.append((WEAK, "tail-episodes", reason, more))
    if heavy > HEAVY:
        findings.append((WEAK, "heavy-weights", f"Pareto k̂ of the weights is {heavy:.2f}, above {HEAVY:g}", more))
    if missing != (0.0, 0.0):
        spread = whole.quantile(0.95) - whole.quantile(0.05)
        part = missing[1] - missing[0]
        if part > SMALL_PART * spread:
            reason = (
                f"returns are those up to truncation; the rest could change one by {missing[0]:.3g} to {missing[1]:.3g}"
            )
            level = NOT_SUPPORTED if part > spread else WEAK
            findings.append((level, "truncation", reason, "a horizon at or before the first truncation"))
    if not findings:
        return Verdict(SUPPORTED, (f"effective number of episodes {effective:.0f}",))
    findings.sort(key=lambda finding: -LEVELS.index(finding[0]))
    return Verdict(
        findings[0][0],
        tuple(reason for _, _, reason, _ in findings),
        tuple(dict.fromkeys(remedy for _, _, _, remedy in findings)),
        tuple(rule for _, rule, _, _ in findings),
    )


def _tail(kind: str, at: float | None) -> float:
    """The share of returns that decide the number: beyond a quantile, or in the tail. Others have all of them."""
    if kind == "quantile" and at is not None:
        return min(at, 1 - at)
    return at if kind == "cvar" and at is not None else 1.0
