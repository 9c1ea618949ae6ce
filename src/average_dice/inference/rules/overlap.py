"""Does the log have enough data on the policy's actions?

The weight of an episode is g = (1 − γ) Σ γᵗ W_t / c_t, with W the cumulative importance weights over their mean at
that step and c the uncensored share of episodes (see `diagnostics`).
"""

from average_dice.inference.rules.base import PERCENT, Evidence, Limits, Rule, above, below
from average_dice.inference.rules.coverage import follows, if_few_follow
from average_dice.inference.rules.remedies import CLOSER_POLICY, MORE_EPISODES

UNSEEN_ACTIONS = Rule(
    name="unseen-actions",
    reads=("unseen_actions",),
    description="policy's actions that never occur in the log",
    explanation="The log says nothing about what follows an action that it does not contain.",
    definition="Share of π's discrete actions, at logged states, that occur nowhere in the log",
    shows="{unseen_actions:.1%}",
    limits=Limits(
        why="Set by judgement: the log says nothing about what follows these actions",
        weak=above(0.05, PERCENT),
        not_supported=above(0.2, PERCENT),
    ),
    says="{unseen_actions:.0%} of the policy's actions never occur in the log",
    remedy=CLOSER_POLICY,
)

OVERLAP = Rule(
    name="overlap",
    reads=("overlap",),
    description="overlap between the policy and the log",
    explanation="How much of what the policy does the log contains. The more, the better.",
    definition="Mean of min(1, ρ): 1 minus the total variation distance between π and μ",
    shows="{overlap:.1%}",
    limits=Limits(
        why="Set by judgement: overlap shrinks with every step, from 30% to 1% in four steps, from 15% in two or three",
        weak=below(0.3, PERCENT),
        not_supported=below(0.15, PERCENT),
    ),
    says=lambda evidence: (
        evidence.fill("overlap between the policy and the log is only {overlap:.0%}") + if_few_follow(evidence)
    ),
    remedy=CLOSER_POLICY,
)

# Calibrated on linear dynamics with Gaussian noise and μ, actions of 1, 2 and 4 dimensions, 100 episodes, and π(s)
# between 0 and 4 standard deviations from the mean of μ in every dimension. The error of fqe against long simulations,
# root mean square over four logs, over the standard deviation of rewards; for a reward that is quadratic in the action
# and in the state, which π drives away, and for one of the action that drops 2.5 standard deviations from the mean:
#     distance           0             1            1.5           2            3
#     near actions      68 %         47 %          29 %        11–15 %      0–3 %
#     quadratic      0.03–0.10    0.19–0.38     0.81–1.2      1.1–2.6      2.0–6.3
#     with a drop    0.02–0.03    0.02–0.09     0.07–0.26    0.10–1.1      0.50–0.96
NEAR_ACTIONS = Rule(
    name="near-actions",
    reads=("near_actions", "near_rows"),
    description="logged actions near those of the deterministic policy",
    explanation="How often the log did nearly what the policy would do. The more, the better.",
    definition=(
        "For deterministic policies over continuous actions: share of rows, weighted by γᵗ, whose action lies within "
        "one standard deviation of π(s) in every dimension, to the power of 1 / dimensions. The standard deviation is "
        "that of logged actions around a linear regression on the observation. `near_rows`: their effective number"
    ),
    shows="{near_actions:.0%} a dimension, {near_rows:.0f} rows",
    limits=Limits(
        why=(
            "On linear-Gaussian processes fqe's error is up to 0.4 standard deviations of the reward at 47%, up to 1.2 "
            "at 29%, up to 2.6 at 15%"
        ),
        weak=below(0.4, PERCENT),
        not_supported=below(0.2, PERCENT),
    ),
    says=(
        "only {near_actions:.0%} of logged actions (in each dimension) lie near the policy's, {near_rows:.0f} rows in "
        "effect: learnt values extrapolate"
    ),
    remedy=CLOSER_POLICY,
)


def _has_only(evidence: Evidence) -> str:
    return f"the log has only {evidence.num_episodes} episode{'' if evidence.num_episodes == 1 else 's'}"


EPISODES = Rule(
    name="episodes",
    reads=("episodes",),
    description="episodes in the log",
    explanation="With few episodes chance decides.",
    definition="Number of episodes",
    measure=lambda evidence: float(evidence.num_episodes),
    shows="{episodes}",
    limits=Limits(
        why="Episodes are the independent units: with fewer than 10, intervals and tests are not reliable",
        not_supported=below(10.0),
    ),
    says=_has_only,
    remedy=MORE_EPISODES,
)


def _followed(evidence: Evidence) -> float | None:
    number = evidence.diagnostics.followed_episodes
    return None if number is None else float(number)


FOLLOWED_EPISODES = Rule(
    name="followed-episodes",
    reads=("followed_episodes", "followed_rows"),
    description="episodes that follow the policy to the end",
    explanation="Episodes in which every action is the policy's.",
    definition=(
        "Where π never takes some logged actions, as a deterministic policy: number of episodes whose actions are all "
        "π's, and number of rows whose action is"
    ),
    measure=_followed,
    shows="{followed_episodes} of {episodes}, and {followed_rows} rows have an action of the policy",
    expected="more are better; methods by values and by density ratios need rows, not whole episodes",
)


def _says_effective(evidence: Evidence) -> str:
    found = evidence.diagnostics
    if not found.effective_episodes:
        return "the log has no episode whose first action is the policy's"
    heaviest = evidence.fill(
        "the effective number of episodes is {effective_episodes:.1f} of {episodes}: "
        "episode {heaviest[0].shown} alone carries {heaviest[0].share:.0%} of the weight"
    )
    return heaviest if found.followed_episodes is None else f"{heaviest}; {follows(evidence)}"


EFFECTIVE_EPISODES = Rule(
    name="effective-episodes",
    reads=("effective_episodes", "by_step"),
    description="effective number of episodes",
    explanation="How many episodes the weighted ones are worth. If few, a handful of them decides the estimate.",
    definition="(Σ g)² / Σ g² of the weights of episodes; `by_step`: the same of the cumulative weights at each step",
    shows="{effective_episodes:.1f} of {episodes}",
    limits=Limits(
        why="At 1.5 one episode carries about 80% of the weight, at 3 as few as three carry all of it",
        weak=below(3.0),
        not_supported=below(1.5),
    ),
    says=_says_effective,
    remedy=f"{CLOSER_POLICY}; {MORE_EPISODES}",
)

PARETO_K = Rule(
    name="pareto-k",
    reads=("pareto_k",),
    description="Pareto k̂ of the episodes' weights",
    explanation="Whether a few episodes with huge weights dominate. Above 0.7 the weights are not reliable.",
    definition="Shape of the tail of the weights; their variance is finite below 1/2 (Vehtari et al., 2024)",
    shows="{pareto_k:.2f}",
    expected="below 0.7",
)


def _heaviest(evidence: Evidence) -> str:
    return ", ".join(f"{one.shown} ({one.share:.0%})" for one in evidence.diagnostics.heaviest)


HEAVIEST = Rule(
    name="heaviest-episodes",
    reads=("heaviest", "weights"),
    description="episodes with the largest share of the weight",
    explanation="If one episode has half of the weight, the estimate depends on that episode.",
    definition="The episodes with the largest weights, as shares of the sum; `weights`: all shares, largest first",
    measure=lambda evidence: evidence.diagnostics.heaviest[0].share if evidence.diagnostics.heaviest else None,
    shows=_heaviest,
    expected="no share near 50%",
)
