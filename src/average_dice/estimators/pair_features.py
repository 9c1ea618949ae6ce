"""What closed forms of pairs need: features at the logged pairs, and their means under π at other states.

On the scale of J a value q(s, a) is an average of rewards, whatever γ, and can lie no further out than they do.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Int

from ..errors import NotApplicable, PolicyError
from ..models.pairs import PairFeatures
from ..policies.base import WeightedActions
from ..problem import Problem
from ..randomness import generator_from
from ..resampling import Draw
from .base import Critic, Fit, LoggedValues

Rows = Float[np.ndarray, " row"]

# Of π's continuous actions at each state. The same draws serve every method and every seed, so that what differs
# between two results is not the draws.
NUM_DRAWS = 8
DRAWS_SEED = 20251


def bounds(problem: Problem) -> tuple[float, float]:
    """What an average of rewards can be; after a termination all rewards are 0."""
    low, high = float(problem.dataset.reward.min()), float(problem.dataset.reward.max())
    return (min(low, 0.0), max(high, 0.0)) if problem.dataset.terminated.any() else (low, high)


def drawn_actions(problem: Problem, observations: np.ndarray) -> WeightedActions:
    """What π does at these observations: all actions with their probabilities, or a few draws."""
    generator = np.random.default_rng(DRAWS_SEED)
    return problem.target_actions(observations, num_draws=NUM_DRAWS, generator=generator)


def number_of_actions(problem: Problem) -> int | None:
    """How many discrete actions π has; None if actions are continuous."""
    if not problem.dataset.is_discrete:
        return None
    actions, _ = drawn_actions(problem, problem.start_observation[:1])
    number, seen = int(actions.max()) + 1, int(problem.dataset.action.max())
    if seen >= number:
        raise PolicyError(f"the log has action {seen}, the policy has actions 0 to {number - 1}.")
    return number


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """φ at the logged pairs, and its mean under π at the next states and at the starts."""

    features: PairFeatures
    logged: Float[np.ndarray, "transition feature"]
    after: Float[np.ndarray, "transition feature"]  # zero where the episode terminated
    start: Float[np.ndarray, "episode feature"]
    expected: Callable[[np.ndarray], np.ndarray]  # observations → E_π[φ(s, a)]
    action: Int[np.ndarray, " transition"] | None  # the logged ones, if they are discrete

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array) -> "LinearProblem":
        data = problem.dataset
        num_actions = number_of_actions(problem)
        features = PairFeatures.draw(data.observation, data.action, num_actions, num_features, generator_from(key))

        def expected(observations: np.ndarray) -> np.ndarray:
            return features.expected(observations, *drawn_actions(problem, observations))

        return LinearProblem(
            features,
            features(data.observation, data.action),
            np.where(data.terminated[:, None], 0.0, expected(data.next_observation)),
            expected(problem.start_observation),
            expected,
            data.action if data.is_discrete else None,
        )

    def penalty(self, ridge: float) -> np.ndarray:
        """λ I, without the constants."""
        return np.diag(np.where(self.features.free, 0.0, ridge))

    def add_arrivals(
        self, matrix: np.ndarray, rows: Int[np.ndarray, " some"], weight: Float[np.ndarray, " some"]
    ) -> None:
        """Adds Σ weight φ φ′ᵀ over these rows; φ of a discrete action is zero outside of its block."""
        for block, here in self.blocks(rows):
            chosen = rows[here]
            matrix[block] += (self.logged[chosen, block] * weight[here, None]).T @ self.after[chosen]

    def blocks(self, rows: Int[np.ndarray, " some"]) -> Iterator[tuple[slice, np.ndarray]]:
        """The features of each action, with those of the rows that have it; all of them for continuous actions."""
        if self.action is None:
            yield slice(None), np.ones(len(rows), bool)
            return
        size = self.features.features.size
        for action in range(self.features.size // size):
            yield slice(action * size, (action + 1) * size), self.action[rows] == action

    def fit_of_values(self, theta: Rows, low: float, high: float, draw: Draw, **diagnostics: float) -> Fit:
        """J = E[v(s₀)] with q = φᵀθ, kept within what rewards allow."""
        start = np.clip(self.start @ theta, low, high)
        logged = LoggedValues(
            draw.of_rows(np.clip(self.logged @ theta, low, high)),
            np.where(draw.problem.dataset.terminated, 0.0, draw.of_rows(np.clip(self.after @ theta, low, high))),
            draw.of_episodes(start),
        )
        critic = replace(self.critic(theta, low, high), logged=logged)
        return Fit(float(draw.mean_over_episodes(start)), critic=critic, diagnostics=diagnostics)

    def critic(self, theta: Rows, low: float, high: float) -> Critic:
        if not np.isfinite(theta).all():
            raise NotApplicable("its linear system has no finite solution")
        return Critic(
            lambda observations, actions: np.clip(self.features(observations, actions) @ theta, low, high),
            lambda observations: np.clip(self.expected(observations) @ theta, low, high),
        )


def solve(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """x with matrix · x = vector; the smallest of them where there are many."""
    try:
        return np.linalg.solve(matrix, vector)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, vector)[0]
