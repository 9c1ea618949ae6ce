"""Prediction: the value learnt from one half of the log must agree with the importance-weighted returns of the other.

The critic v, q of the method on half A predicts the episodes of half B. Their weighted per-decision returns correct it,

    ψ_B = mean over B of v_A(s₀) + Σ_t γᵗ W_t δ_t,     δ = (1 − γ) r + γ m v_A(s′) − q_A(s, a),

with W the product of ratios over its mean at the step. ψ_B must be the value of the method on A, and the other way
round. Without a critic, ψ_B is the weighted return itself, which must then reach the end of every episode.
"""

import numpy as np

from average_dice.errors import NotApplicable
from average_dice.estimators import Fit
from average_dice.estimators.doubly_robust._td_errors import td_errors
from average_dice.estimators.importance.importance_sampling import by_decision_normalised
from average_dice.estimators.results import LoggedValues
from average_dice.inference.refutation.base import STANDARD_ERRORS, Measured, Refuter
from average_dice.inference.refutation.case import Case
from average_dice.problem import Episodes, Problem


def _measure(case: Case) -> Measured:
    case.require_episodes()
    _ = case.problem.log_ratio  # not applicable without probabilities
    ((first, second),) = case.random_halves(1)
    on_first, on_second = case.fits_of_parts([first, second])
    predicted = [
        _corrected(case.problem.select_episodes(second), on_first),
        _corrected(case.problem.select_episodes(first), on_second),
    ]
    learnt = (on_first.value + on_second.value) / 2
    weighted = (float(predicted[0].mean()) + float(predicted[1].mean())) / 2
    noise = np.concatenate([one - one.mean() for one in predicted])
    error = np.hypot(case.spread, float(noise.std()) / np.sqrt(case.num_episodes))
    number = abs(learnt - weighted) / error if error > 0 else float(0 if np.isclose(learnt, weighted) else np.inf)
    return Measured(
        number,
        f"one half of the log predicts the weighted returns of the other: {learnt:.4g} and {weighted:.4g}",
        f"one half of the log predicts {learnt:.4g}, the weighted returns of the other are {weighted:.4g}",
    )


def _corrected(problem: Problem, fit: Fit) -> Episodes:
    """ψ of each episode, with the critic of the fit."""
    data = problem.dataset
    weights = np.exp(by_decision_normalised(problem) + problem.log_discount)
    if fit.critic is None:
        if problem.misses_rewards:
            raise NotApplicable("the method learns no values, and the log has no rewards after truncation")
        return problem.by_episode(weights * problem.normaliser * data.reward)
    values = LoggedValues(
        fit.critic.q(data.observation, data.action),
        np.where(data.terminated, 0.0, fit.critic.v(data.next_observation)),
        fit.critic.v(problem.start_observation),
    )
    return values.start + problem.by_episode(weights * td_errors(problem, values))


PREDICTION = Refuter(
    name="prediction",
    asks="Does one half of the log predict the weighted returns of the other?",
    unit=STANDARD_ERRORS,
    limit=3.0,
    why="Chosen on sound logs, where it is at most 1.2",
    measure=_measure,
)
