"""The critics of the blend: one for each ridge and each random set of features, each with its own sampling error.

The error of a critic by episode is v(s₀) + ζδ, where ζ = φᵀA⁻ᵀE[φ(s₀)] is how the solution θ = A⁻¹b responds to a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from average_dice.estimators._shared.bounded_td import BoundedTD, Solution
from average_dice.estimators._shared.linear_critic import linear_critic
from average_dice.estimators._shared.ratio_fits import added_by_episode
from average_dice.estimators.blend.row_weights import RowWeights, evenly
from average_dice.estimators.results import Critic
from average_dice.features.logged_state_actions import LoggedStateActions
from average_dice.problem import Episodes, Problem, Rows
from average_dice.resampling import Resample
from average_dice.threads import in_threads

# Quantiles of the steps of all rows: five parts of an episode, the first ones shorter, since γᵗ is largest there.
PARTS = (0.1, 0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class ScoredCritic:
    """A critic's values at the starts, its TD errors on the rows, and its own sampling error by episode.

    `unsettled`: the standard deviation of its value over solutions that did not converge; 0 if they did.
    """

    start: Episodes
    td_error: Rows
    error: Episodes
    unsettled: float = 0.0


@dataclass(frozen=True, eq=False)
class Critics:
    """The equations of all critics on a log, with the solutions and scores of the first of them on the whole log."""

    ridges: tuple[float, ...]
    equations: list[BoundedTD]
    first: list[Solution]
    first_scores: list[ScoredCritic]

    @staticmethod
    def of(
        problem: Problem,
        num_features: int,
        weights: tuple[RowWeights, ...],
        ridges: tuple[float, ...],
        clock: float,
        key: jax.Array,
    ) -> "Critics":
        """One set of equations for each of the weights of rows; and one with the step, if TD errors depend on it."""

        def equations_of(number: int, weight: RowWeights, *, with_step: bool = False) -> BoundedTD:
            key_of = jax.random.fold_in(key, number)
            features = LoggedStateActions.of(problem, num_features, key_of, with_step=with_step)
            return BoundedTD.of(problem, features, weight(problem))

        equations = in_threads(lambda one: equations_of(*one), enumerate(weights))
        whole = Resample.everything(problem)
        (first,) = equations[0].solve(ridges, [whole])
        scores = scored(equations[0], [first], [whole])[0]
        if min(step_dependence(problem, one.td_error) for one in scores) > clock:
            equations.append(equations_of(len(equations), evenly, with_step=True))
        return Critics(ridges, equations, first, scores)

    def learn_log(self) -> tuple[list[ScoredCritic], Critic]:
        """All critics of the log; and the mean over ridges on the first features, for any state."""
        whole = [Resample.everything(self.equations[0].features.problem)]
        rest = [scored(one, one.solve(self.ridges, whole), whole)[0] for one in self.equations[1:]]
        return [*self.first_scores, *(critic for of_one in rest for critic in of_one)], self._mean(self.first)

    def learn(self, resamples: Sequence[Resample]) -> list[tuple[list[ScoredCritic], Critic]]:
        """The same for each resample."""
        solutions = [one.solve(self.ridges, resamples) for one in self.equations]
        scores = [scored(one, solved, resamples) for one, solved in zip(self.equations, solutions, strict=True)]
        return [
            ([critic for of_one in scores for critic in of_one[place]], self._mean(solutions[0][place]))
            for place in range(len(resamples))
        ]

    def _mean(self, solutions: list[Solution]) -> Critic:
        first = self.equations[0]
        theta = np.mean([solution.theta for solution in solutions], axis=0)
        return linear_critic(first.features, theta, (first.low, first.high))


def scored(
    equations: BoundedTD, solutions: list[list[Solution]], resamples: Sequence[Resample]
) -> list[list[ScoredCritic]]:
    """For each resample a critic for each of its solutions, with its errors."""
    features, low, high = equations.features, equations.low, equations.high
    every = [solution for of_one in solutions for solution in of_one]
    thetas = np.column_stack([solution.theta for solution in every])
    start = features.start @ thetas
    counts = np.column_stack([one.counts for one, of_one in zip(resamples, solutions, strict=True) for _ in of_one])
    moves = (start > low) & (start < high)  # a value at a bound does not respond to a row
    pulls = features.start.T @ (moves * counts) / counts.sum(axis=0)
    responses = [solution.system.solve_transposed(pull) for solution, pull in zip(every, pulls.T, strict=True)]
    on_rows = features.logged @ np.column_stack([thetas, *responses])
    found, first = [], 0
    for resample, of_one in zip(resamples, solutions, strict=True):
        columns = slice(first, first + len(of_one))
        logged = on_rows[:, columns]
        response = on_rows[:, len(every) + columns.start : len(every) + columns.stop]
        found.append(_scored(equations, of_one, resample, start[:, columns], logged, response))
        first += len(of_one)
    return found


def _scored(
    equations: BoundedTD,
    solutions: list[Solution],
    resample: Resample,
    start: np.ndarray,
    logged: np.ndarray,
    response: np.ndarray,
) -> list[ScoredCritic]:
    features, low, high = equations.features, equations.low, equations.high
    after = np.column_stack([solution.after for solution in solutions])
    target = equations.reward[:, None] + equations.continues[:, None] * np.clip(after, low, high)
    td_error = resample.of_rows(target - np.clip(logged, low, high))
    counted = equations.unit(resample) * equations.weights[:, None]
    error = resample.of_rows(counted * response * (target - logged))
    start = resample.of_episodes(np.clip(start, low, high))
    return [
        ScoredCritic(
            start[:, one],
            td_error[:, one],
            added_by_episode(resample.problem, error[:, one]),
            _spread(resample.mean_over_episodes(np.clip(features.start @ solution.unsettled, low, high))),
        )
        for one, solution in enumerate(solutions)
    ]


def step_dependence(problem: Problem, td_error: Rows) -> float:
    """By how many standard errors, over episodes, the mean TD error differs from 0 in some part of the episode.

    The TD errors of a critic of states and actions average to 0 in every part, unless something unobserved depends on
    the step.
    """
    data = problem.dataset
    parts = np.searchsorted(np.quantile(data.step, PARTS), data.step, side="right")
    largest = 0.0
    for part in np.unique(parts):
        sums = problem.by_episode(np.where(parts == part, td_error, 0.0))
        error = float(sums.std(ddof=1)) / np.sqrt(len(sums)) if len(sums) > 1 else 0.0
        largest = max(largest, abs(float(sums.mean())) / error if error > 0 else 0.0)
    return largest


def _spread(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
