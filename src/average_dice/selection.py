"""select: chooses one of several estimates, from the data alone, and gives the reasons.

Methods trade bias for variance, and a log shows the variance: refits without a tenth of the episodes at a time (the
grouped jackknife) give the standard error of each method. The method with the widest interval is assumed to have the
least bias. From the widest to the narrowest, a method whose interval does not overlap that of a wider one is rejected
as biased, and the last that remains is chosen (after SLOPE, which stops at the first that does not overlap: Su, Srinath
& Krishnamurthy, 2020). The rule cannot detect a bias that all of them share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import REGISTRY, Estimator, find
from average_dice.notes import NoteCode
from average_dice.problem import Problem
from average_dice.randomness import key_or_seed_0

NUM_GROUPS = 10  # ten refits give the standard error with a relative error of about a quarter


@dataclass(frozen=True)
class Selection:
    """The chosen method with its value and standard error, and the reason for or against each method."""

    chosen: str
    value: float
    standard_error: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.chosen}: {self.value:.4g} ± {self.standard_error:.2g} (standard error)"
        return "\n".join([head, *(f"  {reason}" for reason in self.reasons)])


def select(
    problem: Problem,
    estimators: Mapping[str, Estimator] | str | Sequence[str],
    *,
    key: jax.Array | None = None,
    overlap: float = 2.0,
) -> Selection:
    """Chooses among estimators, by name as in `evaluate` or as a mapping of your own names to them.

    `overlap`: half-width of the intervals, in standard errors. Without a `key`, that of seed 0.
    """
    key = key_or_seed_0(key)
    if isinstance(estimators, Mapping):
        methods = dict(estimators)
    else:
        methods = {name: REGISTRY[name].make() for name in find(estimators)}
    num_groups = min(NUM_GROUPS, problem.dataset.num_episodes)
    if num_groups < 2:
        raise SettingError(
            "choosing among estimators takes at least two episodes. Log more, or check the column of episodes if there "
            "are several."
        )
    group = np.random.default_rng(0).permutation(problem.dataset.num_episodes) % num_groups
    without = [problem.select_episodes(np.flatnonzero(group != one)) for one in range(num_groups)]
    found: dict[str, tuple[float, float]] = {}
    reasons = []
    for name, method in methods.items():
        try:
            fit = method.fit(problem, key=key)
        except NotApplicable as reason:
            reasons.append(f"{name}: not applicable: {reason}")
            continue
        value = float(fit.value)
        if off_scale := [str(note) for note in fit.notes if note.code is NoteCode.OTHER_SCALE]:
            reasons.append(f"{name}: {value:.4g}, left out: {off_scale[0]}")
            continue
        try:
            others = np.array([method.fit(part, key=key).value for part in without])
        except NotApplicable as reason:
            reasons.append(f"{name}: {value:.4g}, but not applicable without some of the episodes: {reason}")
            continue
        spread = float(np.sqrt((num_groups - 1) * np.mean((others - others.mean()) ** 2)))
        if np.isfinite(value + spread):
            found[name] = (value, spread)
        else:
            reasons.append(f"{name}: no finite value")
    if not found:
        raise NotApplicable("none of the estimators gives a value: " + "; ".join(reasons))

    left: list[str] = []
    for name in sorted(found, key=lambda name: -found[name][1]):
        apart = [wider for wider in left if not _overlap(found[name], found[wider], overlap)]
        if apart:
            reasons.append(f"{name}: {_shown(found[name])}, does not overlap {', '.join(apart)}: biased")
            continue
        why = "overlaps all wider ones" if left else "the widest interval: presumed to have the least bias"
        reasons.append(f"{name}: {_shown(found[name])}, {why}")
        left.append(name)
    return Selection(left[-1], *found[left[-1]], tuple(reasons))


def _overlap(one: tuple[float, float], other: tuple[float, float], overlap: float) -> bool:
    return abs(one[0] - other[0]) <= overlap * (one[1] + other[1])


def _shown(found: tuple[float, float]) -> str:
    return f"{found[0]:.4g} ± {found[1]:.2g}"
