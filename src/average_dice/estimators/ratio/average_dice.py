"""Average-DICE: the density ratio of a state, learnt by regression.

A state reached at step t carries the label yₜ = γᵗ ρ₀⋯ρₜ₋₁. Averaged over its visits and scaled by c = (n/K)(1 − γ),

    w(s) = c · E[y | s]  →  d_{π,γ}(s) / d_μ(s),

so squared error is all it takes: no saddle point and no bootstrapping.  (Che, Chan, Ma & Mahmood, 2025)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.ratio_fits import (
    NO_OVERLAP,
    check_observations,
    value_note,
    weight_diagnostics,
)
from average_dice.estimators.base import Estimator, Prepared, with_options
from average_dice.estimators.ratio.targets import (
    TargetRule,
    label_on_state,
    label_on_state_by_longest,
    product_on_state_and_step,
    ratio_on_state,
    weighted_product_on_state_and_step,
)
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import (
    MassRule,
    ValueRule,
    flow_mass,
    flow_normalised,
    plain_value,
    rescaled,
    unit_mass,
)
from average_dice.labels import (
    Completion,
    HeldAtTruncation,
    LabelRule,
    as_logged,
    discount_alone,
    plain,
    reversed_products,
    self_normalised,
)
from average_dice.models import (
    Fitted,
    FourierFeatures,
    HeldOut,
    IncrementalLinear,
    Linear,
    MLPRegression,
    PreparedModel,
    RatioModel,
    Regression,
    ReleasedRegression,
    Resampled,
    Table,
)
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem, Rows
from average_dice.randomness import key_name
from average_dice.resampling import Resample

# Largest log target. Larger targets are divided by a common factor, so that their squares fit into float64 (e^709).
LARGEST_LOG_TARGET = 300.0

# A ratio whose mass is off by more than this factor gets a note. It is a coarse check; the verdict has finer rules.
MASS_OFF = 2.0

VANISHED = "the weights vanish or exceed float64: the policy and the log hardly overlap"
HELD = Note(NoteCode.TRUNCATION_HELD, "weight after truncation put on the last steps")
LABELS_END = Note(NoteCode.TRUNCATION_IGNORED, "labels end at the truncation")


@dataclass(frozen=True, eq=False)
class RatioRegression:
    """The regression of a log: w = row_scale · f · exp(log_scale)."""

    regression: Regression
    row_scale: Rows
    log_scale: float
    state_scale: float | None


@dataclass(frozen=True)
class AverageDICE(Estimator):
    """Average-DICE on Fourier features: regression on state and step, in closed form, ridge by cross-validation.

    This is the default, with all our changes. The constructors make the other forms.

    - `model`: the form of the conditional mean, and how it is fitted.
    - `labels`: the product of ratios, `self_normalised` or `plain`.
    - `completion`: the weight after truncation, `HeldAtTruncation(…)` (put on the last steps) or `as_logged` (ignored).
    - `regress`: `weighted_product_on_state_and_step`, `product_on_state_and_step`, `ratio_on_state` or the paper's
      `label_on_state`.
    - `mass`: the constraint on the sum of the ratio, for models that penalise it.
    - `value`: how the value follows from the ratio.
    """

    model: RatioModel = FourierFeatures()
    labels: LabelRule = self_normalised
    completion: Completion = HeldAtTruncation()
    regress: TargetRule = weighted_product_on_state_and_step
    mass: MassRule = flow_mass
    value: ValueRule = flow_normalised

    @staticmethod
    def tabular() -> "AverageDICE":
        """Average-DICE on a table: w(s) = c · the mean label over the visits of s, for observations that repeat."""
        return AverageDICE(Table(), completion=as_logged, regress=ratio_on_state)

    @staticmethod
    def linear() -> "AverageDICE":
        """Average-DICE, linear in the observation: w(s) = φ(s)ᵀθ on (1, s), in closed form."""
        return AverageDICE(Linear(), completion=as_logged, regress=ratio_on_state)

    @staticmethod
    def incremental() -> "AverageDICE":
        """Average-DICE, linear in the observation, by the paper's updates: one transition at a time."""
        return AverageDICE(IncrementalLinear(), completion=as_logged, regress=ratio_on_state)

    @staticmethod
    def neural() -> "AverageDICE":
        """Average-DICE with a network on state and step, stopped early by held-out episodes.

        Its inputs are standardised. Its labels, completion and value are those of the default.
        """
        return AverageDICE(MLPRegression(standardise=True, held_out=0.2), regress=product_on_state_and_step)

    @staticmethod
    def paper() -> "AverageDICE":
        """Average-DICE as published: the paper's network, loss, scale and hyperparameters.

        The value has the factor ρ, as in the authors' experiments.
        """
        return AverageDICE(MLPRegression(), plain, as_logged, label_on_state, unit_mass, plain_value)

    @staticmethod
    def released() -> "AverageDICE":
        """What the authors' released code computes, which is not what the paper says.

        The label γᵗ ∏_{k≥t−1} ρ_k runs to the end of the episode instead of from its start, so it does not tend to the
        density ratio. The network has a ReLU output and an L1 penalty, and the scale is L (1 − γ) instead of
        (n/K)(1 − γ), with L the length of the longest episode.
        """
        return AverageDICE(
            ReleasedRegression(),
            reversed_products,
            discount_alone,
            label_on_state_by_longest,
            unit_mass,
            plain_value,
        )

    @property
    def trains(self) -> bool:
        return self.model.trains

    def with_training(
        self, *, num_steps: int, num_checkpoints: int, held_out: float | None = None, **options: float
    ) -> "Estimator":
        """`held_out`: the share of episodes held out to report their loss. Other options are the network's."""
        if not self.trains:
            return super().with_training(num_steps=num_steps, num_checkpoints=num_checkpoints)
        changes: dict[str, Any] = {"num_steps": num_steps, "num_checkpoints": num_checkpoints, **options}
        model = with_options(self.model, changes)
        return replace(self, model=model if held_out is None else HeldOut(model, held_out))

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        found = self.regression_of(problem)
        value_of = partial(self._value_of, problem, found)

        def prepare() -> PreparedModel:
            return self.model.prepare(problem, found.regression, key=key, value_of=value_of)

        # A learning curve has values, and these depend on the reward. A ratio in closed form does not.
        model = (
            prepare()
            if self.trains or not _is_hashable(self)
            else problem.once((PreparedModel, self, key_name(key)), prepare, of_reward=False)
        )
        return PreparedAverageDICE(self, problem, found, model, key)

    def fit_seeds(self, problem: Problem, *, keys: Sequence[jax.Array]) -> list[Fit]:
        found = self.regression_of(problem)
        value_of = partial(self._value_of, problem, found)
        fits = self.model.fit_seeds(found.regression, keys=keys, value_of=value_of)
        return [self._finish(problem, found, fitted, key) for fitted, key in zip(fits, keys, strict=True)]

    def regression_of(self, problem: Problem) -> RatioRegression:
        """The regression of the problem."""
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
        return RatioRegression(regression, row_scale, log_scale, targets.state_scale)

    def _value_of(self, problem: Problem, found: RatioRegression, rows: Rows) -> float:
        return self.value(problem, found.row_scale * rows, found.log_scale)

    def _finish(self, problem: Problem, found: RatioRegression, fitted: Fitted, key: jax.Array) -> Fit:
        """The value with its weights, diagnostics and notes."""
        log_scale, ratio = found.log_scale, found.row_scale * fitted.rows
        value = self.value(problem, ratio, log_scale)
        if np.isnan(ratio).any():
            raise NotApplicable("training diverged: lower the learning rate")
        if not np.isfinite(value):
            raise NotApplicable(VANISHED)
        weights = self.value.weights(problem, ratio, log_scale)
        found_mass = rescaled(float(np.mean(ratio * flow_mass(problem))), log_scale)

        encode = problem.dataset.encoding.encode

        @cache
        def of_states() -> Callable[[np.ndarray], np.ndarray]:
            scale = found.state_scale
            if scale is not None:
                return lambda inputs: scale * fitted.predict(inputs)
            # The mean of w_t(s) over the steps at which s was visited: one more regression.
            goal = float(np.exp(-log_scale))
            rows = Regression(
                encode(problem.dataset.observation), ratio, self.mass(problem), goal, problem.episode_index
            )
            return self.model.fit(rows, key=key, value_of=lambda f: self.value(problem, f, log_scale)).predict

        def ratio_of(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
            if actions is not None:
                raise NotApplicable("it learns the ratio of states, not of states and actions")
            check_observations(problem, observations)
            return rescaled(of_states()(encode(observations)), log_scale)

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
            notes=(*self._choices(problem), *self._doubts(problem, found_mass), *fitted.notes),
        )

    def _choices(self, problem: Problem) -> list[Note]:
        """What was assumed."""
        choices = [value_note(self.value.name)]
        if problem.misses_rewards:
            choices.append(HELD if isinstance(self.completion, HeldAtTruncation) else LABELS_END)
        return choices

    def _doubts(self, problem: Problem, found_mass: float) -> list[Note]:
        if self.value.mass is None or 1 / MASS_OFF < found_mass < MASS_OFF:
            return []
        estimated = problem.dataset.estimated_behaviour is not None
        remedy = (
            "the probabilities of the logged actions were estimated, and errors of the estimate change it; estimate "
            "them from more episodes, or with all that the actions depended on"
            if estimated
            else "check both log-probabilities"
        )
        return [Note(NoteCode.MASS_OFF, f"the mass found is {found_mass:.3g} instead of 1: {remedy}")]


def _is_hashable(method: AverageDICE) -> bool:
    try:
        hash(method)
    except TypeError:  # a setting cannot be hashed
        return False
    return True


@dataclass(frozen=True, eq=False)
class PreparedAverageDICE(Prepared):
    """The model is prepared on the regression of the log; labels are computed again for each resample."""

    method: AverageDICE
    problem: Problem
    regression: RatioRegression
    model: PreparedModel
    key: jax.Array

    def fit_log(self) -> Fit:
        return self.method._finish(self.problem, self.regression, self.model.fit(), self.key)

    def refit(self, resamples: Sequence[Resample]) -> list[Fit]:
        method = self.method
        regressions = [method.regression_of(resample.problem) for resample in resamples]
        fits = self.model.refit(
            [
                Resampled(resample, found.regression, partial(method._value_of, resample.problem, found))
                for resample, found in zip(resamples, regressions, strict=True)
            ]
        )
        return [
            method._finish(resample.problem, found, fitted, self.key)
            for resample, found, fitted in zip(resamples, regressions, fits, strict=True)
        ]
