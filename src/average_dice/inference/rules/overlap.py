"""Does the log have enough data on the policy's actions?

The weight of an episode is g = (1 − γ) Σ γᵗ W_t / c_t, with W the cumulative importance weights over their mean at
that step and c the uncensored share of episodes (see `diagnostics`).
"""

from average_dice.inference.rules.base import PERCENT, Evidence, Limits, Rule, above, below
from average_dice.inference.rules.remedies import CLOSER_POLICY, MORE_EPISODES

UNSEEN_ACTIONS = Rule(
    name="unseen-actions",
    reads=("unseen_actions",),
    description="policy's actions that never occur in the log",
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
    definition="Mean of min(1, ρ): 1 minus the total variation distance between π and μ",
    shows="{overlap:.1%}",
    limits=Limits(
        why="Set by judgement: overlap shrinks with every step, from 30% to 1% in four steps, from 15% in two or three",
        weak=below(0.3, PERCENT),
        not_supported=below(0.15, PERCENT),
    ),
    says="overlap between the policy and the log is only {overlap:.0%}",
    remedy=CLOSER_POLICY,
)


def _has_only(evidence: Evidence) -> str:
    return f"the log has only {evidence.num_episodes} episode{'' if evidence.num_episodes == 1 else 's'}"


EPISODES = Rule(
    name="episodes",
    reads=("episodes",),
    description="episodes in the log",
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

EFFECTIVE_EPISODES = Rule(
    name="effective-episodes",
    reads=("effective_episodes", "by_step"),
    description="effective number of episodes",
    definition="(Σ g)² / Σ g² of the weights of episodes; `by_step`: the same of the cumulative weights at each step",
    shows="{effective_episodes:.1f} of {episodes}",
    limits=Limits(
        why="At 1.5 one episode carries about 80% of the weight, at 3 as few as three carry all of it",
        weak=below(3.0),
        not_supported=below(1.5),
    ),
    says=(
        "the effective number of episodes is {effective_episodes:.1f} of {episodes}: "
        "episode {heaviest[0].episode} alone carries {heaviest[0].share:.0%} of the weight"
    ),
    remedy=f"{CLOSER_POLICY}; {MORE_EPISODES}",
)

PARETO_K = Rule(
    name="pareto-k",
    reads=("pareto_k",),
    description="Pareto k̂ of the episodes' weights",
    definition="Shape of the tail of the weights; their variance is finite below 1/2 (Vehtari et al., 2024)",
    shows="{pareto_k:.2f}",
    expected="below 0.7",
)


def _heaviest(evidence: Evidence) -> str:
    return ", ".join(f"{one.episode} ({one.share:.0%})" for one in evidence.diagnostics.heaviest)


HEAVIEST = Rule(
    name="heaviest-episodes",
    reads=("heaviest", "weights"),
    description="episodes with the largest share of the weight",
    definition="The episodes with the largest weights, as shares of the sum; `weights`: all shares, largest first",
    measure=lambda evidence: evidence.diagnostics.heaviest[0].share if evidence.diagnostics.heaviest else None,
    shows=_heaviest,
    expected="no share near 50%",
)
