"""select: which of several estimates to believe, from the data alone, with its reasons.

Methods trade bias for variance, and a log shows the variance: refitted without a tenth of its episodes at a time (the
jackknife by groups), each method moves by as much as it is uncertain. The one with the widest interval is taken to have
the least bias. Going from the widest to the narrowest, the last one whose interval still overlaps all wider ones is
chosen (SLOPE: Su, Srinath & Krishnamurthy, 2020). Where all of them are wrong in the same way, no such rule can know.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from .errors import NotApplicable, SettingError
from .estimators import REGISTRY, Estimator
from .problem import Problem

NUM_GROUPS = 10


@dataclass(frozen=True)
class Selection:
    """The chosen method with its value and standard error, and a line about each of the others."""

    chosen: str
    value: float
    standard_error: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.chosen}: {self.value:.4g} ± {self.standard_error:.2g} (standard error)"
        return "\n".join([head, *(f"  {reason}" for reason in self.reasons)])


def select(
    problem: Problem,
    estimators: Mapping[str, Estimator] | tuple[str, ...] | list[str],
    *,
    key: jax.Array,
    overlap: float = 2.0,
) -> Selection:
    """Chooses among estimators, by name or as a mapping of your own names to them.

    `overlap`: intervals are so many standard errors to each side.
    """
    methods = dict(estimators) if isinstance(estimators, Mapping) else _by_name(estimators)
    num_groups = min(NUM_GROUPS, problem.dataset.num_episodes)
    if num_groups < 2:
        raise SettingError("to choose among estimators takes at least two episodes.")
    group = np.random.default_rng(0).permutation(problem.dataset.num_episodes) % num_groups
    without = [
        Problem(problem.dataset.select_episodes(np.flatnonzero(group != one)), problem.policy, problem.discount)
        for one in range(num_groups)
    ]
    found: dict[str, tuple[float, float]] = {}
    reasons = []
    for name, method in methods.items():
        try:
            value = float(method.fit(problem, key=key).value)
            others = np.array([method.fit(part, key=key).value for part in without])
            spread = float(np.sqrt((num_groups - 1) * np.mean((others - others.mean()) ** 2)))
            found[name] = (value, spread)
        except NotApplicable as reason:
            reasons.append(f"{name}: not applicable, because {reason}")
    if not found:
        raise NotApplicable("none of the estimators is applicable")

    widest_first = sorted(found, key=lambda name: -found[name][1])
    chosen = widest_first[0]
    reasons.append(f"{chosen}: {_shown(found[chosen])}, the widest interval: the least bias is presumed")
    for index, name in enumerate(widest_first[1:], start=1):
        apart = [wider for wider in widest_first[:index] if not _overlap(found[name], found[wider], overlap)]
        if apart:
            reasons.append(f"{name}: {_shown(found[name])}, apart from {', '.join(apart)}: biased, and so all narrower")
            reasons += [f"{rest}: {_shown(found[rest])}, not considered" for rest in widest_first[index + 1 :]]
            break
        chosen = name
        reasons.append(f"{name}: {_shown(found[name])}, overlaps all wider ones")
    return Selection(chosen, *found[chosen], tuple(reasons))


def _by_name(names: tuple[str, ...] | list[str]) -> dict[str, Estimator]:
    if unknown := [name for name in names if name not in REGISTRY]:
        raise SettingError(f"unknown estimator {', '.join(map(repr, unknown))}. Known are {', '.join(REGISTRY)}.")
    return {name: REGISTRY[name].make() for name in names}


def _overlap(one: tuple[float, float], other: tuple[float, float], overlap: float) -> bool:
    return abs(one[0] - other[0]) <= overlap * (one[1] + other[1])


def _shown(found: tuple[float, float]) -> str:
    return f"{found[0]:.4g} ± {found[1]:.2g}"
