"""The verdict: does the log support the number? A few rules, each with its reason in words and what would help.

"not supported" if any rule says so, else "weak" if any rule does, else "supported". `average-dice benchmark trust`
counts how often each is right on tasks whose truth is known.
"""

from collections.abc import Callable
from dataclasses import dataclass

from average_dice.estimators import Estimate
from average_dice.inference.diagnostics import SURE, Diagnostics

SUPPORTED, WEAK, NOT_SUPPORTED = LEVELS = ("supported", "weak", "not supported")

MORE_EPISODES = "log more episodes"
CLOSER_POLICY = "judge a policy that acts more like the log, or log with one that acts more like this"
LONGER_CUT = "log longer episodes, or choose a smaller discount"
CHECK_PROBABILITIES = "check behaviour_log_prob and the policy: both must be of the logged, unclipped action"


@dataclass(frozen=True)
class Verdict:
    """Whether the log supports the recommended number, why (not), and what would help."""

    level: str
    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """That something is amiss, how much so, and what would help."""

    level: str
    reason: str
    remedy: str | None = None


def judge(estimate: Estimate, diagnostics: Diagnostics, num_episodes: int) -> Verdict:
    """By every rule."""
    if estimate.value is None:
        return Verdict(NOT_SUPPORTED, estimate.notes)
    findings = [finding for rule in RULES if (finding := rule(estimate, diagnostics, num_episodes)) is not None]
    if not findings:
        return Verdict(SUPPORTED, (_why_supported(diagnostics, num_episodes),))
    findings.sort(key=lambda finding: -LEVELS.index(finding.level))
    remedies = dict.fromkeys(finding.remedy for finding in findings if finding.remedy)
    return Verdict(findings[0].level, tuple(finding.reason for finding in findings), tuple(remedies))


def wrong_probabilities(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """The ratios of actions must average to 1 over the log."""
    mean, distance = found.mean_ratio, found.mean_ratio_distance
    if mean is None or distance is None or distance < SURE or abs(mean - 1) < 0.05:
        return None
    return Finding(NOT_SUPPORTED, f"ratios of actions average {_off_one(mean)}", _remedy_off_one(mean))


def hole_at_a_step(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """… and at every step."""
    step, mean, distance = found.worst_step, found.worst_step_ratio, found.worst_step_distance
    if mean is None or distance is None or distance < SURE:
        return None
    level = NOT_SUPPORTED if abs(mean - 1) > 0.2 else WEAK
    return Finding(level, f"at step {step} ratios average {_off_one(mean)}", _remedy_off_one(mean))


def unbalanced_ratios(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """… and at every state."""
    balance, missing, excess = found.balance, found.missing_mass, found.excess_mass
    if balance is None or missing is None or excess is None or balance < SURE:
        return None
    level = NOT_SUPPORTED if max(missing, excess) > 0.05 else WEAK
    if excess > missing:
        reason = "at some states ratios average more than 1: the log's or the policy's probabilities are wrong"
        return Finding(level, reason, CHECK_PROBABILITIES)
    reason = f"{missing:.2g} times an episode (discounted) the policy leaves what the log shows: there it is unknown"
    return Finding(level, reason, f"{CLOSER_POLICY}; {CHECK_PROBABILITIES}")


def actions_with_memory(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if found.memory is None or found.memory < SURE:
        return None
    reason = "logged actions depend on earlier ones in a way that the recorded probabilities do not show"
    return Finding(WEAK, reason, "record the probabilities that the actions were drawn with, and what they depended on")


def informative_truncation(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if found.truncation is None or found.truncation < SURE:
        return None
    reason = "whether an episode is truncated depends on what happened in it"
    return Finding(WEAK, reason, "record why episodes end; those that failed or finished are terminated, not truncated")


def dependent_episodes(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if found.trend is not None and found.trend >= SURE:
        reason = "what episodes earn changes over the log: its first part speaks of other conditions than its last"
        return Finding(WEAK, reason, "evaluate on the part of the log that is like the present")
    if found.neighbours is not None and found.neighbours >= SURE:
        reason = "episodes resemble the ones before them: they are not independent, and intervals are too narrow"
        return Finding(WEAK, reason, "give all rows of one person or machine one episode number, or log more of them")
    return None


def no_width(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """An interval without width is one that resampling cannot give: the value sits at a bound of the rewards."""
    if estimate.lower is None or estimate.upper is None or estimate.value is None:
        return None
    if found.reward_range == 0:
        return None if estimate.value else Finding(WEAK, "every reward in the log is 0", MORE_EPISODES)
    if estimate.upper - estimate.lower > 1e-6 * found.reward_range:
        return None
    reason = "every resample of the log gives the same value, at a bound of the logged rewards"
    return Finding(WEAK, reason, MORE_EPISODES)


def _off_one(mean: float) -> str:
    """What π does and μ never does is missing from the mean; nothing but a mistake adds to it."""
    cause = "the log's or the policy's probabilities are wrong"
    return f"{mean:.2f} where 1 is right: {cause}{', or the policy does what the log never shows' if mean < 1 else ''}"


def _remedy_off_one(mean: float) -> str:
    return f"{CHECK_PROBABILITIES}; {CLOSER_POLICY}" if mean < 1 else CHECK_PROBABILITIES


def unknown_probabilities(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if found.overlap is not None:
        return None
    reason = "without probabilities of the log nobody can tell whether the policy does what the log shows"
    return Finding(WEAK, reason, "log behaviour_log_prob")


def unseen_actions(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """π must hardly ever act in a way that the log never shows."""
    unseen = found.unseen_actions
    if unseen is None or unseen <= 0.05:
        return None
    reason = f"{unseen:.0%} of the policy's actions were never logged"
    return Finding(NOT_SUPPORTED if unseen > 0.2 else WEAK, reason, CLOSER_POLICY)


def little_overlap(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """π must act now and then as the log does."""
    overlap = found.overlap
    if overlap is None or overlap >= 0.3:
        return None
    reason = f"the policy acts like the log in only {overlap:.0%} of the steps"
    return Finding(NOT_SUPPORTED if overlap < 0.15 else WEAK, reason, CLOSER_POLICY)


def few_episodes(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if num_episodes < 10:
        plural = "" if num_episodes == 1 else "s"
        return Finding(NOT_SUPPORTED, f"the log has {num_episodes} episode{plural}", MORE_EPISODES)
    effective = found.effective_episodes
    if effective is not None and effective < 3:
        worst = found.heaviest[0]
        reason = (
            f"{effective:.1f} of {num_episodes} episodes effectively carry the ratios; "
            f"episode {worst.episode} alone holds {worst.share:.0%}"
        )
        return Finding(NOT_SUPPORTED if effective < 1.5 else WEAK, reason, f"{CLOSER_POLICY}; {MORE_EPISODES}")
    return None


def unseen_future(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """What lies beyond the cut is guessed from what lies before it."""
    beyond = found.beyond_truncation
    if beyond is None or beyond < 0.05:
        return None
    reason = f"{beyond:.0%} of what counts lies beyond the cut, where the log hardly looks"
    return Finding(NOT_SUPPORTED if beyond > 0.3 else WEAK, reason, LONGER_CUT)


def unbalanced_flow(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    residual = found.flow_residual
    if residual is None or residual < 1:
        return None
    much = min(residual, 1e3)
    reason = f"on episodes left out the learnt ratio is out of balance, by {much:.2g} standard deviations of a state"
    return Finding(WEAK, reason, LONGER_CUT)


def wild_rewards(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if found.largest_reward_share < 0.2:
        return None
    reason = f"a single row makes {found.largest_reward_share:.0%} of the variance of rewards"
    return Finding(WEAK, reason, "check that reward; if it is right, log more of what led to it")


def repeats(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    if found.repeated_episodes <= 0.01:
        return None
    reason = f"{found.repeated_episodes:.0%} of the episodes are copies of others: intervals are too narrow"
    return Finding(WEAK, reason, "remove the copies")


def disagreement(estimate: Estimate, found: Diagnostics, num_episodes: int) -> Finding | None:
    """Values learnt by a critic and products of ratios must tell much the same story, beyond chance and by size.

    Chance is that of the products: where they are noisy, a critic may be wrong by as much, and its narrow interval
    would not know.
    """
    values, products = estimate.diagnostics.get("by_values"), estimate.diagnostics.get("by_products")
    if values is None or products is None or estimate.lower is None or estimate.upper is None:
        return None
    gap, size = abs(values - products), max(abs(values), abs(products))
    width, noise = estimate.upper - estimate.lower, estimate.diagnostics.get("reference_error", 0.0)
    if gap <= 0.02 * size or (gap <= 3 * width and gap <= max(width, SURE * noise)):
        return None
    reason = f"learnt values say {values:.4g} and products of ratios {products:.4g}: more apart than chance explains"
    return Finding(WEAK, reason, MORE_EPISODES)


Rule = Callable[[Estimate, Diagnostics, int], Finding | None]
RULES: tuple[Rule, ...] = (
    wrong_probabilities,
    hole_at_a_step,
    unbalanced_ratios,
    actions_with_memory,
    informative_truncation,
    dependent_episodes,
    no_width,
    unknown_probabilities,
    unseen_actions,
    little_overlap,
    few_episodes,
    unseen_future,
    unbalanced_flow,
    disagreement,
    wild_rewards,
    repeats,
)


def _why_supported(found: Diagnostics, num_episodes: int) -> str:
    return (
        f"the policy acts like the log in {found.overlap:.0%} of the steps, "
        f"{found.effective_episodes:.0f} of {num_episodes} episodes effectively carry the ratios; no rule finds fault"
    )
