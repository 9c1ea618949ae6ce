"""Products of ratios and critics on the rows of a block."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from average_dice.blocked_problem import BlockedProblem
from average_dice.estimators.blend._passes import Block
from average_dice.estimators.blend._streamed_critics import SolvedSet, continues
from average_dice.problem import Problem


@dataclass(frozen=True, eq=False)
class ProductsByStep:
    """What `_candidates.Products` has on rows, by step."""

    problem: BlockedProblem
    reaches: list[int]
    left: list[float]
    remaining: float
    noise: Float[np.ndarray, " step"]  # without γᵗ

    @staticmethod
    def of(problem: BlockedProblem) -> "ProductsByStep":
        """From the sums of the log."""
        sums, discount = problem.sums, problem.discount
        effective = sums.effective_episodes
        reach = int(np.flatnonzero(effective)[-1]) + 1
        reaches = [2**power for power in range(reach.bit_length()) if 2**power < reach] + [reach]
        shift = sums.log_mean + sums.log_uncensored
        with np.errstate(invalid="ignore"):
            going_on = np.nan_to_num(np.exp(sums.going_on - shift)) / sums.num_episodes
            squares = np.nan_to_num(np.exp(sums.squares - 2 * shift))
        still = (sums.reached - sums.terminated) / sums.num_episodes
        return ProductsByStep(
            problem,
            reaches,
            [float(discount**one * max(going_on[one - 1], still[one - 1])) for one in reaches],
            float(discount**sums.horizon * going_on[-1]),
            np.sqrt(squares / sums.reached) / sums.num_episodes,
        )

    def weight(self, block: Problem) -> np.ndarray:
        """γᵗ W_t on the rows of a block."""
        sums, step = self.problem.sums, block.dataset.step
        logs = sums.over_mean(block.log_product + block.log_ratio, step, sums.log_mean)
        return np.exp(block.log_discount + logs - sums.log_uncensored[step])

    def stage(self, block: Problem) -> Int[np.ndarray, " transition"]:
        """The first reach that includes the row."""
        return np.searchsorted(self.reaches, block.dataset.step + 1)


@dataclass(frozen=True, eq=False)
class OnRows:
    """A set of critics on the rows of a block: values before clipping, TD errors, and what responds to θ."""

    logged_features: np.ndarray
    after_features: np.ndarray
    start_features: np.ndarray
    logged: Float[np.ndarray, "transition critic"]
    target: Float[np.ndarray, "transition critic"]
    td_error: Float[np.ndarray, "transition critic"]
    start: Float[np.ndarray, "episode critic"]
    moves: tuple[np.ndarray, np.ndarray, np.ndarray]  # of logged, after and start: whether within the bounds

    @staticmethod
    def of(block: Block, solved: SolvedSet, bounds: tuple[float, float]) -> "OnRows":
        """The critics of a set on a block."""
        problem, thetas = block.problem, solved.thetas
        phi, phi_after, phi_start = solved.critics.on(block)
        logged, after, start = phi @ thetas, phi_after @ thetas, phi_start @ thetas
        low, high = bounds
        goes_on = continues(problem)[:, None]
        target = problem.normaliser * problem.dataset.reward[:, None] + goes_on * np.clip(after, low, high)
        moves = tuple((one > low) & (one < high) for one in (logged, after, start))
        return OnRows(
            phi,
            phi_after,
            phi_start,
            logged,
            target,
            target - np.clip(logged, low, high),
            np.clip(start, low, high),
            moves,
        )

    def responses(self, block: Problem, weights: Float[np.ndarray, "transition kind"]) -> list[np.ndarray]:
        """Σ weight · dδ/dθ over rows, for each critic: [kind, feature].

        Values at a bound do not respond. They are few, so they are subtracted from the sums over all rows.
        """
        next_weights = continues(block)[:, None] * weights
        whole = next_weights.T @ self.after_features - weights.T @ self.logged_features
        of_logged, of_after, _ = self.moves
        found = []
        for critic in range(self.td_error.shape[1]):
            at_bound, next_at_bound = np.flatnonzero(~of_logged[:, critic]), np.flatnonzero(~of_after[:, critic])
            found.append(
                whole
                + weights[at_bound].T @ self.logged_features[at_bound]
                - next_weights[next_at_bound].T @ self.after_features[next_at_bound]
            )
        return found
