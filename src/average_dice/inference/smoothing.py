"""What smoothing a deterministic policy changes: said in a note of every estimate of a smoothed policy."""

import jax

from average_dice.estimators import FittedQ
from average_dice.notes import Note, NoteCode
from average_dice.policies.smoothed import SmoothedPolicy
from average_dice.problem import Problem


def smoothing_note(problem: Problem, *, key: jax.Array) -> Note | None:
    """The bandwidth, and the value of the smoothed policy minus that of the policy itself, both by fitted Q evaluation.

    Both use the same features of the same log, so that most of their errors cancel. (A critic's values of π(s₀) and of
    the smoothed first action would miss the noise of all later actions.) None if the policy is not smoothed.
    """
    policy = problem.policy
    if not isinstance(policy, SmoothedPolicy):
        return None
    change = smoothing_bias(problem, key=key)
    return Note(
        NoteCode.SMOOTHED,
        f"the value is that of the smoothed policy, with bandwidth {policy.bandwidth:g}; "
        f"by fqe, smoothing changes the value by {change:+.4g}",
    )


def smoothing_bias(problem: Problem, *, key: jax.Array) -> float:
    """J of the smoothed policy minus J of the original, by fitted Q evaluation."""
    assert isinstance(problem.policy, SmoothedPolicy)
    original = Problem(problem.dataset, problem.policy.original, problem.discount)
    return FittedQ().fit(problem, key=key).value - FittedQ().fit(original, key=key).value
