"""The candidates of the blend on a log in blocks: their values, the products of their errors, and their influences.

The candidates and their errors are those of `_candidates`, from two passes. The first gives the values, and how each
value responds to θ. The second gives the errors of each episode, of which only the products of pairs of candidates are
kept, and the influence of each episode: if an episode counts n times instead of once, the value of a candidate changes
by (n − 1) times the influence, to first order. The values on bootstrap resamples follow from one matrix product.

The influence has every part that changes to first order: v(s₀), the weighted TD errors, the means by which products are
divided, θ of the critic and θ of the ratio. Held fixed are the features, the ridge of the ratio, the share of episodes
not yet truncated, and the factor of the weight after truncation.
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from average_dice.blocked_problem import BlockedProblem
from average_dice.estimators.blend._candidates import PRODUCTS, RATIO, VALUES
from average_dice.estimators.blend._counts import Counts
from average_dice.estimators.blend._on_blocks import OnRows, ProductsByStep
from average_dice.estimators.blend._passes import Block, total
from average_dice.estimators.blend._streamed_critics import SolvedCritic, SolvedSet
from average_dice.estimators.blend._streamed_ratio import StreamedRatio
from average_dice.linear_systems import solve
from average_dice.problem import Problem


@dataclass(frozen=True, eq=False)
class ValueSums:
    """Sums of the first pass, over blocks."""

    start: np.ndarray  # Σ v(s₀), by critic
    td_error: np.ndarray  # Σ γᵗ W δ, by step and critic
    carried: np.ndarray  # Σ w ρ δ, by critic
    mass: float  # Σ w ρ (1 − γ m)
    pull: list[np.ndarray]  # Σ dv(s₀)/dθ, by critic
    by_stage: list[np.ndarray]  # Σ γᵗ W dδ/dθ, by critic: [stage, feature]
    by_ratio: list[np.ndarray]  # Σ w ρ dδ/dθ, by critic
    ratio_error: np.ndarray  # Σ dw/dv ρ δ φ(s, t), by critic
    ratio_mass: np.ndarray  # Σ dw/dv ρ (1 − γ m) φ(s, t)
    parts: np.ndarray  # of the TD errors of each part of an episode: Σ and Σ² over episodes, by critic

    def merge(self, other: "ValueSums") -> "ValueSums":
        """Of both."""
        merged: list[Any] = []
        for one in fields(self):
            mine, others = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, list):
                merged.append([left + right for left, right in zip(mine, others, strict=True)])
            else:
                merged.append(mine + others)
        return ValueSums(*merged)


@dataclass(frozen=True, eq=False)
class StreamedCandidates:
    """Values of all candidates, the products of their errors, and their values on resamples."""

    kinds: list[str]
    full: np.ndarray
    values: np.ndarray
    products: Float[np.ndarray, "candidate candidate"]
    resampled: Float[np.ndarray, "candidate resample"]

    @property
    def errors(self) -> Float[np.ndarray, "candidate source"]:
        """Rows with these products."""
        values, vectors = np.linalg.eigh(self.products)
        return vectors * np.sqrt(np.maximum(values, 0.0))


@dataclass(frozen=True, eq=False)
class CandidatePasses:
    """The two passes. Without ratios there are no products, and every candidate is a critic alone."""

    problem: BlockedProblem
    solved: list[SolvedSet]
    ratio: StreamedRatio | None
    products: ProductsByStep | None

    @property
    def _reaches(self) -> list[int]:
        return [] if self.products is None else self.products.reaches

    def value_sums(self, parts: Float[np.ndarray, " quantile"]) -> ValueSums:
        """The first pass. `parts`: the steps that divide an episode, for TD errors that depend on the step."""
        return total(partial(self._values_of, parts), ValueSums.merge, self.problem)

    def _values_of(self, parts: np.ndarray, block: Block) -> ValueSums:
        problem, bounds = block.problem, self.problem.value_bounds
        data, horizon = problem.dataset, self.problem.sums.horizon
        part = np.searchsorted(parts, data.step, side="right")
        corrected, slope, phi = self._ratio_on(problem)
        weight = np.zeros(len(data.step)) if self.products is None else self.products.weight(problem)
        stage = np.zeros(len(data.step), int) if self.products is None else self.products.stage(problem)
        kinds = np.column_stack([weight[:, None] * (stage[:, None] == np.arange(len(self._reaches))), corrected])
        start, td_error, carried, pull, by_stage, by_ratio, ratio_error, of_parts = [], [], [], [], [], [], [], []
        for of_set in self.solved:
            rows = OnRows.of(block, of_set, bounds)
            start.extend(rows.start.sum(axis=0))
            pull.extend((rows.start_features.T @ rows.moves[2]).T)
            responses = rows.responses(problem, kinds)
            by_stage += [one[:-1] for one in responses]
            by_ratio += [one[-1] for one in responses]
            for error in rows.td_error.T:
                td_error.append(np.bincount(data.step, weight * error, horizon))
                carried.append(corrected @ error)
                ratio_error.append((slope * error) @ phi)
                sums = [problem.by_episode(np.where(part == one, error, 0.0)) for one in range(len(parts) + 1)]
                of_parts.append([(one.sum(), one @ one) for one in sums])
        return ValueSums(
            np.array(start),
            np.array(td_error).T,
            np.array(carried),
            float(corrected @ problem.flow),
            pull,
            by_stage,
            by_ratio,
            np.array(ratio_error),
            (slope * problem.flow) @ phi,
            np.array(of_parts),
        )

    def _ratio_on(self, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """w ρ on the rows of a block, its derivative by v(s, t), and φ(s, t)."""
        if self.ratio is None:
            none = np.zeros(problem.dataset.num_transitions)
            return none, none, np.zeros((len(none), 1))
        phi = self.ratio.inputs(problem)
        slope = self.ratio.targets.row_scale(problem) * problem.ratio
        return slope * self.ratio.values(problem, phi), slope, phi

    def candidates(self, sums: ValueSums, counts: Counts) -> StreamedCandidates:
        """The second pass."""
        plan = _Plan.of(self, sums)
        totals = total(partial(plan.products_of, counts), _add, self.problem)
        products, errors, own, influence, extra, resampled = totals
        num_episodes = self.problem.sums.num_episodes
        shift = own / num_episodes  # errors of critics are centred over all episodes
        products = products - np.outer(errors, shift) - np.outer(shift, errors) + num_episodes * np.outer(shift, shift)
        products += plan.unsettled_products()
        values = plan.values
        return StreamedCandidates(
            plan.kinds,
            plan.full,
            values,
            products,
            values[:, None] + resampled - np.outer(influence, extra) / num_episodes,
        )


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the second pass needs of the first: values of candidates, mean TD errors, and responses to θ."""

    passes: CandidatePasses
    sums: ValueSums
    kinds: list[str]
    full: np.ndarray
    values: np.ndarray
    critic: np.ndarray  # of each candidate
    unsettled: np.ndarray  # of each candidate
    direct: np.ndarray  # by critic
    carried: np.ndarray  # by critic
    responses: list[np.ndarray]  # by critic: A⁻ᵀ of dJ/dθ, [feature, candidate of this critic]
    ratio_responses: np.ndarray  # [feature of the ratio, critic]

    @staticmethod
    def of(passes: CandidatePasses, sums: ValueSums) -> "_Plan":
        """Values and responses of all candidates."""
        problem, products, ratio = passes.problem, passes.products, passes.ratio
        num_episodes = problem.sums.num_episodes
        solved = [(of_set, critic) for of_set in passes.solved for critic in of_set.solved]
        direct = sums.start / num_episodes
        carried = sums.carried / sums.mass if ratio is not None else np.zeros(len(solved))
        kinds, full, values, which, unsettled, responses = [], [], [], [], [], []
        for number, (of_set, critic) in enumerate(solved):
            pull = sums.pull[number] / num_episodes
            spread = _spread_of(critic, of_set, passes, number, sums)
            pulls, lefts = [pull], [1.0]
            kinds.append(VALUES)
            full.append(products is None)
            values.append(direct[number])
            if products is not None:
                corrections = np.cumsum(sums.td_error[:, number]) / num_episodes
                stages = np.cumsum(sums.by_stage[number], axis=0) / num_episodes
                for place, reach in enumerate(products.reaches):
                    kinds.append(PRODUCTS)
                    full.append(place == len(products.reaches) - 1)
                    values.append(direct[number] + corrections[reach - 1])
                    pulls.append(pull + stages[place])
                    lefts.append(products.left[place])
            if ratio is not None and products is not None:
                kinds.append(RATIO)
                full.append(False)
                values.append(direct[number] + carried[number])
                pulls.append(pull + sums.by_ratio[number] / sums.mass)
                lefts.append(products.remaining)
            which += [number] * len(pulls)
            unsettled += [left * spread for left in lefts]
            responses.append(np.column_stack([critic.system.solve_transposed(one) for one in pulls]))
        by_ratio = np.zeros((1, len(solved)))
        if ratio is not None:
            slopes = (sums.ratio_error - carried[:, None] * sums.ratio_mass) / sums.mass
            by_ratio = np.column_stack([solve(ratio.gram, one) for one in slopes])
        return _Plan(
            passes,
            sums,
            kinds,
            np.array(full),
            np.array(values),
            np.array(which),
            np.array(unsettled),
            direct,
            carried,
            responses,
            by_ratio,
        )

    def unsettled_products(self) -> np.ndarray:
        """Products of the errors of critics that did not converge: one source for each critic."""
        return np.where(self.critic[:, None] == self.critic, np.outer(self.unsettled, self.unsettled), 0.0)

    def products_of(self, counts: Counts, block: Block) -> tuple[np.ndarray, ...]:
        """Products of the errors of a block, sums of errors, of the critics' part, of influences and of counts.

        The last are the products of influences and counts.
        """
        errors, own, influences = self.on(block)
        more = counts.of(block) - 1.0
        return (
            errors @ errors.T,
            errors.sum(axis=1),
            own,
            influences.sum(axis=1),
            more.sum(axis=1),
            influences @ more.T,
        )

    def on(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Errors and influences of the episodes of a block, [candidate, episode], and the sum of the critics' part."""
        problem, passes = block.problem, self.passes
        num_episodes = passes.problem.sums.num_episodes
        shared = _Shared.of(self, block)
        errors, own, influences = [], [], []
        number = 0
        for of_set in passes.solved:
            rows = OnRows.of(block, of_set, passes.problem.value_bounds)
            weight = of_set.critics.weight(problem) / of_set.weight
            share = problem.by_episode(weight)
            every = np.column_stack(self.responses[number : number + len(of_set.solved)])
            moved_by_critic = np.split(rows.logged_features @ every, len(of_set.solved), axis=1)
            for place, critic in enumerate(of_set.solved):
                error, responses = rows.td_error[:, place], self.responses[number]
                starts = (rows.start[:, place] - self.direct[number]) / num_episodes
                residual = weight * (rows.target[:, place] - rows.logged[:, place])
                moved = moved_by_critic[place]
                owns = np.array([problem.by_episode(residual * one) for one in moved.T])
                penalty = critic.ridge * np.where(of_set.critics.features.free, 0.0, critic.theta)
                influence_own = owns - np.outer(responses.T @ penalty, share)
                one, other, influence = shared.of_critic(number, starts, owns[0], influence_own, error)
                errors += one
                own += other
                influences += influence
                number += 1
        return np.array(errors), np.array(own), np.array(influences)


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all critics share on a block: weights of the products and of the ratio."""

    plan: _Plan
    problem: Problem
    weight: np.ndarray  # γᵗ W
    undiscounted: np.ndarray  # W
    corrected: np.ndarray  # w ρ
    learnt: np.ndarray  # influence of θ of the ratio by critic: [transition, critic]

    @staticmethod
    def of(plan: _Plan, block: Block) -> "_Shared":
        problem, passes = block.problem, plan.passes
        none = np.zeros(problem.dataset.num_transitions)
        if passes.products is None or passes.ratio is None:
            return _Shared(plan, problem, none, none, none, none[:, None])
        sums, step = passes.problem.sums, problem.dataset.step
        logs = sums.over_mean(problem.log_product + problem.log_ratio, step, sums.log_mean) - sums.log_uncensored[step]
        corrected, _, phi = passes._ratio_on(problem)
        targets = passes.ratio.targets
        residual = targets.weights(problem) * (targets.products(problem) - passes.ratio.values(problem, phi))
        learnt = residual[:, None] * (phi @ plan.ratio_responses) / sums.num_transitions
        return _Shared(plan, problem, np.exp(problem.log_discount + logs), np.exp(logs), corrected, learnt)

    def of_critic(
        self, number: int, starts: np.ndarray, own: np.ndarray, owns: np.ndarray, td_error: np.ndarray
    ) -> tuple[list[np.ndarray], list[float], list[np.ndarray]]:
        """Errors and influences of all candidates of a critic, by episode, and the sum of the critic's part."""
        plan, problem, products = self.plan, self.problem, self.plan.passes.products
        total = float(own.sum())
        errors, parts, influences = [starts + own], [total], [starts + owns[0]]
        if products is None:
            return errors, parts, influences
        sums, step = plan.passes.problem.sums, problem.dataset.step
        num_episodes, num_here = sums.num_episodes, len(starts)
        stage, num_stages = products.stage(problem), len(products.reaches) + 1

        def by_reach(rows: np.ndarray) -> np.ndarray:
            found = np.bincount(stage * num_here + problem.episode_index, rows, num_stages * num_here)
            return np.cumsum(found.reshape(num_stages, num_here)[:-1], axis=0)

        at_step = plan.sums.td_error[:, number]  # Σ γᵗ W δ
        discount = problem.discount ** np.arange(sums.horizon)
        scatter = by_reach(discount[step] * products.noise[step] * td_error)
        mean_at_step = at_step / num_episodes
        influence = by_reach(self.weight * td_error - self.undiscounted * mean_at_step[step]) / num_episodes
        influence -= self._of_terminated(mean_at_step) / num_episodes
        for place, left in enumerate(products.left):
            errors.append(starts + left * own + scatter[place])
            parts.append(left * total)
            influences.append(starts + influence[place] + owns[1 + place])
        mass, carried = plan.sums.mass, plan.carried[number]
        by_row = problem.by_episode(self.corrected * td_error) / mass
        errors.append(starts + by_row - carried / num_episodes + products.remaining * own)
        parts.append(products.remaining * total)
        by_mass = problem.by_episode(self.corrected * problem.flow) * carried / mass
        learnt = problem.by_episode(self.learnt[:, number])
        influences.append(starts + by_row - by_mass + learnt + owns[-1])
        return errors, parts, influences

    def _of_terminated(self, mean_at_step: np.ndarray) -> np.ndarray:
        """How the last products of terminated episodes count in the means of later steps: [reach, episode]."""
        products, data = self.plan.passes.products, self.problem.dataset
        assert products is not None
        sums = self.plan.passes.problem.sums
        with np.errstate(over="ignore", invalid="ignore"):
            each = np.where(mean_at_step != 0, mean_at_step * np.exp(-sums.log_mean), 0.0)
        until = np.append(0.0, np.cumsum(each))
        last = data.starts + data.lengths - 1
        kept = np.where(
            data.terminated[last], np.exp(self.problem.final_log_product - sums.log_uncensored[data.lengths - 1]), 0.0
        )
        return np.array([kept * (until[one] - until[np.minimum(data.lengths, one)]) for one in products.reaches])


def _add(left: tuple[np.ndarray, ...], right: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(old + new for old, new in zip(left, right, strict=True))


def _spread_of(critic: SolvedCritic, of_set: SolvedSet, passes: CandidatePasses, number: int, sums: ValueSums) -> float:
    """The standard deviation of the value over solutions that did not converge; 0 if they did."""
    if critic.unsettled is None:
        return 0.0
    values = sums.pull[number] @ critic.unsettled / passes.problem.sums.num_episodes
    return float(values.std(ddof=1))
