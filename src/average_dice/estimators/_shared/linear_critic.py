"""What closed forms of pairs need: features at the logged pairs, and their means under π at other states.

On the scale of J a value q(s, a) is an average of rewards, whatever γ, and can lie no further out than they do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable, PolicyError
from average_dice.estimators.base import Critic, Fit, LoggedValues
from average_dice.features.state_action import StateActionFeatures
from average_dice.policies.base import WeightedActions
from average_dice.problem import Problem
from average_dice.randomness import generator_from
from average_dice.resampling import Draw

Rows = Float[np.ndarray, " row"]

# Of π's continuous actions at each state. The same draws serve every method and every seed, so that what differs
# between two results is not the draws.
NUM_ACTIONS_DRAWN = 8
ACTIONS_SEED = 20251


def bounds(problem: Problem) -> tuple[float, float]:
    """What an average of rewards can be; after a termination all rewards are 0."""
    low, high = float(problem.dataset.reward.min()), float(problem.dataset.reward.max())
    return (min(low, 0.0), max(high, 0.0)) if problem.dataset.terminated.any() else (low, high)


def target_actions(problem: Problem, observations: np.ndarray) -> WeightedActions:
    """What π does at these observations: all actions with their probabilities, or a few draws."""
    generator = np.random.default_rng(ACTIONS_SEED)
    return problem.target_actions(observations, num_draws=NUM_ACTIONS_DRAWN, generator=generator)


def number_of_actions(problem: Problem) -> int | None:
    """How many discrete actions π has; None if actions are continuous."""
    if not problem.dataset.is_discrete:
        return None
    actions, _ = target_actions(problem, problem.start_observation[:1])
    number, seen = int(actions.max()) + 1, int(problem.dataset.action.max())
    if seen >= number:
        raise PolicyError(f"the log has action {seen}, the policy has actions 0 to {number - 1}.")
    return number


@dataclass(frozen=True, eq=False)
class CriticFeatures:
    """φ at the logged pairs, and its mean under π at the next states and at the starts."""

    features: StateActionFeatures
    logged: Float[np.ndarray, "transition feature"]
    after: Float[np.ndarray, "transition feature"]  # zero where the episode terminated
    start: Float[np.ndarray, "episode feature"]
    expected: Callable[[np.ndarray], np.ndarray]  # observations → E_π[φ(s, a)]
    action: Int[np.ndarray, " transition"] | None  # the logged ones, if they are discrete

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array, *, with_step: bool = False) -> "CriticFeatures":
        """`with_step`: features see the step, too, as one more number beside the observation."""
        data = problem.dataset
        num_actions = number_of_actions(problem)

        def beside(observations: np.ndarray, step: np.ndarray) -> np.ndarray:
            return np.column_stack([observations, step]) if with_step else observations

        logged = beside(data.observation, data.step)
        features = StateActionFeatures.draw(logged, data.action, num_actions, num_features, generator_from(key))

        def expected(observations: np.ndarray, step: np.ndarray | int = 0) -> np.ndarray:
            steps = np.broadcast_to(step, len(observations))
            return features.expected(beside(observations, steps), *target_actions(problem, observations))

        return CriticFeatures(
            features,
            features(logged, data.action),
            np.where(data.terminated[:, None], 0.0, expected(data.next_observation, data.step + 1)),
            expected(problem.start_observation),
            expected,
            data.action if data.is_discrete else None,
        )

    def penalty(self, ridge: float) -> np.ndarray:
        """λ I, without the constant."""
        return np.diag(np.where(self.features.free, 0.0, ridge))

    def add_arrivals(
        self, matrix: np.ndarray, rows: Int[np.ndarray, " some"], weight: Float[np.ndarray, " some"]
    ) -> None:
        """Adds Σ weight φ φ′ᵀ over these rows."""
        if self.action is None or self.features.codes is None:
            matrix += (self.logged[rows] * weight[:, None]).T @ self.after[rows]
            return
        # φ of a discrete action is φ(s) times its code: one product of φ(s) serves every block
        size, shared = self.features.features.size, self.features.codes[0, 0]
        for action, code in enumerate(self.features.codes):
            here = rows[self.action[rows] == action]
            if not len(here):
                continue
            states = self.logged[here, :size] * (weight[self.action[rows] == action] / shared)[:, None]
            found = states.T @ self.after[here]
            for block, part in enumerate(code):
                if part:
                    matrix[block * size : (block + 1) * size] += part * found

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
