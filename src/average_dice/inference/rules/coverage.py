"""Sentences about coverage, where π never takes some actions: how much of the log follows it."""

from average_dice.inference.rules.base import Evidence

FEW = 10  # episodes that follow π to the end; with fewer, a rule that fires mentions it


def follows(evidence: Evidence) -> str:
    """How many episodes have only actions of π. Needs `followed_episodes`."""
    if not evidence.diagnostics.followed_rows:
        return "the log has no row with the policy's action"
    number = evidence.diagnostics.followed_episodes
    if not number:
        return f"none of the {evidence.num_episodes} episodes follows the policy to the end"
    return f"{number} of {evidence.num_episodes} episodes follow{'s' if number == 1 else ''} the policy to the end"


def if_few_follow(evidence: Evidence) -> str:
    """To be added to a reason."""
    number = evidence.diagnostics.followed_episodes
    return f"; {follows(evidence)}" if number is not None and number < FEW else ""
