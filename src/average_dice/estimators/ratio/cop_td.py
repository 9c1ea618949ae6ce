"""COP-TD, discounted, with a network: the flow of states through the log, by semi-gradient.

    minimise E_D[½ w(s)² − γ m ρ w̄(s) w(s′)] − (1 − γ) E[w(s₀)],      w = exp(network)

where w̄ is a slow copy, held fixed. (Hallak & Mannor, 2017; Gelada & Bellemare, 2019.) At its fixed point the flow of
the log balances against every direction that the network can take, on a truncated log, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.estimators._shared.network_inputs import nth, single
from average_dice.estimators._shared.resampled_copies import Copies
from average_dice.estimators._shared.target_network import doubts, soft_update
from average_dice.estimators.base import Fit, TrainedEstimator
from average_dice.estimators.value_rules import ValueRule, fit_of_state_ratio, flow_normalised
from average_dice.features.scaling import mean_and_std
from average_dice.models.learning_curves import LearningCurves
from average_dice.models.mlp import MLP
from average_dice.models.training import Schedule, begin, train
from average_dice.problem import Problem
from average_dice.resampling import Draw


@dataclass(frozen=True)
class COPTD(TrainedEstimator):
    """τ, the rate of the slow copy, is `target_rate`."""

    hidden: tuple[int, ...] = (256, 256)
    learning_rate: float = 5e-3
    target_rate: float = 5e-4
    batch_size: int = 512
    num_steps: int = 5_000
    num_checkpoints: int = 50
    value: ValueRule = flow_normalised

    def fit_many(
        self, problem: Problem, *, keys: Sequence[jax.Array], draws: Sequence[Draw] | None = None
    ) -> list[Fit]:
        data = problem.dataset
        mean, std = mean_and_std(data.observation)
        rows = {
            "x": single((data.observation - mean) / std),
            "after": single((data.next_observation - mean) / std),
            "flow": single(problem.discount * ~data.terminated * problem.ratio),
        }
        starts = {"x": rows["x"][data.starts]}
        settings = {"target_rate": self.target_rate, "start": 1 - problem.discount}
        width = data.observation.shape[1]
        networks, batch_keys = begin(lambda key: MLP(width, self.hidden, jnp.tanh, key=key), keys)
        copies = Copies.of(problem, len(keys), draws)
        curves = LearningCurves()

        def record(step: int, networks: MLP, slow: MLP) -> None:
            ratios = np.asarray(_ratios(networks, rows["x"]), np.float64)
            values = [
                self.value(draw.problem, draw.of_rows(ratio)) for draw, ratio in zip(copies.draws, ratios, strict=True)
            ]
            curves.add(step, np.array(values), _losses(networks, rows, starts, settings))

        networks, _ = train(
            update_step,
            networks,
            networks,
            (rows, starts),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, copies.looks(self.num_checkpoints)),
            keys=batch_keys,
            record=record,
            samples=(copies.rows, copies.starts()),
        )

        def fit(seed: int, draw: Draw) -> Fit:
            network = nth(networks, seed)

            def predict(observations: np.ndarray) -> np.ndarray:
                return np.asarray(_ratio(network, single((observations - mean) / std)), np.float64)

            ratio = draw.of_rows(predict(data.observation))
            found = fit_of_state_ratio(draw.problem, ratio, predict, self.value, curves.of(seed))
            return replace(found, notes=(*found.notes, *doubts(self.num_steps, self.target_rate, problem.discount)))

        return [fit(seed, draw) for seed, draw in enumerate(copies.draws)]


def _ratio(network: MLP, inputs: Float[Array, "row input"]) -> Float[Array, " row"]:
    return jnp.exp(jax.vmap(network)(inputs))


def loss(network: MLP, fixed: MLP, rows: dict[str, Array], starts: dict[str, Array], start: Array) -> Float[Array, ""]:
    """E_D[½ w(s)² − γ m ρ w̄(s) w(s′)] − (1 − γ) E[w(s₀)]."""
    arrivals = rows["flow"] * _ratio(fixed, rows["x"]) * _ratio(network, rows["after"])
    return jnp.mean(0.5 * _ratio(network, rows["x"]) ** 2 - arrivals) - start * jnp.mean(_ratio(network, starts["x"]))


def update_step(
    network: MLP,
    fixed: MLP,
    minibatches: tuple[dict[str, Array], dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[MLP, MLP]:
    """The semi-gradient, and the slow copy after its step."""
    gradient = jax.grad(loss)(network, fixed, *minibatches, settings["start"])
    return gradient, soft_update(fixed, network, settings["target_rate"])


@jax.jit
def _ratios(networks: MLP, inputs: Array) -> Array:
    return jax.vmap(lambda network: _ratio(network, inputs))(networks)


@jax.jit
def _losses(networks: MLP, rows: dict[str, Array], starts: dict[str, Array], settings: dict[str, Array]) -> Array:
    return jax.vmap(lambda network: loss(network, network, rows, starts, settings["start"]))(networks)
