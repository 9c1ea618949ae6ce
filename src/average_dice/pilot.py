"""What a pilot log says about larger ones: the standard error, how it changes, and what earlier truncation costs."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from average_dice.answers import Run
from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator
from average_dice.inference.bootstrap import Replicates, left_out_episodes, replicate
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.difference import behaviour_value, difference
from average_dice.inference.rules import NOT_SUPPORTED
from average_dice.inference.sample_size import (
    Exponent,
    episodes_for,
    exponent,
    freedom_of_spread,
    half_width,
    spread_ends,
)
from average_dice.inference.simultaneous import ROUNDING
from average_dice.inference.uncertainty import MOST_FAILURES, IntervalSettings, bootstrap_values
from average_dice.inference.verdict import Verdict, judge
from average_dice.problem import Problem

PARTS = (4, 2)  # resamples of a quarter and of half of the episodes show whether the law of the square root holds
FEWEST = 10  # episodes of a part, and of a pilot log: a spread of fewer says nothing


@dataclass(frozen=True)
class Expected:
    """The expected half-width of the interval from this many episodes, with its range.

    `difference`: the same of the interval of the difference from the other policy; None without one.
    """

    episodes: int
    half_width: float
    lower: float
    upper: float
    difference: float | None = None


@dataclass(frozen=True)
class Needed:
    """How many episodes it takes, with a range; None: no number, or no upper end."""

    size: float
    episodes: int | None
    lower: int | None
    upper: int | None


@dataclass(frozen=True)
class Against:
    """The difference from the other policy on the pilot log, with its interval and standard error.

    `needed`: the episodes for which a true difference of this size is significant with probability `power`.
    """

    policy: str
    value: float
    lower: float | None
    upper: float | None
    standard_error: float
    supported: bool
    power: float
    needed: Needed


@dataclass(frozen=True)
class Truncation:
    """The pilot log, truncated after this many steps.

    - `transitions`: of its episodes. `after`: the share of the discount weight that lies after a truncation.
    - `half_width`: expected from as many episodes as the pilot log has.
    - `change`: the value minus that of the whole log, with its interval: what truncation costs in bias.
    - `verdict`: whether the truncated log would support the value.
    """

    steps: int
    transitions: int
    value: float
    half_width: float
    after: float
    change: float
    lower: float | None
    upper: float | None
    verdict: str


@dataclass(frozen=True, eq=False)
class Found:
    """The method on one problem: its value, on resamples too, and the verdict."""

    problem: Problem
    value: float
    replicates: Replicates
    standard_error: float
    verdict: Verdict

    @property
    def supported(self) -> bool:
        """Whether the log supports the value."""
        return self.verdict.level != NOT_SUPPORTED


@dataclass(frozen=True, eq=False)
class Pilot:
    """What is computed on the pilot log: the same method and resamples for every question."""

    method: Estimator
    settings: IntervalSettings
    num_episodes: int

    @property
    def key(self) -> jax.Array:
        """Of the random features."""
        return jax.random.key(self.settings.seed)

    def found(self, problem: Problem) -> Found:
        """Raises `NotApplicable` if the method gives no value, or none on most resamples."""
        run = Run.of(self.method, problem, self.settings, self.key)
        if run.fit is None or run.estimate.value is None:
            raise NotApplicable(f"no plan: {'; '.join(str(note) for note in run.estimate.notes)}")
        values = run.replicates
        if values is None:  # its interval needed no resamples
            values = bootstrap_values(
                self.method, problem, self.settings.bootstrap, self.settings.seed, key=self.key, prepared=run.prepared
            )
        diagnostics = diagnose(problem, key=self.key)
        verdict = judge(run.estimate, diagnostics, self.num_episodes, problem.estimand)
        return Found(problem, run.estimate.value, values, self.spread(values), verdict)

    def spread(self, values: Replicates) -> float:
        """The standard error, from values on resamples. Resamples of K episodes spread less than logs do."""
        known = values[np.isfinite(values)]
        if len(known) < (1 - MOST_FAILURES) * len(values):
            raise NotApplicable(f"no plan: the method fails on {len(values) - len(known)} bootstrap resamples")
        found = float(known.std(ddof=1)) * (self.num_episodes / (self.num_episodes - 1)) ** 0.5
        return 0.0 if found <= ROUNDING * float(np.abs(known).max()) else found

    def law(self, here: Found) -> Exponent | None:
        """How the standard error changes with the number of episodes; None for a log too small to take parts of."""
        sizes, errors, numbers = [self.num_episodes], [here.standard_error], [len(here.replicates)]
        number = max(FEWEST, self.settings.bootstrap // 2)
        for part in PARTS:
            size = self.num_episodes // part
            if size < FEWEST:
                return None
            generator = np.random.default_rng((self.settings.seed, 8, size))
            chosen = list(generator.integers(0, self.num_episodes, (number, size)))
            try:
                errors.append(self.spread(replicate(self.method, here.problem, chosen, key=self.key)))
            except NotApplicable:
                return None
            sizes.append(size)
            numbers.append(number)
        return None if min(errors) == 0 else exponent(sizes, errors, numbers, self.settings.level)

    def freedom(self, here: Found) -> float:
        """Degrees of freedom behind the standard error."""
        others = left_out_episodes(self.num_episodes)
        left_out = replicate(self.method, here.problem, others, key=self.key, feature_draws=1)
        return freedom_of_spread(len(here.replicates), self.num_episodes, left_out[np.isfinite(left_out)])

    def against(self, here: Found, rival: Found | None, name: str, power: float) -> Against:
        """The difference from the rival; from the behaviour policy if None."""
        if rival is None:
            value, values = behaviour_value(
                self.method, here.problem, len(here.replicates), self.settings.seed, key=self.key
            )
        else:
            value, values = rival.value, rival.replicates
        level = self.settings.level
        gap = difference(here.value, value, here.replicates, values, level, self.num_episodes)
        error = self.spread(here.replicates - values)
        size = partial(episodes_for, standard_error=error, pilot=self.num_episodes, level=level, power=power)
        ends = sorted((abs(gap.lower), abs(gap.upper))) if gap.lower is not None and gap.upper is not None else None
        same = gap.lower is None or gap.upper is None or gap.lower <= 0 <= gap.upper
        return Against(
            policy=name,
            value=gap.value,
            lower=gap.lower,
            upper=gap.upper,
            standard_error=error,
            supported=here.supported and (rival is None or rival.supported),
            power=power,
            needed=Needed(
                size=abs(gap.value),
                episodes=size(abs(gap.value)),
                lower=None if ends is None else size(ends[1]),
                upper=None if ends is None or same else size(ends[0]),
            ),
        )

    def truncated(self, here: Found, problem: Problem, steps: int) -> Truncation:
        """The same method on the log of the first steps."""
        data, short, level = problem.dataset, self.found(problem), self.settings.level
        change = difference(short.value, here.value, short.replicates, here.replicates, level, self.num_episodes)
        ends_there = int((~data.terminated[data.starts + data.lengths - 1]).sum())
        return Truncation(
            steps=steps,
            transitions=data.num_transitions,
            value=short.value,
            half_width=half_width(short.standard_error, self.num_episodes, self.num_episodes, level),
            after=float(problem.discount**steps * ends_there / self.num_episodes),
            change=change.value,
            lower=change.lower,
            upper=change.upper,
            verdict=short.verdict.level,
        )


@dataclass(frozen=True, eq=False)
class Expects:
    """Half-widths and numbers of episodes, with ranges, from the standard error of the pilot log."""

    standard_error: float
    freedom: float
    law: Exponent | None
    pilot: int
    level: float
    other: Against | None

    def _ends(self, number: int) -> tuple[float, float]:
        """Of the standard error that N episodes would have, times √(N/K).

        The range is that of the χ² distribution. Where the law of the square root does not hold, it also contains what
        the exponent that was found predicts.
        """
        low, high = spread_ends(self.standard_error, self.freedom, self.level)
        if self.law is not None and not self.law.is_square_root:
            by_power = self.standard_error * (number / self.pilot) ** (0.5 - self.law.value)
            low, high = min(low, by_power), max(high, by_power)
        return low, high

    def at(self, number: int) -> Expected:
        """The expected half-width of the interval from this many episodes."""
        lower, upper = (half_width(one, self.pilot, number, self.level) for one in self._ends(number))
        other = self.other
        gap = None if other is None else half_width(other.standard_error, self.pilot, number, self.level)
        return Expected(number, half_width(self.standard_error, self.pilot, number, self.level), lower, upper, gap)

    def needed(self, width: float) -> Needed:
        """The episodes for this half-width."""
        find_number = partial(episodes_for, width, pilot=self.pilot, level=self.level)
        number = find_number(self.standard_error)
        low, high = self._ends(number or self.pilot)
        return Needed(float(width), number, find_number(low), find_number(high))
