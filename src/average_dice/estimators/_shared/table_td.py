"""Fitted Q evaluation on a table, with shrinkage: for states that repeat and discrete actions.

    q(s, a) = (Σ_{rows of s, a} y + m₁ u(s)) / (N(s, a) + m₁)
    u(s)    = (Σ_{rows of s} y + m₂ g) / (N(s) + m₂)            g = the mean of y over all rows
    y       = (1 − γ) r + γ m v(s′),                            v(s) = Σ_a π(a|s) q(s, a)

A pair of state and action with few rows is drawn towards its state, a state with few rows towards the whole, and a
state without rows has the value g. The equations are linear in v and g, with as many unknowns as there are states.
Values are averages of rewards, so they stay within their bounds. The strengths m₁ and m₂ are chosen on held-out
episodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Float, Int

from average_dice.errors import NotApplicable
from average_dice.estimators.results import Critic, LoggedValues
from average_dice.features.logged_state_actions import number_of_actions, target_actions
from average_dice.features.repeated_states import RepeatedStates
from average_dice.features.state_action import by_action
from average_dice.linear_systems import LinearSystem
from average_dice.problem import Episodes, Problem, Rows
from average_dice.resampling import Resample

Strengths = tuple[float, float]  # m₁ and m₂, in rows

OF_PAIRS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)  # from almost no shrinkage to one value for a state
OF_STATES = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
FIRST = (5.0, 5.0)  # of the critic in the targets that strengths are chosen by
NUM_FOLDS = 5  # of whole episodes


@dataclass(frozen=True, eq=False)
class TableTD:
    """The equations of a log; `solve` them on a resample of its episodes."""

    problem: Problem
    states: RepeatedStates
    policy: Float[np.ndarray, "state action"]  # π(a|s)

    @staticmethod
    def of(problem: Problem) -> "TableTD":
        """The equations of a log with discrete actions."""
        number = number_of_actions(problem)
        if number is None:
            raise NotApplicable("it needs discrete actions")
        states = RepeatedStates.of(problem)
        actions, weights = target_actions(problem, states.observations)
        return TableTD(problem, states, by_action(actions, weights, number))

    @cached_property
    def pair(self) -> Int[np.ndarray, " transition"]:
        """The pair of state and action of each row, numbered."""
        return self.states.logged * self.policy.shape[1] + self.problem.dataset.action

    @cached_property
    def unlogged(self) -> float:
        """π's mean probability, in the states of the rows, of actions that the log does not have in that state."""
        logged = np.bincount(self.pair, minlength=self.policy.size).reshape(self.policy.shape) > 0
        return float(np.mean((self.policy * ~logged).sum(axis=1)[self.states.logged]))

    @cached_property
    def reward(self) -> Rows:
        """(1 − γ) r."""
        return self.problem.normaliser * self.problem.dataset.reward

    @cached_property
    def continues(self) -> Rows:
        """γ m."""
        return self.problem.discount * ~self.problem.dataset.terminated

    def choose_strengths(self) -> Strengths:
        """The strengths with the least squared error on held-out episodes; targets are those of a first critic."""
        data = self.problem.dataset
        targets = self.solve(FIRST, Resample.everything(self.problem)).targets
        fold = self.problem.episode_index % min(NUM_FOLDS, data.num_episodes)
        errors = dict.fromkeys(product(OF_PAIRS, OF_STATES), 0.0)
        for one in range(int(fold.max()) + 1):
            table = _Table.of(self, (fold != one).astype(np.float64), targets)
            held = np.flatnonzero(fold == one)
            for strengths in errors:
                predicted = table.q_of(strengths, self.states.logged[held], data.action[held])
                errors[strengths] += float(np.sum((targets[held] - predicted) ** 2))
        return min(errors, key=lambda strengths: errors[strengths])

    def solve(self, strengths: Strengths, resample: Resample) -> "TableSolution":
        """The solution on a resample."""
        number, after = self.states.number, self.states.after
        counts = resample.counts[self.problem.episode_index]
        table = _Table.of(self, counts, self.reward)
        to_pair, to_state, to_whole = table.shares(strengths)
        # v = B v + b + h g in each state, g = d v + d₀ g + g₀ over all rows; the last unknown is g
        row = counts * (to_pair[self.states.logged, self.problem.dataset.action] + to_state[self.states.logged])
        system = np.zeros((number + 1, number + 1))
        flat = np.bincount(self.states.logged * (number + 1) + after, row * self.continues, number * (number + 1))
        system[:-1] = flat.reshape(number, number + 1)
        system[:-1, -1] += to_whole
        total = counts.sum()
        system[-1] = np.bincount(after, counts * self.continues, number + 1) / total
        right = np.append(np.bincount(self.states.logged, row * self.reward, number), counts @ self.reward / total)
        factored = LinearSystem(np.eye(number + 1) - system)
        return TableSolution(self, strengths, resample, counts, factored, factored.solve(right))


@dataclass(frozen=True, eq=False)
class _Table:
    """Sums of targets and numbers of rows, by pair of state and action."""

    policy: Float[np.ndarray, "state action"]
    sums: Float[np.ndarray, "state action"]
    numbers: Float[np.ndarray, "state action"]

    @staticmethod
    def of(equations: TableTD, counts: Rows, targets: Rows) -> "_Table":
        shape = equations.policy.shape
        size = shape[0] * shape[1]
        sums = np.bincount(equations.pair, counts * targets, size).reshape(shape)
        return _Table(equations.policy, sums, np.bincount(equations.pair, counts, size).reshape(shape))

    def whole(self) -> float:
        """g."""
        return float(self.sums.sum() / self.numbers.sum())

    def u(self, strengths: Strengths) -> Float[np.ndarray, " state"]:
        """The value that the pairs of each state are drawn to."""
        return (self.sums.sum(axis=1) + strengths[1] * self.whole()) / (self.numbers.sum(axis=1) + strengths[1])

    def q(self, strengths: Strengths) -> Float[np.ndarray, "state action"]:
        """The value of each pair."""
        return (self.sums + strengths[0] * self.u(strengths)[:, None]) / (self.numbers + strengths[0])

    def q_of(self, strengths: Strengths, states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, " pair"]:
        """The values of these pairs alone: with many actions, far fewer than all."""
        first, drawn_to = strengths[0], self.u(strengths)[states]
        return (self.sums[states, actions] + first * drawn_to) / (self.numbers[states, actions] + first)

    def shares(self, strengths: Strengths) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How v(s) depends on a row's target: by its pair [state, action], by its state, and on g by the whole."""
        to_pair = self.policy / (self.numbers + strengths[0])
        drawn = strengths[0] * to_pair.sum(axis=1)
        of_state = self.numbers.sum(axis=1) + strengths[1]
        return to_pair, drawn / of_state, drawn * strengths[1] / of_state


@dataclass(frozen=True, eq=False)
class TableSolution:
    """The solution: `values` are v of each state and, last, g, the value of unknown states."""

    equations: TableTD
    strengths: Strengths
    resample: Resample
    counts: Rows
    system: LinearSystem
    values: Float[np.ndarray, " state_and_unknown"]

    @cached_property
    def targets(self) -> Rows:
        """y of each row of the whole log."""
        return self.equations.reward + self.equations.continues * self.values[self.equations.states.after]

    @cached_property
    def _table(self) -> _Table:
        return _Table.of(self.equations, self.counts, self.targets)

    @cached_property
    def q(self) -> Float[np.ndarray, "state_and_unknown action"]:
        """q of each state and action; of unknown states, g."""
        found = self._table.q(self.strengths)
        return np.vstack([found, np.full((1, found.shape[1]), self.values[-1])])

    def logged(self) -> LoggedValues:
        """On the rows of the resample."""
        states, data = self.equations.states, self.equations.problem.dataset
        q = self.q[states.logged, data.action]
        after = np.where(data.terminated, 0.0, self.values[states.after])
        return LoggedValues(
            self.resample.of_rows(q), self.resample.of_rows(after), self.resample.of_episodes(self.values[states.start])
        )

    def critic(self) -> Critic:
        """q and v at any state and action."""
        states = self.equations.states
        return Critic(
            lambda observations, actions: self.q[states.find(observations), actions],
            lambda observations: self.values[states.find(observations)],
            self.logged(),
        )

    def error(self) -> Episodes:
        """The effect of each episode of the resample on the mean of v(s₀), times the number of episodes.

        This is the jackknife to first order: how the solution responds to a row, times the distance of its target from
        the mean that it enters. That mean is taken without the row itself.
        """
        states, problem = self.equations.states, self.equations.problem
        data, counts = problem.dataset, self.counts
        table, (first, second) = self._table, self.strengths
        starts = np.bincount(states.start, self.resample.counts, states.number + 1) / self.resample.counts.sum()
        response = self.system.solve_transposed(starts)
        to_pair, to_state, _ = table.shares(self.strengths)
        pair_size = table.numbers[states.logged, data.action] + first
        state_size = table.numbers.sum(axis=1)[states.logged] + second
        seen = counts > 0

        def apart(mean: Rows, size: Rows) -> Rows:
            return np.divide((self.targets - mean) * size, size - 1, out=np.zeros(len(size)), where=seen & (size > 1))

        of_pair = to_pair[states.logged, data.action] * apart(self.q[states.logged, data.action], pair_size)
        of_state = to_state[states.logged] * apart(table.u(self.strengths)[states.logged], state_size)
        of_whole = response[-1] * (self.targets - table.whole()) / counts.sum()
        rows = response[states.logged] * (of_pair + of_state) + of_whole
        by_episode = self.resample.of_episodes(problem.by_episode(rows))
        return by_episode * len(by_episode)


def solutions(equations: TableTD, strengths: Strengths, resamples: Sequence[Resample]) -> list[TableSolution]:
    """The solution on each resample."""
    return [equations.solve(strengths, resample) for resample in resamples]
