"""Settings: other random features, other ridges and other seeds must give nearly the same value.

The method is refitted with another seed, with half as many features, and with ten times larger and smaller
ridges, where it has these settings. The number is the largest change over the half-width of the interval: an interval
that is narrower than a choice of settings says nothing about them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax

from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator
from average_dice.inference.refutation.base import Measured, Refuter
from average_dice.inference.refutation.case import Case, value_of

OTHER = 101  # a seed that no bootstrap resample has


def variants_of(method: Any) -> Iterator[tuple[str, Estimator]]:
    """The method with other settings, each with its description."""
    fields = getattr(method, "__dataclass_fields__", {})
    if "num_features" in fields and method.num_features > 3:
        yield "half of the features", replace(method, num_features=method.num_features // 2)
    for factor, what in ((10.0, "ten times larger"), (0.1, "ten times smaller")):
        if "ridge" in fields:
            yield f"a {what} ridge", replace(method, ridge=factor * method.ridge)
        if "ridges" in fields:
            yield f"{what} ridges", replace(method, ridges=tuple(factor * one for one in method.ridges))


def _measure(case: Case) -> Measured:
    other = value_of(case.method, case.problem, jax.random.fold_in(case.key, OTHER))
    changes = {"another seed": abs(other - case.value)}
    for what, method in variants_of(case.method):
        try:
            changes[what] = abs(value_of(method, case.problem, case.key) - case.value)
        except NotApplicable:
            continue
    worst = max(changes, key=lambda name: changes[name])
    number = changes[worst] / case.matters
    return Measured(
        number,
        f"other seeds and settings change the value by at most {changes[worst]:.2g}",
        f"{worst} changes the value by {changes[worst]:.4g}, {number:.1f} times the half-width of the interval",
    )


SETTINGS = Refuter(
    name="settings",
    asks="Is the value nearly the same with other seeds, features and ridges?",
    unit="half-widths of the interval",
    limit=1.0,
    why="A larger change is not covered by the interval; one of less than 1 % of the value does no harm",
    measure=_measure,
)
