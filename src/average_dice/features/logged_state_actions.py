"""Features of the states and actions of a log: φ(s, a), and its means under π at the next states and at the starts."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np
from jaxtyping import Float, Int

from average_dice import memory
from average_dice.errors import NotApplicable, PolicyError
from average_dice.features.fourier import BLOCK
from average_dice.features.likeness import Likeness, choose
from average_dice.features.state_action import DEVIATIONS, StateActionFeatures
from average_dice.policies.base import WeightedActions
from average_dice.problem import Problem
from average_dice.randomness import generator_from, key_name

# Number of continuous actions of π that are sampled at each state: more are more precise, and cost as much more. Every
# method and every seed uses the same ones, so that results do not differ by them.
NUM_ACTIONS_DRAWN = 8
ACTIONS_SEED = 20251  # any number

STATE_ACTIONS = "random features of states and actions"  # in messages
USUAL_FEATURES = 200  # of the recommended estimator
ROWS_AT_ONCE = 2 * BLOCK  # whose features are made together: this limits the memory of what is in between

ROWS_IN_PRODUCTS = 2**16
BYTES_BY_ACTION = 100  # for each action of π in each of the rows at once, in two threads

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
        """`num_features` random cosines, or fewer if memory is limited; made once for each problem, number and key."""
        number = num_features_within(problem, num_features, with_step=with_step)

        def make() -> LoggedStateActions:
            likeness, features = designed(problem, number, key, with_step=with_step)
            return LoggedStateActions(
                problem, features, with_step, likeness, *features_of_rows(problem, features, with_step)
            )

        name = (LoggedStateActions, number, key_name(key), with_step)
        return problem.once(name, make, of_reward=_chooses_likeness(problem))

    @staticmethod
    def without_rows(problem: Problem, features: StateActionFeatures) -> "LoggedStateActions":
        """Features for any states and actions, but not on the rows of a log."""
        none = np.empty((0, features.size))
        return LoggedStateActions(problem, features, False, None, none, none, none)

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

    def logged_products(self, rows: Int[np.ndarray, " some"], weight: Float[np.ndarray, " some"]) -> np.ndarray:
        """Σ weight φ over these rows."""
        return np.sum([self.logged[rows[part]].T @ weight[part] for part in _parts(len(rows))], axis=0)

    def add_products(
        self, matrix: np.ndarray, rows: Int[np.ndarray, " some"], weight: Float[np.ndarray, " some"]
    ) -> None:
        """Adds Σ weight φ φ′ᵀ over these rows to the matrix."""
        for part in _parts(len(rows)):
            matrix += (self.logged[rows[part]] * weight[part, None]).T @ self.after[rows[part]]


def _parts(num_rows: int) -> list[slice]:
    """Parts of this many rows whose products are summed: copies of all rows would take as much memory as they do."""
    some = memory.rows_at_once(ROWS_IN_PRODUCTS)
    return [slice(start, start + some) for start in range(0, num_rows, some)]


def size_of(problem: Problem, num_features: int, *, with_step: bool = False) -> int:
    """The number of all features with this many random cosines; those of the state if there is no policy."""
    data = problem.dataset
    number = _number_or_one(problem) if data.is_discrete else None
    beside = 0 if data.is_discrete else data.action.shape[1]
    num_inputs = data.encoding.encode(data.observation[:1]).shape[1]
    return StateActionFeatures.size_of(num_inputs + beside + with_step, number, num_features)


def num_features_within(problem: Problem, num_features: int, *, with_step: bool = False) -> int:
    """As many random cosines as fit into memory."""
    size = partial(size_of, problem, with_step=with_step)
    num_rows = problem.dataset.num_transitions
    return memory.features_within(num_features, num_rows, size, STATE_ACTIONS, _bytes_of_actions(problem))


def _bytes_of_actions(problem: Problem) -> int:
    """Bytes of π's probabilities of all actions in the rows that are worked on at once."""
    return BYTES_BY_ACTION * _number_or_one(problem) * memory.rows_at_once(ROWS_AT_ONCE)


def _number_or_one(problem: Problem) -> int:
    try:
        return number_of_actions(problem) or 1
    except (NotApplicable, PolicyError):  # reported where the policy is used
        return 1


def is_tight(problem: Problem) -> bool:
    """Whether memory suffices only for the form that needs the least, with the usual number of features."""
    return memory.is_tight(problem.dataset.num_transitions, size_of(problem, USUAL_FEATURES))


def require_memory(problem: Problem) -> None:
    """Raises an error unless the fewest features fit into memory."""
    data = problem.dataset
    least = memory.need(data.num_transitions, size_of(problem, memory.FEWEST_FEATURES))
    memory.require(
        least + _bytes_of_actions(problem),
        f"a log of {data.num_transitions:,} rows with {memory.FEWEST_FEATURES} {STATE_ACTIONS}",
    )


def likeness_of(problem: Problem) -> Likeness | None:
    """The likeness of many discrete actions, chosen once for each problem; None if nothing is chosen.

    Each of two or three actions has rows enough of its own: choosing gained nothing on CartPole, and the error on
    Acrobot grew by 1.5 %.
    """
    if not _chooses_likeness(problem):
        return None

    def make() -> Likeness:
        number = memory.halved(
            FEATURES_FOR_LIKENESS,
            problem.dataset.num_transitions,
            partial(size_of, problem),
            _bytes_of_actions(problem),
        )
        features = _drawn(problem, number, np.random.default_rng(LIKENESS_SEED), with_step=False)
        logged, after, _ = features_of_rows(problem, features, with_step=False)
        return choose(problem, features, logged, after)

    return problem.once(Likeness, make)


def _chooses_likeness(problem: Problem) -> bool:
    number = number_of_actions(problem)
    return number is not None and number > FEW_ACTIONS and problem.dataset.num_episodes > 1


def designed(
    problem: Problem, num_features: int, key: jax.Array, *, with_step: bool
) -> tuple[Likeness | None, StateActionFeatures]:
    """Features on the scale and with the bandwidth of this log, and the likeness of its actions."""
    likeness = likeness_of(problem)
    features = _drawn(problem, num_features, generator_from(key), with_step=with_step)
    return likeness, features if likeness is None else replace(features, likeness=likeness.value)


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


def features_of_rows(
    problem: Problem, features: StateActionFeatures, with_step: bool, seed: int | tuple[int, int] = ACTIONS_SEED
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """φ(s, a), E_π[φ(s′, a)] (zero where the episode terminated) and E_π[φ(s₀, a)].

    `seed`: of the continuous actions of π that are sampled.
    """
    data = problem.dataset

    def mean(observations: np.ndarray, step: np.ndarray) -> np.ndarray:
        return _mean_under_target(problem, features, observations, step if with_step else None, seed)

    inputs = _logged_inputs(problem, with_step)
    logged = np.empty((data.num_transitions, features.size))
    some = memory.rows_at_once(ROWS_AT_ONCE)
    for start in range(0, len(logged), some):
        rows = slice(start, start + some)
        logged[rows] = features(inputs[rows], data.action[rows])
    if data.terminated.all():
        after = np.zeros(logged.shape)
    else:
        after = mean(data.next_observation, data.step + 1)
        after[data.terminated] = 0.0
    return logged, after, mean(problem.start_observation, np.zeros(data.num_episodes))


def _logged_inputs(problem: Problem, with_step: bool) -> np.ndarray:
    inputs = problem.dataset.encoding.encode(problem.dataset.observation)
    return _with_step(inputs, problem.dataset.step) if with_step else inputs


def _with_step(inputs: np.ndarray, step: np.ndarray) -> np.ndarray:
    return np.column_stack([inputs, step])


def _mean_under_target(
    problem: Problem,
    features: StateActionFeatures,
    observations: np.ndarray,
    step: np.ndarray | None,
    seed: int | tuple[int, int] = ACTIONS_SEED,
) -> Float[np.ndarray, "row feature"]:
    inputs = problem.dataset.encoding.encode(observations)
    inputs = inputs if step is None else _with_step(inputs, step)
    found = np.empty((len(inputs), features.size))
    generator, some = np.random.default_rng(seed), memory.rows_at_once(ROWS_AT_ONCE)
    for start in range(0, len(inputs), some):
        rows = slice(start, start + some)
        weighted = problem.target_actions(observations[rows], num_draws=NUM_ACTIONS_DRAWN, generator=generator)
        found[rows] = features.expected(inputs[rows], *weighted)
    return found
