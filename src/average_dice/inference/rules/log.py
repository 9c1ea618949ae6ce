"""Does the log meet the assumptions: independent, identically distributed episodes, and plausible rewards?"""

from average_dice.inference.rules.base import (
    PERCENT,
    SIGNIFICANT,
    STANDARD_ERRORS,
    Limits,
    Rule,
    above,
    at_least,
)

INFORMATIVE_TRUNCATION = Rule(
    name="informative-truncation",
    reads=("truncation",),
    description="truncation that depends on observations or rewards",
    explanation="Recording should stop for reasons that have nothing to do with how the episode goes.",
    definition="Largest distance, over all columns, of truncated rows from the other rows of their step",
    shows="{truncation:.1f} standard errors",
    limits=Limits(
        why="A dependence is no estimate of the bias, so it is never worse than weak",
        weak=at_least(SIGNIFICANT, STANDARD_ERRORS),
    ),
    says="truncation depends on what happens in the episode: truncated rows differ from others of the same step",
    remedy="record why episodes end; an episode that failed or finished is terminated, not truncated",
)

TREND = Rule(
    name="trend",
    reads=("trend",),
    description="change over the log of what episodes earn",
    explanation="If what is earned changes over time, the log may not describe the present.",
    definition="Rank correlation of what an episode earns with its place in the log",
    shows="{trend:.1f} standard errors",
    limits=Limits(
        why="The estimate is then an average over conditions; whether that is wrong depends on its use",
        weak=at_least(SIGNIFICANT, STANDARD_ERRORS),
    ),
    says="what episodes earn changes over the log: its first episodes were logged under other conditions than its last",
    remedy="evaluate on the part of the log that resembles the present",
)

NEIGHBOURS = Rule(
    name="similar-neighbours",
    reads=("neighbours",),
    description="similarity of consecutive episodes",
    explanation="Episodes should be independent of each other, or the interval is too narrow.",
    definition="Rank correlation of what an episode earns with what the next one earns",
    shows="{neighbours:.1f} standard errors",
    limits=Limits(
        why="Dependence makes intervals too narrow and leaves the value unbiased",
        weak=at_least(SIGNIFICANT, STANDARD_ERRORS),
    ),
    says="consecutive episodes earn similar amounts: they are not independent, and intervals are too narrow",
    remedy="give all rows of one person or machine one episode number, or log more persons or machines",
)

LARGEST_REWARD = Rule(
    name="largest-reward",
    reads=("largest_reward_share",),
    description="share of one row in the variance of rewards",
    explanation="One extreme reward should not decide the estimate: it may be a recording error.",
    definition="Share of the row furthest from the mean reward in the variance of rewards",
    shows="{largest_reward_share:.1%}",
    limits=Limits(
        why="Set by judgement: such a row is a recording error or a rare event, and the bootstrap can judge neither",
        weak=at_least(0.2, PERCENT),
    ),
    says="a single row accounts for {largest_reward_share:.0%} of the variance of rewards",
    remedy="check that reward; if it is right, log more episodes like it",
)

REPEATED_EPISODES = Rule(
    name="repeated-episodes",
    reads=("repeated_episodes",),
    description="episodes that are copies of others",
    explanation="A copy of an episode adds no information, but makes the interval narrower.",
    definition=(
        "Share of episodes that are the same as an earlier one, and too unlikely to be so by chance. Where states "
        "recur in other episodes, only those count that μ would hardly repeat"
    ),
    shows="{repeated_episodes:.1%}",
    limits=Limits(
        why="Intervals count copies as independent: 1% narrows them by less than 1%",
        weak=above(0.01, PERCENT),
    ),
    says="{repeated_episodes:.0%} of the episodes are copies of others: intervals are too narrow",
    remedy="remove the copies",
)
