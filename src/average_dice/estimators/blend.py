"""The recommended estimator: doubly robust estimates of every reach, blended by what the log says about their errors.

A critic q with δ = (1 − γ) r + γ m v(s′) − q(s, a) gives, for every j, the estimate that trusts products of ratios for
j steps and the critic from there on, and one more with the weights of Average-DICE:

    J_j = E[v(s₀)] + (1/K) Σ_{rows, t<j} γᵗ W_t δ_t          W_t = ρ_{0:t} over its mean over episodes
    J_w = E[v(s₀)] + mean of w ρ δ / (1 − γ)

j = 0 is fitted Q, j = ∞ is weighted DR. There is a critic for each of several ridges on each of several draws of
features. No single one of all these is best on every log: products collapse where π and μ differ, ridges bias, critics
extrapolate. How far each can be trusted is estimated from episodes:

- the starts and the critic: v(s₀) + γʲ ζδ, where ζ = φᵀA⁻ᵀE[φ(s₀)] is how the solution θ = A⁻¹b answers to a row. The
  factor γʲ because the ratios have mended the first j steps.
- the products: γᵗ δ_t / √ESS_t summed over t < j, where ESS_t is the effective number of episodes at step t. The size
  of δ is taken from all episodes: the weighted ones alone would show no spread when only one of them is left.

`combine` does the rest. Its reference is the mean of the estimates that are corrected as far as the log goes. What it
says of its own error is in sample, the least among many, and too small: use it to compare, not as an interval.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from ..errors import NotApplicable
from ..problem import Problem
from .average_dice import AverageDICE
from .base import Critic, Estimator, Fit
from .bounded_q import BoundedEquations
from .combination import combine
from .doubly_robust import by_decision_over_mean
from .pair_features import LinearProblem, bounds, solve
from .weighting import Rows, is_cut

Episodes = Float[np.ndarray, " episode"]


@dataclass(frozen=True, eq=False)
class LinearCritic:
    """A critic's values at the starts, its δ on the rows, and its own sampling error by episode."""

    start: Episodes
    surprise: Rows
    error: Episodes


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimate by "values" alone, corrected by "products" or by the "ratio", with its errors by episode.

    `full`: corrected by products as far as the log goes, or by nothing if there is nothing to correct by.
    """

    kind: str
    full: bool
    value: float
    errors: Episodes


@dataclass(frozen=True)
class Blend(Estimator):
    """Critics on `num_draws` draws of `num_features` Fourier features, with each of the `ridges`.

    `ratio` gives the weights of rows. `overlap`: how many standard errors apart two estimates may be by chance.
    Without a policy object there are no critics, and the answer is that of `ratio`; without μ there are no ratios, and
    the critics stand alone.
    """

    num_features: int = 200
    num_draws: int = 2
    ridges: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    ratio: AverageDICE = AverageDICE()
    overlap: float = 2.0

    def fit(self, problem: Problem, *, key: jax.Array) -> Fit:
        try:
            with threadpool_limits(1, "blas"):  # threads that wait for each other cost more than they bring
                critics, mean_critic = self._learn(problem, key)
        except NotApplicable as reason:
            alone = self.ratio.fit(problem, key=key)
            return Fit(
                alone.value,
                alone.weights,
                alone.ratio_function,
                diagnostics=alone.diagnostics,
                notes=(*alone.notes, f"by ratios alone: {reason}"),
            )
        try:
            weighting = self.ratio.fit(problem, key=key)
            notes = [note for note in weighting.notes if note not in self.ratio.choices(problem)]
            notes += ["beyond the cut the critics stand for the rest"] if is_cut(problem) else []
        except NotApplicable as reason:
            weighting, notes = None, [f"by values alone: {reason}"]
        candidates = [
            candidate
            for critic in critics
            for candidate in _candidates(problem, critic, None if weighting is None else weighting.weights)
        ]
        full = np.array([candidate.full for candidate in candidates])
        values = np.array([candidate.value for candidate in candidates])
        errors = np.array([candidate.errors for candidate in candidates])
        found = combine(values, errors, full / full.sum(), overlap=self.overlap)
        shares = {
            f"share_by_{kind}": float(found.weights[[candidate.kind == kind for candidate in candidates]].sum())
            for kind in ("values", "products", "ratio")
        }
        return Fit(
            float(np.clip(found.value, *bounds(problem))),
            ratio_function=None if weighting is None else weighting.ratio_function,
            critic=mean_critic,
            diagnostics={
                "in_sample_error": found.standard_error,
                "reference": float(values[full].mean()),
                **shares,
                **({} if weighting is None else {"effective_episodes": problem.effective_episodes}),
            },
            notes=tuple(notes),
        )

    def _learn(self, problem: Problem, key: jax.Array) -> tuple[list[LinearCritic], Critic]:
        """All critics; and the mean over ridges of the first draw, which a user may ask about any state."""
        critics = []
        for draw in range(self.num_draws):
            linear = LinearProblem.of(problem, self.num_features, jax.random.fold_in(key, draw))
            equations = BoundedEquations.of(problem, linear)
            low, high = equations.low, equations.high
            solutions = [equations.solve(ridge) for ridge in self.ridges]
            if draw == 0:
                mean_critic = linear.critic(np.mean([solution.theta for solution in solutions], axis=0), low, high)
            for solution in solutions:
                start, logged = linear.start @ solution.theta, linear.logged @ solution.theta
                after = np.clip(linear.after @ solution.theta, low, high)
                target = equations.reward + equations.passed_on * after
                moves = (start > low) & (start < high)  # at a bound nothing answers
                answer = linear.logged @ solve(solution.system.T, (linear.start * moves[:, None]).mean(axis=0))
                critics.append(
                    LinearCritic(
                        np.clip(start, low, high),
                        target - np.clip(logged, low, high),
                        _by_episode(problem, answer * (target - logged)),
                    )
                )
        return critics, mean_critic


def _candidates(problem: Problem, critic: LinearCritic, weights: Rows | None) -> list[Candidate]:
    """Every estimate that the critic takes part in; its values alone where there are no `weights` of rows."""
    data, discount, num_episodes = problem.dataset, problem.discount, problem.dataset.num_episodes
    direct = float(critic.start.mean())
    starts = critic.start - direct
    own = critic.error - critic.error.mean()
    found = [Candidate("values", weights is None, direct, (starts + own) / num_episodes)]
    if weights is None:
        return found

    products = np.exp(by_decision_over_mean(problem))
    reach = int(data.step[products > 0].max()) + 1
    discounted = discount ** np.arange(reach)
    corrections = np.cumsum(discounted * np.bincount(data.step, products * critic.surprise)[:reach]) / num_episodes
    num_alive = np.bincount(data.step)[:reach]
    noise = discounted * np.sqrt(np.bincount(data.step, products**2)[:reach] / num_alive) / num_episodes
    for steps in [2**power for power in range(reach.bit_length()) if 2**power < reach] + [reach]:
        rows = data.step < steps
        scatter = noise[data.step[rows]] * critic.surprise[rows]
        errors = np.bincount(problem.episode_index[rows], scatter, num_episodes)
        errors += (starts + discount**steps * own) / num_episodes
        found.append(Candidate("products", steps == reach, direct + float(corrections[steps - 1]), errors))

    carried = _by_episode(problem, weights * critic.surprise / (1 - discount))
    errors = (starts + carried - carried.mean()) / num_episodes
    return [*found, Candidate("ratio", False, direct + float(carried.mean()), errors)]


def _by_episode(problem: Problem, rows: Rows) -> Episodes:
    """What each episode adds to the mean over rows, so that their mean is that mean."""
    data = problem.dataset
    return np.bincount(problem.episode_index, rows, data.num_episodes) * data.num_episodes / data.num_transitions
