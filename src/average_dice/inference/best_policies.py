"""Which of several policies may be the best: a ranking, from intervals of all differences that hold together.

A policy is excluded as the best if some other is better by its simultaneous interval. A policy whose value the log does
not support is never excluded and excludes no other: nothing follows from its value. It is left out of the simultaneous
intervals, too, so that a hopeless policy does not widen those of the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from average_dice.inference.bootstrap import Replicates
from average_dice.inference.difference import Difference
from average_dice.inference.simultaneous import Simultaneous, simultaneous
from average_dice.inference.uncertainty import MOST_FAILURES

BEST, CANDIDATE, EXCLUDED = "best", "may be the best", "excluded"
NO_CONCLUSION, NO_INTERVAL = "no conclusion", "no interval"


@dataclass(frozen=True, eq=False)
class Contender:
    """A policy: its value and those on bootstrap resamples (None without), and whether the log supports it."""

    value: float
    replicates: Replicates | None
    supported: bool = True

    @property
    def has_interval(self) -> bool:
        """Whether its method works on enough of the resamples."""
        if self.replicates is None:
            return False
        num_failed = int((~np.isfinite(self.replicates)).sum())
        return num_failed <= MOST_FAILURES * len(self.replicates) and len(self.replicates) - num_failed >= 2


@dataclass(frozen=True)
class Ranked:
    """A policy in the ranking.

    - `rank`: from 1; None for a value that the log does not support. `status`: best, may be the best, excluded, no
      conclusion or no interval.
    - `difference`: from the policy of rank 1, with its simultaneous interval; None for that policy itself.
    - `excluded_by`: the policies that are significantly better.
    """

    rank: int | None
    policy: str
    value: float
    status: str
    difference: Difference | None = None
    excluded_by: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class BestPolicies:
    """Several policies with the simultaneous intervals of their differences.

    `among`: the policies with such intervals, in the order of `found`, which is None if they are fewer than two.
    """

    contenders: Mapping[str, Contender]
    among: tuple[str, ...]
    found: Simultaneous | None
    level: float

    @staticmethod
    def of(contenders: Mapping[str, Contender], level: float, num_episodes: int) -> "BestPolicies":
        """All of them are evaluated on the same resamples."""
        among = tuple(name for name, one in contenders.items() if one.supported and one.has_interval)
        if len(among) < 2:
            return BestPolicies(contenders, among, None, level)
        values = np.array([contenders[name].value for name in among])
        replicates = np.column_stack([one for name in among if (one := contenders[name].replicates) is not None])
        return BestPolicies(contenders, among, simultaneous(values, replicates, level, num_episodes), level)

    @property
    def not_excluded(self) -> tuple[str, ...]:
        """The policies that cannot be excluded as the best, in the given order."""
        return tuple(name for name in self.contenders if not self.excluded_by(name))

    def excluded_by(self, name: str) -> tuple[str, ...]:
        """The policies that are significantly better than this one."""
        if self.found is None or name not in self.among:
            return ()
        better = self.found.lower[:, self.among.index(name)] > 0
        return tuple(other for other, is_better in zip(self.among, better, strict=True) if is_better)

    @property
    def differences(self) -> dict[tuple[str, str], Difference]:
        """Of all pairs: (one, other) → value of one minus the other, with its simultaneous interval."""
        return {(one, other): self.difference(one, other) for one, other in combinations(self.contenders, 2)}

    def difference(self, one: str, other: str) -> Difference:
        """The value of one minus that of the other; without an interval where one of them has none."""
        here, there = self.contenders[one], self.contenders[other]
        lower, upper = None, None
        if self.found is not None and one in self.among and other in self.among:
            place = self.among.index(one), self.among.index(other)
            lower, upper = float(self.found.lower[place]), float(self.found.upper[place])
        supported = here.supported and there.supported
        return Difference(here.value - there.value, lower, upper, self.level, there.value, supported)

    def ranking(self, shown: Mapping[str, float]) -> tuple[Ranked, ...]:
        """From the largest of the values that are `shown`; those that the log does not support come last."""
        order = sorted(self.contenders, key=lambda name: (not self.contenders[name].supported, -shown[name]))
        ranked = []
        for place, name in enumerate(order):
            supported = self.contenders[name].supported
            ranked.append(
                Ranked(
                    rank=place + 1 if supported else None,
                    policy=name,
                    value=shown[name],
                    status=self._status(name, order),
                    difference=None if place == 0 else self.difference(name, order[0]),
                    excluded_by=self.excluded_by(name),
                )
            )
        return tuple(ranked)

    def _status(self, name: str, order: Sequence[str]) -> str:
        if not self.contenders[name].supported:
            return NO_CONCLUSION
        if self.found is None or name not in self.among:
            return NO_INTERVAL
        if self.excluded_by(name):
            return EXCLUDED
        return BEST if self.not_excluded == (name,) and name == order[0] else CANDIDATE
