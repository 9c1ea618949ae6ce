"""Truncation: at half of its length the log itself knows the answer, and the method must find it.

Two questions, at a step h that is half of the longest episode, or earlier if importance weights collapse before:

- The value of the first h steps by the method (`Problem.up_to`) must be that by weighted per-decision importance
  sampling, which needs no extrapolation.
- If the log had been truncated after h steps, the method would have had to guess the rest, as it now guesses what comes
  after the truncation at H. Its value must be that on the whole log. The gap counts times γ^(H − h), since that much
  less is guessed now.
"""

import numpy as np

from average_dice.data.truncation import truncated_at
from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator
from average_dice.estimators.importance.importance_sampling import ImportanceSampling, by_decision_normalised
from average_dice.inference.bootstrap import Replicates
from average_dice.inference.episode_weights import effective_by_step
from average_dice.inference.refutation.base import OF_CHANCE, Measured, Refuter
from average_dice.inference.refutation.case import Case, standard_error
from average_dice.problem import Problem

Valued = tuple[float, Replicates]  # a value, and the values on resamples

FEWEST_EFFECTIVE = 10.0  # episodes at step h: with fewer, the weighted returns know nothing
CHANCE = 4.0  # standard errors of a difference on common resamples
LEAST = 0.25  # of what matters: a smaller gap in what is known would not change a decision
LEAST_GUESSED = 1.5  # the same for what is guessed: the error at half of the length tells roughly that at the end


def _measure(case: Case) -> Measured:
    problem = case.problem
    data, policy = problem.dataset, problem.policy
    if not problem.misses_rewards:
        raise NotApplicable("no reward that counts lies after a truncation")
    longest = int(data.lengths.max())
    half = _reliable(case, longest // 2)
    known = Problem.up_to(data, policy, problem.discount, half)
    weighted = ImportanceSampling.weighted_per_decision()
    by_method, by_weights = (_with_resamples(case, method, known) for method in (case.method, weighted))
    knows = _beyond_chance(case, by_method, by_weights, 1.0, LEAST)
    shorter = Problem(truncated_at(data, half), policy, problem.discount)
    guessed = _with_resamples(case, case.method, shorter)
    whole = case.value, case.values
    guesses = _beyond_chance(case, guessed, whole, problem.discount ** (longest - half), LEAST_GUESSED)
    failed = (
        f"the value of the first {half} steps is {by_method[0]:.4g} by the method and {by_weights[0]:.4g} by "
        "importance weights"
        if knows >= guesses
        else f"a log truncated after {half} steps would give {guessed[0]:.4g}, the whole log gives {whole[0]:.4g}: "
        "what the method puts after truncations is doubtful"
    )
    return Measured(max(knows, guesses), f"the method finds the value of the first {half} steps", failed)


def _reliable(case: Case, step: int) -> int:
    """The last step up to this one at which weights are even enough."""
    problem = case.problem
    products = np.exp(by_decision_normalised(problem))
    effective = np.asarray(effective_by_step(problem, products))[:step]
    enough = np.flatnonzero(effective >= FEWEST_EFFECTIVE)
    if len(enough) == 0:
        raise NotApplicable("importance weights collapse before any step could be compared")
    return int(enough[-1]) + 1


def _with_resamples(case: Case, method: Estimator, problem: Problem) -> Valued:
    prepared = method.prepare(problem, key=case.key)
    return prepared.fit().value, case.values_on_resamples(method, problem, prepared)


def _beyond_chance(case: Case, one: Valued, other: Valued, factor: float, least: float) -> float:
    """The gap over what chance and size excuse."""
    gap, error = abs(one[0] - other[0]), standard_error(one[1] - other[1], case.num_episodes)
    excused = np.hypot(CHANCE * error * factor, least * case.matters)
    return float(gap * factor / excused)


TRUNCATION = Refuter(
    name="truncation",
    asks="Is the method right at half of the length, where the log knows the answer?",
    unit=OF_CHANCE,
    limit=1.0,
    why=(
        f"{CHANCE:g} standard errors of the difference, and a quarter of the half-width of the interval or of 1 % of "
        f"the value; {LEAST_GUESSED:g} times these for what is guessed"
    ),
    measure=_measure,
)
