"""Is the estimate itself plausible: after truncation, on held-out episodes, and by two different methods?"""

import math
import operator
from collections.abc import Callable

from average_dice.inference.rules.base import (
    PERCENT,
    SIGNIFICANT,
    Evidence,
    Limit,
    Limits,
    Rule,
    above,
    at_least,
)
from average_dice.inference.rules.coverage import if_few_follow
from average_dice.inference.rules.remedies import LONGER_EPISODES, MORE_EPISODES

LEAST_WIDTH = 1e-5  # of an interval, over the range of rewards: above what shrinkage leaves on hole-at-step-3 (9e-6)
LEAST_GAP = 0.02  # of the larger of two values: a smaller gap would not change a decision
MOST_WIDTHS = 3  # of the interval: a gap this wide is no sampling error, whatever the noise of the importance weights
LARGEST_SHOWN = 1e3  # standard deviations: further digits mean nothing


def _width(evidence: Evidence) -> float | None:
    """The width of the interval."""
    found = evidence.estimate
    return None if found is None or found.lower is None or found.upper is None else found.upper - found.lower


def _width_above_least(evidence: Evidence) -> float | None:
    """If all rewards are equal, an interval without width is right, unless they are all 0."""
    estimate, width, reward_range = evidence.estimate, _width(evidence), evidence.diagnostics.reward_range
    if estimate is None or width is None:
        return None
    if reward_range == 0:
        return math.inf if estimate.value else 0.0
    return width - LEAST_WIDTH * reward_range


def _says_width(evidence: Evidence) -> str:
    if evidence.diagnostics.reward_range == 0:
        return "every reward in the log is 0"
    return "every bootstrap resample gives the same value, at a bound of the logged rewards"


INTERVAL_WIDTH = Rule(
    name="interval-width",
    reads=("reward_range",),
    description="width of the interval",
    explanation="An interval without any width means that the data say nothing about the uncertainty.",
    definition="The largest logged reward minus the smallest. The width of the interval is compared with it",
    measure=_width_above_least,
    shows=lambda evidence: f"{_width(evidence):.4g}",
    limits=Limits(
        why="A bootstrap that gives one value has not seen what would change it; the value may still be right",
        weak=Limit(0.0, operator.le, "0, or every reward is 0", "above 0, unless all rewards are the same"),
    ),
    says=_says_width,
    remedy=MORE_EPISODES,
)

AFTER_TRUNCATION = Rule(
    name="after-truncation",
    reads=("beyond_truncation",),
    description="discounted weight after truncation",
    explanation="How much of the value lies after the end of the recording, where it must be extrapolated.",
    definition=(
        "Share of the discounted weight that passes a truncation and is not observed. A truncation after which ten "
        "other episodes continue does not count"
    ),
    shows="{beyond_truncation:.1%}",
    limits=Limits(
        why="That share of the value is extrapolated: 5% is set by judgement, 30% on the first logs of five tasks",
        weak=at_least(0.05, PERCENT),
        not_supported=above(0.3, PERCENT),
    ),
    says="{beyond_truncation:.0%} of the discounted weight lies after truncation, where the log has hardly any data",
    remedy=LONGER_EPISODES,
)

MASS_FOUND = Rule(
    name="mass-found",
    reads=("mass_found",),
    description="mass of the learnt density ratio",
    explanation="A learnt weighting of the log should add up to 1.",
    definition="Sum of the learnt ratio before it is normalised",
    shows="{mass_found:.3f}",
    expected="close to 1",
)


def _flow_residual(evidence: Evidence) -> float | None:
    residual = evidence.diagnostics.flow_residual
    return None if residual is None else min(residual, LARGEST_SHOWN)


FLOW_RESIDUAL = Rule(
    name="flow-residual",
    reads=("flow_residual",),
    description="flow residual on held-out episodes",
    explanation="Whether the learnt weights hold on episodes that they were not learnt from.",
    definition=(
        "Distance of the learnt ratio from the flow equation, on episodes that it was not learnt from, in standard "
        "deviations of a state feature"
    ),
    measure=_flow_residual,
    shows=lambda evidence: f"{_flow_residual(evidence):.3g}",
    limits=Limits(
        why="At 1 the start states would have to lie a standard deviation away for the ratio to be right",
        weak=at_least(1.0),
    ),
    says=lambda evidence: (
        "on held-out episodes the learnt density ratio violates the flow equation by "
        f"{_flow_residual(evidence):.2g} standard deviations of a state feature{if_few_follow(evidence)}"
    ),
    remedy=lambda evidence: LONGER_EPISODES if evidence.diagnostics.beyond_truncation else MORE_EPISODES,
)


def _parts(evidence: Evidence) -> tuple[float, float] | None:
    """The value by learnt values alone, and by cumulative importance weights alone."""
    found = {} if evidence.estimate is None else evidence.estimate.diagnostics
    values, weights = found.get("by_values"), found.get("by_products")
    return None if values is None or weights is None else (values, weights)


def _gap_beyond_chance(evidence: Evidence) -> float | None:
    """The gap between the two parts, minus what size and chance explain.

    Chance is that of the importance weights: where they are noisy, learnt values may be wrong by as much, and their
    narrow interval would not show it.
    """
    estimate, parts, width = evidence.estimate, _parts(evidence), _width(evidence)
    if estimate is None or parts is None or width is None:
        return None
    values, weights = parts
    noise = estimate.diagnostics.get("reference_error", 0.0)
    by_size = LEAST_GAP * max(abs(values), abs(weights))
    by_chance = min(MOST_WIDTHS * width, max(width, SIGNIFICANT * noise))
    return abs(values - weights) - max(by_size, by_chance)


def _in_parts(template: str) -> Callable[[Evidence], str]:
    return lambda evidence: template.format(*(_parts(evidence) or (math.nan, math.nan)))


AGREEMENT = Rule(
    name="agreement",
    reads=("by_values", "by_products", "reference_error"),
    description="value by learnt values, and by importance weights",
    explanation="Two different ways to the estimate should give nearly the same number.",
    definition=(
        "Means of the candidates of the recommended estimate that use learnt values, and of those that use cumulative "
        "importance weights; `reference_error`: standard error of the latter"
    ),
    measure=_gap_beyond_chance,
    shows=_in_parts("{:.4g} and {:.4g}"),
    limits=Limits(
        why=(
            "2% was set on the first logs of five tasks, 5 standard errors on misleading logs and on "
            "MountainCarContinuous, where 2 were a false alarm"
        ),
        weak=Limit(
            0.0,
            operator.gt,
            f"gap above {LEAST_GAP:.0%}, and above {MOST_WIDTHS} widths of the interval or above both one width and "
            f"{SIGNIFICANT:g} standard errors",
            f"a gap below {LEAST_GAP:.0%}, or explained by chance",
        ),
    ),
    says=_in_parts("learnt values give {:.4g}, importance weights {:.4g}: the gap is larger than chance explains"),
    remedy=MORE_EPISODES,
)
