"""The critics of the blend on a log in blocks: the same equations as `BoundedTD`, from sums over blocks.

    E[φ (φ − γ m φ′)ᵀ] θ = (1 − γ) E[φ r]

One pass forms the sums. Each further pass looks where v(s′) = φ′ᵀθ reaches a bound, and adds what changes there: no
state is kept for a row, because the last two solutions say what it was. Without rows at a bound there is one such pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.blocked_problem import BlockedProblem
from average_dice.estimators._shared.bounded_td import MAX_SOLUTIONS
from average_dice.estimators.blend._passes import Block, total
from average_dice.estimators.blend.row_weights import RowWeights
from average_dice.features.state_action import StateActionFeatures
from average_dice.linear_systems import LinearSystem
from average_dice.problem import Problem
from average_dice.threads import in_threads

Bounds = tuple[float, float]
Changes = dict[int, tuple[np.ndarray, np.ndarray]]  # of the matrix and the right side, by the place of the critic


@dataclass(frozen=True, eq=False)
class CriticSet:
    """Critics with the same features and weights of rows."""

    features: StateActionFeatures
    with_step: bool
    weight: RowWeights

    def on(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """φ(s, a), E_π[φ(s′, a)] and E_π[φ(s₀, a)] of a block."""
        return block.features(self.features, self.with_step)


@dataclass(frozen=True, eq=False)
class CriticSums:
    """Σ ω φ (φ − γ m φ′)ᵀ, Σ ω φ (1 − γ) r and Σ ω over rows."""

    matrix: Float[np.ndarray, "feature feature"]
    right: Float[np.ndarray, " feature"]
    weight: float

    @staticmethod
    def of(block: Block, critics: CriticSet) -> "CriticSums":
        """Of a block."""
        problem = block.problem
        logged, after, _ = critics.on(block)
        weight = critics.weight(problem)
        weighted = weight[:, None] * logged
        np.multiply(after, continues(problem)[:, None], out=after)
        np.subtract(logged, after, out=after)
        reward = problem.normaliser * problem.dataset.reward
        return CriticSums(weighted.T @ after, weighted.T @ reward, float(weight.sum()))

    def merge(self, other: "CriticSums") -> "CriticSums":
        """Of both."""
        return CriticSums(self.matrix + other.matrix, self.right + other.right, self.weight + other.weight)


@dataclass(eq=False)
class SolvedCritic:
    """A critic: its last system and θ, which is the mean of the last few if they did not converge (`unsettled`)."""

    ridge: float
    matrix: Float[np.ndarray, "feature feature"]
    right: Float[np.ndarray, " feature"]
    thetas: list[np.ndarray] = field(default_factory=list)
    unsettled: Float[np.ndarray, "feature solution"] | None = None
    system: LinearSystem = field(init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Workers need the last θ, not the systems, which are matrices."""
        return {"ridge": self.ridge, "thetas": self.thetas[-1:]}

    @property
    def theta(self) -> Float[np.ndarray, " feature"]:
        """The last solution."""
        return self.thetas[-1]

    def solve(self) -> None:
        """The next solution."""
        self.system = LinearSystem(self.matrix)
        self.thetas.append(self.system.solve(self.right))


@dataclass(frozen=True, eq=False)
class SolvedSet:
    """The critics of one set of features, one for each ridge."""

    critics: CriticSet
    weight: float  # Σ ω
    solved: list[SolvedCritic]

    @property
    def thetas(self) -> Float[np.ndarray, "feature critic"]:
        """θ of each."""
        return np.column_stack([one.theta for one in self.solved])


def continues(problem: Problem) -> np.ndarray:
    """γ m of each row."""
    return problem.discount * ~problem.dataset.terminated


def solve_critics(problem: BlockedProblem, sets: Sequence[CriticSet], ridges: Sequence[float]) -> list[SolvedSet]:
    """All critics, with values within the bounds of the rewards."""
    found = []
    every = total(partial(_sums_of, sets), _merge_sums, problem)
    for one, sums in zip(sets, every, strict=True):
        matrix, right = sums.matrix / sums.weight, sums.right / sums.weight
        penalty = np.where(one.features.free, 0.0, 1.0)
        solved = [SolvedCritic(ridge, matrix + np.diag(ridge * penalty), right.copy()) for ridge in ridges]
        found.append(SolvedSet(one, sums.weight, solved))
    _settle(problem, found)
    return found


def _sums_of(sets: Sequence[CriticSet], block: Block) -> list[CriticSums]:
    return [CriticSums.of(block, one) for one in sets]


def _merge_sums(left: list[CriticSums], right: list[CriticSums]) -> list[CriticSums]:
    return [old.merge(new) for old, new in zip(left, right, strict=True)]


def _settle(problem: BlockedProblem, sets: list[SolvedSet]) -> None:
    """Solves until no row reaches or leaves a bound, or a few times."""
    moving = [(one, critic) for one in sets for critic in one.solved]
    for _ in range(MAX_SOLUTIONS):
        in_threads(lambda one: one[1].solve(), moving)
        changed = _hold(problem, sets, [critic for _, critic in moving])
        moving = [(one, critic) for one, critic in moving if id(critic) in changed]
        if not moving:
            return
    for _, critic in moving:
        critic.unsettled = np.column_stack(critic.thetas[-MAX_SOLUTIONS // 2 :])
        critic.thetas.append(critic.unsettled.mean(axis=1))


def _hold(problem: BlockedProblem, sets: list[SolvedSet], moving: list[SolvedCritic]) -> set[int]:
    """Replaces v(s′) that reached a bound by the bound, and bootstraps again where it left one; which critics change.

    What each row was before follows from the solution before the last.
    """
    among = {id(one) for one in moving}
    critics = [critic for one in sets for critic in one.solved]
    place_of = {id(critic): place for place, critic in enumerate(critics)}
    working = [
        Iterate(
            one.critics,
            one.weight,
            {place_of[id(critic)]: critic.thetas[-2:] for critic in one.solved if id(critic) in among},
        )
        for one in sets
    ]
    changes = total(partial(_changes_of, [one for one in working if one.thetas], problem.value_bounds), _merge, problem)
    for place, (matrix, right) in changes.items():
        critics[place].matrix += matrix
        critics[place].right += right
    return {id(critics[place]) for place in changes}


@dataclass(frozen=True, eq=False)
class Iterate:
    """The critics of a set that still change: the last two solutions of each, by its place among all critics."""

    critics: CriticSet
    weight: float  # Σ ω
    thetas: dict[int, list[np.ndarray]]


def _changes_of(sets: list[Iterate], bounds: Bounds, block: Block) -> Changes:
    return {place: change for one in sets for place, change in _changes(block, one, bounds).items()}


def _merge(left: Changes, right: Changes) -> Changes:
    found = dict(left)
    for place, (matrix, vector) in right.items():
        found[place] = (left[place][0] + matrix, left[place][1] + vector) if place in left else (matrix, vector)
    return found


def _changes(block: Block, of_set: Iterate, bounds: Bounds) -> Changes:
    """What the rows of a block add to the matrix and to the right side of each critic that changes there."""
    logged, after, _ = of_set.critics.on(block)
    share = of_set.critics.weight(block.problem) * continues(block.problem) / of_set.weight
    found = {}
    for place, thetas in of_set.thetas.items():
        now = _at_bound(after @ thetas[-1], bounds)
        before = _at_bound(after @ thetas[-2], bounds) if len(thetas) > 1 else np.zeros_like(now)
        rows = np.flatnonzero((now != before) & (share > 0))
        if len(rows):
            weight, phi = share[rows], logged[rows]
            matrix = (phi * (weight * (np.abs(now) - np.abs(before))[rows])[:, None]).T @ after[rows]
            right = phi.T @ (weight * (_bound(now[rows], bounds) - _bound(before[rows], bounds)))
            found[place] = (matrix, right)
    return found


def _at_bound(values: np.ndarray, bounds: Bounds) -> np.ndarray:
    """−1 at the lower bound, 1 at the upper, 0 between."""
    return (values >= bounds[1]).astype(np.int8) - (values <= bounds[0])


def _bound(held: np.ndarray, bounds: Bounds) -> np.ndarray:
    return np.where(held > 0, bounds[1], np.where(held < 0, bounds[0], 0.0))
