"""Ready-made policies, for comparison: uniform, constant, ε-greedy, mixtures, and the logged behaviour itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, PolicyError, SettingError
from average_dice.policies.adapters.log_names import action_codes, num_actions
from average_dice.policies.adapters.registry import as_policy
from average_dice.policies.admissible import admissible
from average_dice.policies.base import Actions, Observations, Policy, WeightedActions
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.unbound import UnboundPolicy

ONLY_LOGGED = "it needs π itself, and the behaviour policy is known at the logged actions alone"


def uniform(actions: int | LoggedDataset) -> Policy:
    """The same probability for each of this many actions, or for each admissible action of a log."""
    if isinstance(actions, LoggedDataset):
        if not actions.is_discrete:
            raise SettingError("the log's actions are continuous: there is no uniform policy without bounds.")
        return admissible(uniform(num_actions(actions)), actions)
    if actions < 1:
        raise SettingError(f"give a number of actions of at least 1, not {actions}.")
    return CategoricalPolicy(_Constant(np.zeros(actions), f"uniform, {actions} actions"))


def constant(action: Any, data: LoggedDataset) -> DeterministicPolicy:
    """The same action everywhere: its name or number; for continuous actions its numbers."""
    if data.is_discrete:
        (code,) = action_codes([action], data, "the constant policy")
        if not 0 <= code < (size := num_actions(data)):
            raise PolicyError(f"the constant policy takes action {code}, and the log has actions 0 to {size - 1}.")
        name = data.names.action(int(code))
        return DeterministicPolicy(_Constant(np.asarray(code), f"always {name}"), num_actions=size)
    values = np.atleast_1d(np.asarray(action, np.float64))
    if values.shape != data.action.shape[1:]:
        raise PolicyError(
            f"the action {action} has {values.size} numbers, those of the log have {data.action.shape[1]}."
        )
    return DeterministicPolicy(_Constant(values, f"always {values.tolist()}"))


def epsilon_greedy(policy: Any, epsilon: float, data: LoggedDataset | None = None) -> Policy:
    """The policy's most likely action, and with probability ε a uniform one.

    Of actions that are equally likely, it is the first. If `data` has a mask, both are among the admissible actions.
    """
    if not 0 <= epsilon <= 1:
        raise SettingError(f"epsilon must lie between 0 and 1, not {epsilon}.")
    original = _bound(policy, data)
    if data is not None:
        original = admissible(original, data)

    def logits(observations: Observations) -> np.ndarray:
        probabilities = _probabilities(original, observations)
        allowed = np.ones_like(probabilities)
        if data is not None:
            allowed = _probabilities(uniform(data), observations)
            allowed = np.pad(allowed, ((0, 0), (0, probabilities.shape[1] - allowed.shape[1])))
        found = epsilon * allowed / allowed.sum(axis=1, keepdims=True)
        found[np.arange(len(found)), probabilities.argmax(axis=1)] += 1 - epsilon
        with np.errstate(divide="ignore"):
            return np.log(found)

    return CategoricalPolicy(logits)


def mixture(parts: Sequence[tuple[float, Any]], data: LoggedDataset | None = None) -> Policy:
    """At each step, one of the policies by these weights: π(a|s) = Σ weight · π_k(a|s).

    >>> policy = mixture([(0.25, uniform(2)), (0.75, CategoricalPolicy(lambda rows: np.log([[0.9, 0.1]] * len(rows))))])
    >>> np.exp(policy.log_prob(np.zeros((1, 1)), np.array([0]))).round(3).tolist()
    [0.8]
    """
    weights = np.array([weight for weight, _ in parts], np.float64)
    if not len(weights) or not (weights > 0).all() or abs(weights.sum() - 1) > 1e-9:
        raise SettingError("the weights of a mixture must be above 0 and sum to 1.")
    return Mixture(tuple(weights.tolist()), tuple(_bound(policy, data) for _, policy in parts))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of policies at each step."""

    weights: tuple[float, ...]
    policies: tuple[Policy, ...]

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log Σ weight · π_k(a|s) of each row."""
        parts = [
            np.log(weight) + policy.log_prob(observations, actions)
            for weight, policy in zip(self.weights, self.policies, strict=True)
        ]
        return np.logaddexp.reduce(parts)

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """One action for each row."""
        chosen = generator.choice(len(self.weights), p=self.weights, size=len(observations))
        every = np.stack([policy.sample(observations, generator=generator) for policy in self.policies])
        return every[chosen, np.arange(len(observations))]

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Discrete: every action with its probability. Continuous: the actions of all policies, by their weights."""
        found = [
            policy.weighted_actions(observations, num_draws=num_draws, generator=generator) for policy in self.policies
        ]
        weights = [weight * one for weight, (_, one) in zip(self.weights, found, strict=True)]
        if found[0][0].ndim == 3:
            return np.concatenate([actions for actions, _ in found], axis=1), np.concatenate(weights, axis=1)
        size = max(one.shape[1] for one in weights)
        total = sum(np.pad(one, ((0, 0), (0, size - one.shape[1]))) for one in weights)
        return np.broadcast_to(np.arange(size), (len(observations), size)), np.asarray(total)

    def __repr__(self) -> str:
        parts = (f"{weight:g} {policy!r}" for weight, policy in zip(self.weights, self.policies, strict=True))
        return f"Mixture({' + '.join(parts)})"


def logged_behaviour(data: LoggedDataset) -> "LoggedBehaviour":
    """The policy that made the log, as far as the log knows it: its probabilities of the logged actions.

    Every importance ratio is then 1. Methods that need the probabilities of other actions are not applicable.
    """
    if data.behaviour_log_prob is None:
        raise PolicyError("the log has no behaviour_log_prob column: its behaviour policy is unknown.")
    return LoggedBehaviour(data)


@dataclass(frozen=True, eq=False, repr=False)
class LoggedBehaviour:
    """log μ(a|s) by look-up. The log does not say what else μ might have done."""

    data: LoggedDataset

    def log_prob(self, observations: Observations, actions: Actions) -> Float[np.ndarray, " row"]:
        """log μ(a|s) of logged rows. Raises `NotApplicable` for others."""
        data = self.data
        assert data.behaviour_log_prob is not None
        if np.array_equal(observations, data.observation) and np.array_equal(actions, data.action):
            return data.behaviour_log_prob
        known: dict[bytes, float] = {}
        for name, log_prob in zip(_row_names(data.observation, data.action), data.behaviour_log_prob, strict=True):
            if known.setdefault(name, float(log_prob)) != log_prob:
                raise NotApplicable("the log has several probabilities of one action in one state")
        try:
            return np.array([known[name] for name in _row_names(observations, actions)], np.float64)
        except KeyError:
            raise NotApplicable(ONLY_LOGGED) from None

    def sample(self, observations: Observations, *, generator: np.random.Generator) -> Actions:
        """Raises `NotApplicable`."""
        raise NotApplicable(ONLY_LOGGED)

    def weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """Raises `NotApplicable`."""
        raise NotApplicable(ONLY_LOGGED)

    def __repr__(self) -> str:
        return f"LoggedBehaviour({self.data.num_transitions:,} rows)"


def _row_names(observations: Observations, actions: Actions) -> list[bytes]:
    joined = np.column_stack([observations, np.asarray(actions, np.float64).reshape(len(actions), -1)]) + 0.0
    return [row.tobytes() for row in joined]


@dataclass(frozen=True, eq=False, repr=False)
class _Constant:
    """The same row for every observation."""

    row: np.ndarray
    name: str

    def __call__(self, observations: Observations) -> np.ndarray:
        return np.broadcast_to(self.row, (len(observations), *self.row.shape))

    def __repr__(self) -> str:
        return self.name


def _bound(policy: Any, data: LoggedDataset | None) -> Policy:
    found = as_policy(policy, data)
    if isinstance(found, UnboundPolicy):
        raise PolicyError(f"{found.source}: what it returns depends on the log. Give it as `data`.")
    return found


def _probabilities(policy: Policy, observations: Observations) -> Float[np.ndarray, "row choice"]:
    actions, weights = policy.weighted_actions(observations, num_draws=1, generator=np.random.default_rng(0))
    if actions.ndim != 2:
        raise PolicyError("an ε-greedy policy needs discrete actions, and this policy's are continuous.")
    return weights


BY_NAME = {"uniform": UnboundPolicy(uniform, "uniform"), "behaviour": UnboundPolicy(logged_behaviour, "behaviour")}
