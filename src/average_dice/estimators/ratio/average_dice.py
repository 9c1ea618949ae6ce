"""Average-DICE: the density ratio of a state, learnt by regression.

A state reached at step t carries the label yₜ = γᵗ ρ₀⋯ρₜ₋₁. Averaged over its visits and scaled by c = (n/K)(1 − γ),

    w(s) = c · E[y | s]  →  d_{π,γ}(s) / d_μ(s),

so squared error is all it takes: no saddle point and no bootstrapping.  (Che, Chan, Ma & Mahmood, 2025)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import jax
import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable
from average_dice.estimators.base import Fit, Refit, TrainedEstimator
from average_dice.estimators.value_rules import (
    NO_OVERLAP,
    MassRule,
    Rows,
    ValueRule,
    check_observations,
    flow_mass,
    flow_normalised,
    is_truncated,
    plain_value,
    rescaled,
    unit_mass,
    weight_diagnostics,
)
from average_dice.labels import Completion, HeldAtTruncation, LabelRule, as_logged, plain, self_normalised
from average_dice.models import (
    Fitted,
    FourierFeatures,
    IncrementalLinear,
    Linear,
    MLPRegression,
    RatioModel,
    Regression,
    Table,
)
from average_dice.problem import Problem
from average_dice.resampling import Draw

# Targets are kept below this power of e, so that their squares fit into float64; what exceeds it is given back later.
LARGEST_LOG_TARGET = 300.0


@dataclass(frozen=True, eq=False)
class Targets:
    """What is regressed on what: w = exp(log_row_scale) · f(inputs) with f learnt from exp(log_target).

    `state_scale` is the row scale where that is one number, and the inputs are the states. `weights` of the rows in
    the squared error; None if all count the same.
    """

    inputs: Float[np.ndarray, "transition input"]
    log_target: Rows
    log_row_scale: Rows
    state_scale: float | None
    weights: Rows | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """The regression to solve for a log: w = row_scale · f · exp(log_scale)."""

    regression: Regression
    row_scale: Rows
    log_scale: float
    state_scale: float | None


Parametrisation = Callable[[Problem, Rows, Rows], Targets]


def label_on_state(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """f(s) ≈ E[y | s] and w = c f, as in the paper: the scale of f moves with γ and with the length of episodes."""
    scale = np.full(len(log_product), np.log(problem.scale))
    return Targets(problem.dataset.observation, log_product + log_discount, scale, problem.scale)


def ratio_on_state(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """f(s) ≈ E[c y | s] and w = f: targets with a mean near 1, whatever γ."""
    log_target = np.log(problem.scale) + log_product + log_discount
    return Targets(problem.dataset.observation, log_target, np.zeros(len(log_product)), 1.0)


def product_on_state_and_step(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """v(s, t) ≈ E[product | s, t] and w = c γᵗ v: γ is known and not learnt, so targets do not depend on it."""
    inputs = np.column_stack([problem.dataset.observation, problem.dataset.step])
    return Targets(inputs, log_product, np.log(problem.scale) + log_discount, None)


def weighted_product_on_state_and_step(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """The same, with rows that weigh γᵗ in the squared error, as they do in the value.

    The variance of products grows with every step: unweighted, the last steps alone would choose the ridge.
    """
    targets = product_on_state_and_step(problem, log_product, log_discount)
    return replace(targets, weights=problem.discount**problem.dataset.step)


@dataclass(frozen=True)
class AverageDICE(TrainedEstimator):
    """The default is the closed form on Fourier features with all our changes; the constructors name the others.

    - `model`: how the conditional mean is represented and fitted.
    - `labels`: the product of ratios, `self_normalised` or `plain`.
    - `completion`: what stands for the mass beyond a cut, `HeldAtTruncation(…)` or `as_logged` (nothing).
    - `regress`: `weighted_product_on_state_and_step`, `product_on_state_and_step`, `ratio_on_state` or the paper's
      `label_on_state`.
    - `mass`: what the ratio is pulled to sum to, for models that do so.
    - `value`: how the value follows from the ratio.
    """

    model: RatioModel = FourierFeatures()
    labels: LabelRule = self_normalised
    completion: Completion = HeldAtTruncation()
    regress: Parametrisation = weighted_product_on_state_and_step
    mass: MassRule = flow_mass
    value: ValueRule = flow_normalised

    @staticmethod
    def tabular() -> "AverageDICE":
        """w(s) = c · the mean label over the visits of s, for observations that repeat."""
        return AverageDICE(Table(), completion=as_logged, regress=ratio_on_state)

    @staticmethod
    def linear() -> "AverageDICE":
        """w(s) = φ(s)ᵀθ on (1, s), solved."""
        return AverageDICE(Linear(), completion=as_logged, regress=ratio_on_state)

    @staticmethod
    def incremental() -> "AverageDICE":
        """The same by the paper's updates, one transition at a time."""
        return AverageDICE(IncrementalLinear(), completion=as_logged, regress=ratio_on_state)

    @staticmethod
    def neural() -> "AverageDICE":
        """A network on standardised states and steps, with the labels, completion and value of the default.

        It stops when episodes left out say so.
        """
        return AverageDICE(MLPRegression(standardise=True, held_out=0.2), regress=product_on_state_and_step)

    @staticmethod
    def paper() -> "AverageDICE":
        """The paper's network, loss, scale and hyperparameters; the value with ρ, as in the authors' experiments."""
        return AverageDICE(MLPRegression(), plain, as_logged, label_on_state, unit_mass, plain_value)

    @property
    def trains(self) -> bool:
        return hasattr(self.model, "num_steps")

    def fit_many(
        self, problem: Problem, *, keys: Sequence[jax.Array], draws: Sequence[Draw] | None = None
    ) -> list[Fit]:
        if draws is None:
            task = self.task(problem)
            value_of = partial(self._value_of, problem, task)
            fits = self.model.fit(task.regression, keys=keys, value_of=value_of)
            return [self._finish(problem, task, fitted, key) for fitted, key in zip(fits, keys, strict=True)]
        if not isinstance(self.model, MLPRegression):
            return [self.prepare(problem, key=key)(draw) for key, draw in zip(keys, draws, strict=True)]
        tasks = [self.task(draw.problem) for draw in draws]
        episodes = [draw.of_rows(problem.episode_index) for draw in draws]  # drawn twice, still one: kept or left out
        fits = self.model.fit_each(
            [replace(task.regression, episode=one) for task, one in zip(tasks, episodes, strict=True)],
            keys=keys,
            values_of=[partial(self._value_of, draw.problem, task) for draw, task in zip(draws, tasks, strict=True)],
        )
        found = zip(draws, tasks, fits, keys, strict=True)
        return [self._finish(draw.problem, task, fitted, key) for draw, task, fitted, key in found]

    def prepare(self, problem: Problem, *, key: jax.Array) -> Refit:
        match self.model:
            case FourierFeatures():
                refit_model = self.model.prepare(problem, self.task(problem).regression, key=key)
            case Table():
                refit_model = self.model.prepare(self.task(problem).regression)
            case MLPRegression():
                return super().prepare(problem, key=key)
            case _:
                return lambda draw: self.fit(draw.problem, key=key)

        def refit(draw: Draw) -> Fit:
            task = self.task(draw.problem)
            return self._finish(draw.problem, task, refit_model(draw, task.regression.targets), key)

        return refit

    def task(self, problem: Problem) -> Task:
        """The regression that the problem comes down to."""
        log_product = self.labels(problem)
        if not np.isfinite(log_product + problem.log_ratio).any():
            raise NotApplicable(NO_OVERLAP)
        targets = self.regress(problem, log_product, self.completion(problem, log_product))
        log_scale = max(0.0, float(targets.log_target.max()) - LARGEST_LOG_TARGET)
        row_scale = np.exp(targets.log_row_scale)
        regression = Regression(
            inputs=targets.inputs,
            targets=np.exp(targets.log_target - log_scale),
            mass=self.mass(problem) * row_scale,
            mass_goal=float(np.exp(-log_scale)),
            episode=problem.episode_index,
            weights=targets.weights,
        )
        return Task(regression, row_scale, log_scale, targets.state_scale)

    def _value_of(self, problem: Problem, task: Task, rows: Rows) -> float:
        return self.value(problem, task.row_scale * rows, task.log_scale)

    def _finish(self, problem: Problem, task: Task, fitted: Fitted, key: jax.Array) -> Fit:
        """The value and all that goes with it."""
        log_scale, ratio = task.log_scale, task.row_scale * fitted.rows
        value = self.value(problem, ratio, log_scale)
        if np.isnan(ratio).any():
            raise NotApplicable("training diverged: lower the learning rate")
        if not np.isfinite(value):
            raise NotApplicable("the weights vanish or exceed float64: π and the log hardly overlap")
        weights = self.value.weights(problem, ratio, log_scale)
        found_mass = rescaled(float(np.mean(ratio * flow_mass(problem))), log_scale)

        @cache
        def of_states() -> Callable[[np.ndarray], np.ndarray]:
            scale = task.state_scale
            if scale is not None:
                return lambda observations: scale * fitted.predict(observations)
            # The mean of w_t(s) over the steps at which s was seen: one more regression.
            goal = float(np.exp(-log_scale))
            rows = Regression(problem.dataset.observation, ratio, self.mass(problem), goal, problem.episode_index)
            return self.model.fit(rows, keys=[key], value_of=lambda f: self.value(problem, f, log_scale))[0].predict

        def ratio_of(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
            if actions is not None:
                raise NotApplicable("it learns the ratio of states, not of states and actions")
            check_observations(problem, observations)
            return rescaled(of_states()(observations), log_scale)

        return Fit(
            value=value,
            weights=weights,
            ratio_function=ratio_of,
            diagnostics={
                **fitted.diagnostics,
                **weight_diagnostics(weights),
                "flow_mass": found_mass,
                "effective_episodes": problem.effective_episodes,
            },
            history=fitted.history,
            notes=(*self.choices(problem), *self._doubts(problem, found_mass), *fitted.notes),
        )

    def choices(self, problem: Problem) -> list[str]:
        """What was assumed, in words."""
        choices = [f"value {self.value.name}"]
        if is_truncated(problem):
            held = isinstance(self.completion, HeldAtTruncation)
            choices.append("mass beyond the cut held on the last steps" if held else "labels stop at the cut")
        return choices

    def _doubts(self, problem: Problem, found_mass: float) -> list[str]:
        doubts = []
        if self.value.mass is not None and not 0.5 < found_mass < 2:
            doubts.append(f"the mass found is {found_mass:.3g} where 1 is right: check both log-probabilities")
        return doubts
