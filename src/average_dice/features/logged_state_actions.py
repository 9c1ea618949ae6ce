"""Features of the states and actions of a log: φ(s, a), and its means under π at the next states and at the starts."""

from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import PolicyError
from average_dice.features.likeness import Likeness, choose
from average_dice.features.state_action import DEVIATIONS, StateActionFeatures
from average_dice.policies.base import WeightedActions
from average_dice.problem import Problem
from average_dice.randomness import generator_from, key_name

# Number of continuous actions of π that are sampled at each state: more are more precise, and cost as much more. Every
# method and every seed uses the same ones, so that results do not differ by them.
NUM_ACTIONS_DRAWN = 8
ACTIONS_SEED = 20251  # any number

FEATURES_FOR_LIKENESS = 100  # half of the default: the choice is coarse, and costs less
LIKENESS_SEED = 20252  # any number
FEW_ACTIONS = DEVIATIONS + 1  # whose deviations have all features


def target_actions(problem: Problem, observations: np.ndarray) -> WeightedActions:
    """Actions of π at these observations: all of them with their probabilities, or a few that are sampled."""
    generator = np.random.default_rng(ACTIONS_SEED)
    return problem.target_actions(observations, num_draws=NUM_ACTIONS_DRAWN, generator=generator)


def number_of_actions(problem: Problem) -> int | None:
    """The number of discrete actions, of the mask or of π; None if actions are continuous."""
    if not problem.dataset.is_discrete:
        return None
    if problem.dataset.action_mask is not None:
        return int(problem.dataset.action_mask.shape[1])
    actions, _ = target_actions(problem, problem.start_observation[:1])
    number, seen = int(actions.max()) + 1, int(problem.dataset.action.max())
    if seen >= number:
        raise PolicyError(
            f"the log has action {seen}, the policy has actions 0 to {number - 1}. "
            "Give the policy that belongs to this log."
        )
    described = problem.dataset.action_features
    if described is not None and len(described) != number:
        raise PolicyError(
            f"action_features have {len(described)} rows, the policy has actions 0 to {number - 1}. "
            "Give one row for each action, in this order."
        )
    return number


@dataclass(frozen=True, eq=False)
class LoggedStateActions:
    """The features on the rows of the log, in float64.

    `with_step`: the step is one more input beside the observation.
    """

    problem: Problem
    features: StateActionFeatures
    with_step: bool
    likeness: Likeness | None  # kept here, so that it lives as long as the features
    logged: Float[np.ndarray, "transition feature"]  # φ(s, a)
    after: Float[np.ndarray, "transition feature"]  # E_π[φ(s′, a)], zero where the episode terminated
    start: Float[np.ndarray, "episode feature"]  # E_π[φ(s₀, a)]

    @staticmethod
    def of(problem: Problem, num_features: int, key: jax.Array, *, with_step: bool = False) -> "LoggedStateActions":
        """`num_features` random cosines; made once for each problem, number and key."""

        def make() -> LoggedStateActions:
            likeness = likeness_of(problem)
            features = _drawn(problem, num_features, generator_from(key), with_step=with_step)
            features = features if likeness is None else replace(features, likeness=likeness.value)
            return LoggedStateActions(problem, features, with_step, likeness, *_on_rows(problem, features, with_step))

        return problem.once((LoggedStateActions, num_features, key_name(key), with_step), make)

    def at(
        self, observations: Float[np.ndarray, "row observation"], actions: np.ndarray
    ) -> Float[np.ndarray, "row feature"]:
        """φ(s, a) at any states and actions, at step 0 if the step is an input."""
        inputs = self.problem.dataset.encoding.encode(observations)
        return self.features(_with_step(inputs, np.zeros(len(inputs))) if self.with_step else inputs, actions)

    def expected(self, observations: Float[np.ndarray, "row observation"]) -> Float[np.ndarray, "row feature"]:
        """E_π[φ(s, a)] at any states, at step 0 if the step is an input."""
        step = np.zeros(len(observations)) if self.with_step else None
        return _mean_under_target(self.problem, self.features, observations, step)

    def penalty(self, ridge: float) -> Float[np.ndarray, "feature feature"]:
        """λ I, without the constant."""
        return np.diag(np.where(self.features.free, 0.0, ridge))

    def add_products(
        self, matrix: np.ndarray, rows: Int[np.ndarray, " some"], weight: Float[np.ndarray, " some"]
    ) -> None:
        """Adds Σ weight φ φ′ᵀ over these rows to the matrix."""
        matrix += (self.logged[rows] * weight[:, None]).T @ self.after[rows]


def likeness_of(problem: Problem) -> Likeness | None:
    """The likeness of many discrete actions, chosen once for each problem; None if nothing is chosen.

    Each of two or three actions has rows enough of its own: choosing gained nothing on CartPole, and the error on
    Acrobot grew by 1.5 %.
    """
    number = number_of_actions(problem)
    if number is None or number <= FEW_ACTIONS or problem.dataset.num_episodes < 2:
        return None

    def make() -> Likeness:
        features = _drawn(problem, FEATURES_FOR_LIKENESS, np.random.default_rng(LIKENESS_SEED), with_step=False)
        logged, after, _ = _on_rows(problem, features, with_step=False)
        return choose(problem, features, logged, after)

    return problem.once(Likeness, make)


def _drawn(
    problem: Problem, num_features: int, generator: np.random.Generator, *, with_step: bool
) -> StateActionFeatures:
    data = problem.dataset
    return StateActionFeatures.draw(
        _logged_inputs(problem, with_step),
        data.action,
        number_of_actions(problem),
        num_features,
        generator,
        data.action_features,
    )


def _on_rows(
    problem: Problem, features: StateActionFeatures, with_step: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """φ(s, a), E_π[φ(s′, a)] (zero where the episode terminated) and E_π[φ(s₀, a)]."""
    data = problem.dataset

    def mean(observations: np.ndarray, step: np.ndarray) -> np.ndarray:
        return _mean_under_target(problem, features, observations, step if with_step else None)

    after = mean(data.next_observation, data.step + 1)
    return (
        features(_logged_inputs(problem, with_step), data.action),
        np.where(data.terminated[:, None], 0.0, after),
        mean(problem.start_observation, np.zeros(data.num_episodes)),
    )


def _logged_inputs(problem: Problem, with_step: bool) -> np.ndarray:
    inputs = problem.dataset.encoding.encode(problem.dataset.observation)
    return _with_step(inputs, problem.dataset.step) if with_step else inputs


def _with_step(inputs: np.ndarray, step: np.ndarray) -> np.ndarray:
    return np.column_stack([inputs, step])


def _mean_under_target(
    problem: Problem, features: StateActionFeatures, observations: np.ndarray, step: np.ndarray | None
) -> Float[np.ndarray, "row feature"]:
    inputs = problem.dataset.encoding.encode(observations)
    inputs = inputs if step is None else _with_step(inputs, step)
    return features.expected(inputs, *target_actions(problem, observations))
