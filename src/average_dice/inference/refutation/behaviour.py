"""The behaviour policy as the target: the method must give back what it earned.

Every importance ratio is 1 then (`Problem.with_single_action`), and the answer is known: the mean of the logged
returns, up to the last truncation. If the user has μ as a policy object, it is evaluated like any other policy, with
the recorded probabilities in the ratios: a stronger test, because wrong probabilities no longer cancel.
"""

import numpy as np

from average_dice.estimators import BehaviourReturn
from average_dice.inference.refutation.base import STANDARD_ERRORS, Measured, Refuter
from average_dice.inference.refutation.case import Case, standard_error, value_of
from average_dice.policies import Policy
from average_dice.problem import Problem

LEAST = 0.1  # of the standard error of the returns: a bias that is smaller by far than their noise does no harm


def _measure(case: Case) -> Measured:
    problem = _to_last_truncation(case.problem, case.problem.policy)
    distances = [_distance(case, problem.with_single_action(), problem)]
    if case.behaviour is not None:
        distances.append(_distance(case, _to_last_truncation(case.problem, case.behaviour), problem))
    earned = value_of(BehaviourReturn(), problem, case.key)
    number = max(distances)
    ends = f"the behaviour policy as the target, which earned {earned:.4g} up to the last truncation or termination"
    return Measured(
        number,
        f"the method gives back the value of {ends}",
        f"the method misses, by {number:.1f} standard errors, the value of {ends}",
    )


def _to_last_truncation(problem: Problem, policy: Policy | None) -> Problem:
    """The problem up to the last truncation, where the mean of the returns is what was earned."""
    data = problem.dataset
    if problem.misses_rewards:
        return Problem.up_to(data, policy, problem.discount, int(data.lengths.max()))
    return Problem(data, policy, problem.discount)


def _distance(case: Case, target: Problem, logged: Problem) -> float:
    """Of the value from the mean of the returns, on common resamples."""
    prepared = case.method.prepare(target, key=case.key)
    values = case.values_on_resamples(case.method, target, prepared)
    returns = case.values_on_resamples(BehaviourReturn(), logged)
    gap = prepared.fit().value - value_of(BehaviourReturn(), logged, case.key)
    error = max(standard_error(values - returns, case.num_episodes), LEAST * standard_error(returns, case.num_episodes))
    return abs(gap) / error if error > 0 else float(0 if np.isclose(gap, 0, atol=1e-9) else np.inf)


BEHAVIOUR = Refuter(
    name="behaviour",
    asks="Is the behaviour policy, evaluated as a target, worth what it earned?",
    unit=STANDARD_ERRORS,
    limit=4.0,
    why="Chosen on sound logs, where it is at most 2.2",
    measure=_measure,
)
