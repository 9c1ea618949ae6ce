"""Are the recorded probabilities right, and does the log have the policy's actions?

Under μ the importance ratio ρ = π(a|s) / μ(a|s) has the mean 1 at every state and step. An action that π takes and μ
never takes lowers that mean. Only wrong probabilities raise it above 1. Where μ was estimated, the errors of a sound
estimate raise it, too; so the rules judge it without that excess (`inference/estimated_ratios.py`).
"""

import operator
from collections.abc import Callable

from average_dice.inference.rules.base import (
    SIGNIFICANT,
    STANDARD_ERRORS,
    Evidence,
    Limit,
    Limits,
    Rule,
    always,
    at_least,
)
from average_dice.inference.rules.remedies import BETTER_ESTIMATES, CHECK_PROBABILITIES, CLOSER_POLICY, ERRORS_UNKNOWN
from average_dice.problem import Estimand

FROM_ONE = f"{STANDARD_ERRORS.format(SIGNIFICANT)} from 1"
WRONG = "the {source} or the policy's probabilities are wrong"
HOLE = "the policy takes actions that the log never takes"
CLOSE_TO_ONE = f"less than {FROM_ONE}"


def _wrong(evidence: Evidence) -> str:
    """Whether they were recorded or estimated."""
    return WRONG.format(source="recorded" if evidence.diagnostics.estimated_behaviour is None else "estimated")


def _check(evidence: Evidence) -> str:
    found = evidence.diagnostics
    if found.estimated_behaviour is None:
        return CHECK_PROBABILITIES
    return ERRORS_UNKNOWN if found.mean_ratio_excess is None else BETTER_ESTIMATES


Mean = Callable[[Evidence], float | None]


def _mean_without_excess(evidence: Evidence) -> float | None:
    found = evidence.diagnostics
    return None if found.mean_ratio is None else found.mean_ratio - (found.mean_ratio_excess or 0.0)


def _step_mean(evidence: Evidence) -> float | None:
    return evidence.diagnostics.worst_step_ratio


def _off_one(ratio: Mean) -> Mean:
    """|ratio − 1|."""

    def measure(evidence: Evidence) -> float | None:
        mean = ratio(evidence)
        return None if mean is None else abs(mean - 1)

    return measure


def _average(ratio: Mean, where: str) -> Callable[[Evidence], str]:
    """The reason, which depends on the side of 1 that the mean lies on."""

    def says(evidence: Evidence) -> str:
        mean = ratio(evidence)
        assert mean is not None  # the rule has fired
        reasons = [_wrong(evidence), HOLE] if mean < 1 else [_wrong(evidence)]
        if evidence.diagnostics.followed_episodes is not None:
            reasons.reverse()  # a policy that never takes some actions often lacks coverage
        return f"{evidence.fill(where)} importance ratios average {mean:.2f} instead of 1: {', or '.join(reasons)}"

    return says


def _average_remedy(ratio: Mean) -> Callable[[Evidence], str]:
    def remedy(evidence: Evidence) -> str:
        mean = ratio(evidence)
        assert mean is not None
        return f"{_check(evidence)}; {CLOSER_POLICY}" if mean < 1 else _check(evidence)

    return remedy


def _shown_mean(evidence: Evidence) -> str:
    if evidence.diagnostics.mean_ratio_excess is None:
        return evidence.fill("{mean_ratio:.3f}, {mean_ratio_distance:.1f} standard errors from 1")
    without = _mean_without_excess(evidence)
    return evidence.fill(
        f"{{mean_ratio:.3f}}, and {without:.3f} without what errors of the estimated probabilities add, "
        "{mean_ratio_distance:.1f} standard errors from 1"
    )


MEAN_RATIO = Rule(
    name="mean-ratio",
    reads=("mean_ratio", "mean_ratio_distance", "mean_ratio_excess"),
    description="mean importance ratio",
    explanation="Whether the probabilities in the log and those of the policy fit together.",
    definition=(
        "Mean of ρ over the log, and its distance from 1 in standard errors. 1 if both probabilities are right. Errors "
        "of estimated probabilities raise it, by about as much as it rises when they are estimated from half of the "
        "episodes: `mean_ratio_excess`. The distance is that of the mean without it"
    ),
    measure=_off_one(_mean_without_excess),
    shows=_shown_mean,
    limits=Limits(
        why="In long logs a deviation of less than 5% can be significant and still harmless",
        significance="mean_ratio_distance",
        not_supported=Limit(0.05, operator.ge, f"{FROM_ONE}, and 5% or more", f"{CLOSE_TO_ONE}, or less than 5%"),
    ),
    says=_average(_mean_without_excess, "over the log"),
    remedy=_average_remedy(_mean_without_excess),
)

STEP_RATIO = Rule(
    name="step-ratio",
    reads=("worst_step", "worst_step_ratio", "worst_step_distance"),
    description="mean importance ratio at the worst step",
    explanation="Whether these probabilities fit together at every step, too.",
    definition=(
        "The step (γᵗ > 1/10) whose mean of ρ lies the most standard errors from 1, that mean, and its distance. The "
        "standard error uses the spread of all rows where that of the step is smaller"
    ),
    measure=_off_one(_step_mean),
    shows="{worst_step_ratio:.3f} at step {worst_step}, {worst_step_distance:.1f} standard errors from 1",
    limits=Limits(
        why="A missing action at a single step biases only part of the value: up to 20% the estimate may still be near",
        significance="worst_step_distance",
        weak=always(FROM_ONE, CLOSE_TO_ONE),
        not_supported=Limit(0.2, operator.gt, f"{FROM_ONE}, and more than 20%", "at most 20% from 1"),
    ),
    says=_average(_step_mean, "at step {worst_step}"),
    remedy=_average_remedy(_step_mean),
)


def _wrong_mass(evidence: Evidence) -> float | None:
    found = evidence.diagnostics
    if found.balance is None or found.missing_mass is None or found.excess_mass is None:
        return None
    return max(found.missing_mass, found.excess_mass)


def _more_excess(evidence: Evidence) -> bool:
    found = evidence.diagnostics
    return found.missing_mass is not None and found.excess_mass is not None and found.excess_mass > found.missing_mass


def _shown_balance(evidence: Evidence) -> str:
    """With the larger mass, if it is significant."""
    distance = evidence.fill("{balance:.1f} standard errors from 1")
    if evidence.diagnostics.balance is None or evidence.diagnostics.balance < SIGNIFICANT:
        return distance
    kind = "excess" if _more_excess(evidence) else "missing"
    return f"{distance}, {kind} mass {max(_wrong_mass(evidence) or 0.0, 0.0):.2g}"


def _says_state_ratio(evidence: Evidence) -> str:
    if _more_excess(evidence):
        return f"at some states importance ratios average more than 1: {_wrong(evidence)}"
    how_often = {
        Estimand.PER_STEP: "{missing_mass:.2g} times an episode (discounted)",
        Estimand.TOTAL: "{missing_mass:.2g} times an episode",
        Estimand.ONE_STEP: "at the first step of {missing_mass:.0%} of the episodes",
    }[evidence.estimand]
    return evidence.fill(f"the policy leaves the support of the log {how_often}: rewards there are unknown")


def _remedy_state_ratio(evidence: Evidence) -> str:
    return _check(evidence) if _more_excess(evidence) else f"{CLOSER_POLICY}; {_check(evidence)}"


STATE_RATIO = Rule(
    name="state-ratio",
    reads=("balance", "missing_mass", "excess_mass"),
    description="mean importance ratio by state and step",
    explanation="Whether the log contains what the policy does, in every state that it visits.",
    definition=(
        "E[ρ | s, t] = 1 at every state and step. A regression on other episodes finds where it is not; `balance` is "
        "the distance from 1 there, in standard errors. `missing_mass` and `excess_mass` are E[Σ γᵗ W_t (1 − ρ_t)] "
        "over the rows where the regression is positive or negative: how often in an episode, discounted, π leaves the "
        "support of the log, or wrong probabilities add weight. They may exceed 1, and are noise while `balance` is "
        f"below {SIGNIFICANT:g}"
    ),
    measure=_wrong_mass,
    shows=_shown_balance,
    limits=Limits(
        why="If π leaves the support less than once in 20 episodes, the value changes little",
        significance="balance",
        weak=always(FROM_ONE, CLOSE_TO_ONE),
        not_supported=Limit(0.05, operator.gt, f"{FROM_ONE}, and missing or excess mass above 0.05", "at most 0.05"),
    ),
    says=_says_state_ratio,
    remedy=_remedy_state_ratio,
)

DEPENDENT_ACTIONS = Rule(
    name="dependent-actions",
    reads=("memory",),
    description="correlation of consecutive importance ratios",
    explanation="Whether each action was chosen afresh, as the recorded probabilities say.",
    definition=(
        "The ratios of two consecutive steps are uncorrelated if actions were sampled with the recorded probabilities. "
        "Distance of their covariance from 0"
    ),
    shows="{memory:.1f} standard errors",
    limits=Limits(
        why="A correlation is no estimate of the bias, so it is never worse than weak",
        weak=at_least(SIGNIFICANT, STANDARD_ERRORS),
    ),
    says="logged actions depend on earlier actions in a way that the recorded probabilities do not show",
    remedy="record the probabilities that the actions were sampled with, and the variables they depended on",
)


def _how_known(evidence: Evidence) -> str:
    if evidence.diagnostics.overlap is None:
        return "unknown"
    return "known" if evidence.diagnostics.estimated_behaviour is None else "estimated"


def _known(evidence: Evidence) -> float | None:
    """None if π has no density: then `near-actions` judges, and no probability would help."""
    found = evidence.diagnostics
    return None if found.near_actions is not None else float(found.overlap is not None)


KNOWN_PROBABILITIES = Rule(
    name="known-probabilities",
    reads=("behaviour_log_prob",),
    description="probabilities of the logged actions",
    explanation="Without them it is not known how much the log and the policy have in common.",
    definition="Whether the probabilities of the logged actions are known, under μ and under π",
    measure=_known,
    shows=_how_known,
    limits=Limits(
        why="Without probabilities most checks are impossible, but methods by values may still be right",
        weak=Limit(1.0, operator.lt, "unknown", "known"),
    ),
    says="probabilities of the logged actions are unknown, so overlap with the policy cannot be checked",
    remedy="log behaviour_log_prob, or estimate it: --estimate-behaviour (ad.estimate_behaviour)",
)

CALIBRATION = Rule(
    name="calibration",
    reads=("calibration_error", "calibration_distance"),
    description="calibration of the estimated probabilities",
    explanation="Where an action is predicted in 30 of 100 cases, it should have been taken in about 30 of 100.",
    definition=(
        "Where the probabilities of the logged actions were estimated: the mean distance of predicted from observed "
        "frequencies of actions on held-out episodes, and the largest distance in standard errors"
    ),
    shows="{calibration_error:.3f}, at most {calibration_distance:.1f} standard errors",
    limits=Limits(
        why="Set by judgement: importance ratios are then wrong by a tenth where an action is as likely as not",
        significance="calibration_distance",
        weak=Limit(
            0.05,
            operator.gt,
            f"{STANDARD_ERRORS.format(SIGNIFICANT)} or more, and on average more than 0.05",
            f"less than {STANDARD_ERRORS.format(SIGNIFICANT)}, or at most 0.05",
        ),
    ),
    says="estimated probabilities of actions differ by {calibration_error:.2f} from how often they were taken",
    remedy="log behaviour_log_prob, or the observations that the actions depended on",
)


def _model(evidence: Evidence) -> str:
    return evidence.diagnostics.behaviour_in_words or evidence.diagnostics.estimated_behaviour or ""


ESTIMATED_PROBABILITIES = Rule(
    name="estimated-probabilities",
    reads=("estimated_behaviour", "behaviour_in_words"),
    description="estimated probabilities of the logged actions",
    explanation="The log does not record how likely each action was. No estimate can see what the log leaves out.",
    definition="The model that estimated the probabilities of the logged actions, if they were not recorded",
    measure=lambda evidence: None if evidence.diagnostics.estimated_behaviour is None else 1.0,
    shows=_model,
    limits=Limits(
        why=(
            "The verdict is at best *supported if nothing unobserved drove the actions*: no log can show what it does "
            "not contain"
        ),
        if_observed=always("estimated", "recorded"),
    ),
    says=lambda evidence: (
        f"probabilities of the logged actions were estimated ({_model(evidence)}), which is right only if nothing "
        "unobserved drove the actions"
    ),
    remedy="log behaviour_log_prob, and all that the actions depended on",
)
