"""The linear model f(x) = φ(x)ᵀθ: in closed form, or learnt one transition at a time as in the paper.

    (E[ωφφᵀ] + λ₁ I + λ₂ āāᵀ) θ = E[ωφ y] + λ₂ b ā,        ā = E[a φ]

With a = c and ω = 1 this is −G⁻¹g of the paper, to which its incremental updates converge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from average_dice.errors import NotApplicable, SettingError
from average_dice.linear_systems import solve
from average_dice.models.regression import Fitted, Inputs, RatioModel, Regression, ValueOf

Basis = Callable[[Inputs], Float[np.ndarray, "row feature"]]


def with_constant(inputs: Inputs) -> Float[np.ndarray, "row feature"]:
    """φ(x) = (1, x)."""
    return np.column_stack([np.ones(len(inputs)), inputs])


@dataclass(frozen=True)
class Linear(RatioModel):
    """The closed form. λ₁ is `ridge`, λ₂ is `mass_weight`; `features` is φ."""

    features: Basis = with_constant
    ridge: float = 0.001
    mass_weight: float = 0.5

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        phi = self.features(regression.inputs)
        num_rows, num_features = phi.shape
        weighted = phi * regression.unit_weights[:, None]
        mean_mass = phi.T @ regression.mass / num_rows
        curvature = (
            weighted.T @ phi / num_rows
            + self.ridge * np.eye(num_features)
            + self.mass_weight * np.outer(mean_mass, mean_mass)
        )
        pull = weighted.T @ regression.targets / num_rows + self.mass_weight * regression.mass_goal * mean_mass
        return _fitted(self.features, phi, solve(curvature, pull))


@dataclass(frozen=True)
class IncrementalLinear(RatioModel):
    """The paper's updates of θ and of the dual variable η, one logged transition after the other:

        η ← η + α λ₂ (a φᵀθ − b − η)
        θ ← θ − α (ω φ (φᵀθ − y) + λ₂ η a φ + λ₁ θ)

    with step sizes α_t = α₀ / (1 + t/t₀)^p (`delay`, `power`). For ½ < p ≤ 1 their sum diverges and the sum of their
    squares converges. α₀ is `step_size` over the mean of ‖φ‖², so that it does not depend on the unit of observations.
    The updates pass over the log `num_passes` times, in its order.
    """

    features: Basis = with_constant
    ridge: float = 0.001
    mass_weight: float = 0.5
    step_size: float = 0.2  # below 1, where a step would overshoot
    delay: float = 1_000.0  # steps before the step size falls: large enough to leave the initial values
    power: float = 0.8  # between 1/2 (fast) and 1 (least noise)
    num_passes: int = 200  # more passes come closer to the closed form, and take longer

    def __post_init__(self) -> None:
        if not 0.5 < self.power <= 1:
            raise SettingError(f"the updates converge for a power above 1/2 and at most 1, not {self.power}.")
        if not 0 < self.step_size <= 1 or self.delay <= 0:
            raise SettingError("the first step size must lie in (0, 1], and delay above zero.")

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        phi = self.features(regression.inputs)
        first = self.step_size / float(np.mean(np.sum(phi**2, axis=1)))
        with jax.enable_x64(True):  # updates are small compared with θ: in float32 they would stop early
            theta = _pass_over(
                jnp.asarray(phi),
                jnp.asarray(regression.targets),
                jnp.asarray(regression.mass),
                jnp.asarray(regression.unit_weights),
                regression.mass_goal,
                (self.ridge, self.mass_weight, first, self.delay, self.power),
                num_passes=self.num_passes,
            )
            solution = np.asarray(theta)
        if not np.isfinite(solution).all():
            raise NotApplicable(f"the updates diverged: lower step_size (now {self.step_size})")
        return _fitted(self.features, phi, solution)


@partial(jax.jit, static_argnames="num_passes")
def _pass_over(
    phi: Float[Array, "row feature"],
    targets: Float[Array, " row"],
    mass: Float[Array, " row"],
    weights: Float[Array, " row"],
    mass_goal: ArrayLike,
    settings: tuple[ArrayLike, ...],
    *,
    num_passes: int,
) -> Float[Array, " feature"]:
    ridge, mass_weight, step_size, delay, power = settings

    def update(
        state: tuple[Array, Array, Array], row: tuple[Array, Array, Array, Array]
    ) -> tuple[tuple[Array, Array, Array], None]:
        (theta, eta, time), (phi_t, y_t, a_t, weight_t) = state, row
        alpha = step_size / (1 + time / delay) ** power
        f_t = phi_t @ theta
        descent = weight_t * phi_t * (f_t - y_t) + mass_weight * eta * a_t * phi_t + ridge * theta
        ascent = mass_weight * (a_t * f_t - mass_goal - eta)
        return (theta - alpha * descent, eta + alpha * ascent, time + 1), None

    def one_pass(state: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        return jax.lax.scan(update, state, (phi, targets, mass, weights))

    start = (jnp.zeros(phi.shape[1], phi.dtype), jnp.zeros((), phi.dtype), jnp.zeros((), phi.dtype))
    (theta, _, _), _ = jax.lax.scan(one_pass, start, None, length=num_passes)
    return theta


def _fitted(features: Basis, phi: np.ndarray, theta: np.ndarray) -> Fitted:
    return Fitted(phi @ theta, lambda inputs: np.asarray(features(inputs) @ theta))
