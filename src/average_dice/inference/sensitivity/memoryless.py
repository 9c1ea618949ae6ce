"""Bounds on a table of states, for an unrecorded cause that is drawn anew at each step given the recorded state.

    Q(s, a) = max E[λ Y | s, a]   over   low ≤ λ ≤ high,  E[λ | s, a] = 1
    Y = r + γ V(s′),     V(s) = Σ_a π(a|s) Q(s, a)

(Kallus & Zhou, 2020; Bruns-Smith & Zhou, 2023.) The recorded μ must be the true probability given the recorded state
alone; then λ = μ/b averages to 1 in each state and action. The maximum has λ = high for the largest Y, up to a share
τ = (1 − low)/(high − low) of the rows, and λ = low for the others; in odds, τ = 1/(1 + Γ) (Dorn & Guo, 2022).

The fixed point is found by policy iteration: for fixed λ the equations are linear in V; then λ follows from the order
of Y; until V stays the same. At Γ = 1 it is fitted Q evaluation on the table. An action without rows in a state is left
out of π there; a state without rows has the mean of Y over all rows.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable
from average_dice.features.logged_state_actions import number_of_actions, target_actions
from average_dice.features.repeated_states import RepeatedStates
from average_dice.features.state_action import by_action
from average_dice.inference.sensitivity.deviation import Deviation
from average_dice.inference.sensitivity.forms import UPPER, Bounds, Gammas, Side
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample

MOST_STATES = 300  # a linear system of this size is solved several times for each Γ and each resample
MOST_ROUNDS = 100  # policy iteration takes fewer than ten in practice
SAME = 1e-11  # of the largest value: a smaller change is rounding


@dataclass(frozen=True, eq=False)
class Memoryless:
    """Every step may be affected, by a cause that is drawn anew at each step. For states that repeat."""

    deviation: Deviation
    problem: Problem
    policy: Float[np.ndarray, "state action"]  # π(a|s)

    @staticmethod
    def of(deviation: Deviation, problem: Problem) -> "Memoryless":
        """The table of a log. Raises `NotApplicable` with the reason if there is none."""
        number = number_of_actions(problem)
        states = RepeatedStates.of(problem)
        if number is None:
            raise NotApplicable("it needs discrete actions")
        if not states.repeat or states.number > MOST_STATES:
            raise NotApplicable(f"it needs states that repeat, at most {MOST_STATES} of them")
        actions, weights = target_actions(problem, states.observations)
        return Memoryless(deviation, problem, by_action(actions, weights, number))

    @property
    def name(self) -> str:
        """The name in tables."""
        return "by state" if self.problem.dataset.is_one_step else "every step, memoryless"

    @property
    def assumption(self) -> str:
        """What may have been unrecorded."""
        if self.problem.dataset.is_one_step:
            return "The recorded probabilities are right given the recorded state; given more, they may differ."
        return (
            "At every step something unrecorded, drawn anew given the recorded state, may have changed the action; the "
            "recorded probabilities are right given the recorded state alone."
        )

    @property
    def sharpness(self) -> str:
        """Whether the bounds could be narrower under the same assumption."""
        return "sharp for one step and two actions; else slightly conservative: actions are bounded one by one"

    @cached_property
    def states(self) -> RepeatedStates:
        """The numbers of the states."""
        return RepeatedStates.of(self.problem)

    @cached_property
    def pair(self) -> Int[np.ndarray, " transition"]:
        """The pair of state and action of each row, numbered."""
        return self.states.logged * self.policy.shape[1] + self.problem.dataset.action

    @property
    def unlogged(self) -> float:
        """π's mean probability, in the states of the rows, of actions that the log does not have in that state."""
        logged = np.bincount(self.pair, minlength=self.policy.size).reshape(self.policy.shape) > 0
        return float(np.mean((self.policy * ~logged).sum(axis=1)[self.states.logged]))

    def on(self, resample: Resample) -> Bounds:
        """The bounds by these episodes."""
        table = _Resampled.of(self, resample)

        def bounds(gammas: Gammas, side: Side) -> Float[np.ndarray, " gamma"]:
            assert self.problem.dataset.behaviour_log_prob is not None
            found = self.deviation(self.problem.dataset.behaviour_log_prob, gammas)
            low, high = (np.stack([table.mean_of_pair(row) for row in np.exp(part)]) for part in found)
            return np.array([table.extreme(*both, side) for both in zip(low, high, strict=True)])

        return bounds

    def behaviour_value(self, resample: Resample) -> float:
        """The value of the behaviour policy on the same table: its own shares of actions, and every λ = 1."""
        counts = resample.counts[self.problem.episode_index]
        of_pair = np.bincount(self.pair, counts, self.policy.size).reshape(self.policy.shape)
        own = _Resampled.of(replace(self, policy=of_pair / np.maximum(of_pair.sum(axis=1, keepdims=True), 1)), resample)
        same = np.ones(self.policy.size)
        return own.extreme(same, same, UPPER)


@dataclass(frozen=True, eq=False)
class _Resampled:
    """The table of a resample: how often each row counts, and its share in the value of its state."""

    form: Memoryless
    counts: Rows
    of_pair: Float[np.ndarray, " pair"]  # rows of each pair
    share: Rows  # π(a|s) / rows of the pair, with π over the actions that the state has in the resample
    start: Float[np.ndarray, " state"]  # of the episodes

    @staticmethod
    def of(form: Memoryless, resample: Resample) -> "_Resampled":
        states, policy = form.states, form.policy
        counts = resample.counts[form.problem.episode_index]
        of_pair = np.bincount(form.pair, counts, policy.size)
        logged = policy * (of_pair.reshape(policy.shape) > 0)
        mass = logged.sum(axis=1, keepdims=True)
        if mass.max() == 0:
            raise NotApplicable("no logged state has an action that the policy would take")
        scaled = np.divide(logged, mass, out=np.zeros_like(logged), where=mass > 0).ravel()
        share = np.divide(scaled, of_pair, out=np.zeros_like(of_pair), where=of_pair > 0)[form.pair]
        start = np.bincount(states.start, resample.counts, states.number) / resample.counts.sum()
        return _Resampled(form, counts, of_pair, share, start)

    def mean_of_pair(self, rows: Rows) -> Float[np.ndarray, " pair"]:
        """The mean over the rows of each pair; 1 for a pair without rows."""
        sums = np.bincount(self.form.pair, self.counts * rows, len(self.of_pair))
        return np.divide(sums, self.of_pair, out=np.ones_like(sums), where=self.of_pair > 0)

    def extreme(self, low: Float[np.ndarray, " pair"], high: Float[np.ndarray, " pair"], side: Side) -> float:
        """The largest or the smallest value, with λ between these bounds in each pair."""
        problem, states = self.form.problem, self.form.states
        reward = problem.normaliser * problem.dataset.reward
        onwards = problem.discount * ~problem.dataset.terminated
        values = self._solved(self.counts, reward, onwards)
        if (high - low).max() <= 0:  # Γ = 1
            return float(self.start @ values[:-1])
        for _ in range(MOST_ROUNDS):
            targets = reward + onwards * values[states.after]
            improved = self._solved(self._worst(side * targets, low, high), reward, onwards)
            change = np.abs(improved - values).max()
            values = improved
            if change <= SAME * max(np.abs(values).max(), 1e-300):
                break
        return float(self.start @ values[:-1])

    def _worst(self, targets: Rows, low: Float[np.ndarray, " pair"], high: Float[np.ndarray, " pair"]) -> Rows:
        """counts · λ of each row, with λ = high for the largest targets of its pair up to the share τ."""
        pair = self.form.pair
        order = np.lexsort((-targets, pair))
        sorted_pair, counts = pair[order], self.counts[order]
        total = np.cumsum(counts)
        first = np.searchsorted(sorted_pair, sorted_pair)  # the place of the first row of the pair
        ahead = total - counts - (total[first] - counts[first])
        spread = high - low
        top = np.divide(1 - low, spread, out=np.zeros_like(spread), where=spread > 0) * self.of_pair
        largest = np.clip(top[sorted_pair] - ahead, 0.0, counts)
        found = np.empty_like(counts)
        found[order] = low[sorted_pair] * counts + spread[sorted_pair] * largest
        return found

    def _solved(self, weights: Rows, reward: Rows, onwards: Rows) -> Float[np.ndarray, " state_and_mean"]:
        """V of each state with these weights of rows, and last the mean of Y for states without rows."""
        states, number = self.form.states, self.form.states.number
        row = weights * self.share
        system = np.zeros((number + 1, number + 1))
        flat = np.bincount(states.logged * (number + 1) + states.after, row * onwards, number * (number + 1))
        system[:-1] = flat.reshape(number, number + 1)
        right = np.append(np.bincount(states.logged, row * reward, number), 0.0)
        empty = np.bincount(states.logged, self.share * self.counts, number) == 0
        system[:-1, -1] += empty
        total = self.counts.sum()
        system[-1] = np.bincount(states.after, self.counts * onwards, number + 1) / total
        right[-1] = self.counts @ reward / total
        return np.linalg.solve(np.eye(number + 1) - system, right)
