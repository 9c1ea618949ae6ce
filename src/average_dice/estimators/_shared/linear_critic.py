"""A critic that is linear in features, q = φᵀθ, clipped to the bounds of the rewards.

On the scale of J a value q(s, a) is an average of rewards for every γ, so it lies within their bounds.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable
from average_dice.estimators.results import Critic, Fit, LoggedValues
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.resampling import Resample

Theta = Float[np.ndarray, " feature"]
Bounds = tuple[float, float]

NO_SOLUTION = "its linear system has no finite solution"


def linear_critic(features: LoggedStateActions, theta: Theta, bounds: Bounds) -> Critic:
    """q and v at any state and action."""
    if not np.isfinite(theta).all():
        raise NotApplicable(NO_SOLUTION)
    return Critic(
        lambda observations, actions: np.clip(features.at(observations, actions) @ theta, *bounds),
        lambda observations: np.clip(features.expected(observations) @ theta, *bounds),
    )


def fit_of_critic(
    features: LoggedStateActions, theta: Theta, bounds: Bounds, resample: Resample, **diagnostics: float
) -> Fit:
    """J = E[v(s₀)]."""
    critic = linear_critic(features, theta, bounds)
    start = np.clip(features.start @ theta, *bounds)
    after = resample.of_rows(np.clip(features.after @ theta, *bounds))
    logged = LoggedValues(
        resample.of_rows(np.clip(features.logged @ theta, *bounds)),
        np.where(resample.problem.dataset.terminated, 0.0, after),
        resample.of_episodes(start),
    )
    value = float(resample.mean_over_episodes(start))
    return Fit(value, critic=replace(critic, logged=logged), diagnostics=diagnostics)
