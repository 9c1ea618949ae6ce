"""Targets of Average-DICE: which function of which inputs is regressed, and how the ratio w follows from it.

    label on state                  f(s) ≈ E[y | s]            w = c f           the paper
    … by longest                    f(s) ≈ E[y | s]            w = L (1 − γ) f   the authors' released code
    ratio on state                  f(s) ≈ E[c y | s]          w = f             a scale that does not depend on γ
    product on state and step       f(s, t) ≈ E[∏ρ | s, t]     w = c γᵗ f        the discount is not learnt

with c = (n/K)(1 − γ).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from average_dice.problem import Problem, Rows


@dataclass(frozen=True, eq=False)
class Targets:
    """Inputs and targets: w = exp(log_row_scale) · f(inputs), with f learnt from exp(log_target).

    `state_scale` is the row scale if it is one number and the inputs are the states. `weights` are those of the rows in
    the squared error; None if they are equal.
    """

    inputs: Float[np.ndarray, "transition input"]
    log_target: Rows
    log_row_scale: Rows
    state_scale: float | None
    weights: Rows | None = None


TargetRule = Callable[[Problem, Rows, Rows], Targets]  # (problem, log product, log discount weight) → targets


def label_on_state(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """f(s) ≈ E[y | s] and w = c f, as in the paper: the scale of f depends on γ and on the length of episodes."""
    scale = np.full(len(log_product), np.log(problem.scale))
    return Targets(_states(problem), log_product + log_discount, scale, problem.scale)


def label_on_state_by_longest(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """f(s) ≈ E[y | s] and w = L (1 − γ) f with L the longest episode, as in the authors' released code."""
    scale = float(problem.dataset.lengths.max()) * problem.normaliser
    return replace(
        label_on_state(problem, log_product, log_discount),
        log_row_scale=np.full(len(log_product), np.log(scale)),
        state_scale=scale,
    )


def ratio_on_state(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """f(s) ≈ E[c y | s] and w = f: targets with a mean near 1 for every γ."""
    log_target = np.log(problem.scale) + log_product + log_discount
    return Targets(_states(problem), log_target, np.zeros(len(log_product)), 1.0)


def product_on_state_and_step(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """v(s, t) ≈ E[product | s, t] and w = c γᵗ v: γ is known and not learnt, so targets do not depend on it."""
    inputs = np.column_stack([_states(problem), problem.dataset.step])
    return Targets(inputs, log_product, np.log(problem.scale) + log_discount, None)


def weighted_product_on_state_and_step(problem: Problem, log_product: Rows, log_discount: Rows) -> Targets:
    """The same, with rows weighted by γᵗ in the squared error, as in the value.

    The variance of products grows with every step: without weights, the last steps alone would determine the ridge.
    """
    targets = product_on_state_and_step(problem, log_product, log_discount)
    return replace(targets, weights=problem.discount**problem.dataset.step)


def _states(problem: Problem) -> Float[np.ndarray, "transition input"]:
    return problem.dataset.encoding.encode(problem.dataset.observation)
