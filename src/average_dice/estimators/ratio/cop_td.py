"""COP-TD, discounted, with a network: the flow of states through the log, by semi-gradient.

    minimise E_D[½ w(s)² − γ m ρ w̄(s) w(s′)] − (1 − γ) E[w(s₀)],      w = exp(network)

where w̄ is the target network, held fixed. (Hallak & Mannor, 2017; Gelada & Bellemare, 2019.) At the fixed point the
flow equation holds for every direction in which the network can change, on a truncated log, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.estimators._shared.network_inputs import nth, single
from average_dice.estimators._shared.ratio_fits import fit_of_state_ratio
from average_dice.estimators._shared.resampled_copies import Copies
from average_dice.estimators._shared.target_network import short_training, soft_update
from average_dice.estimators.base import TrainedEstimator
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import ValueRule, flow_normalised
from average_dice.features.scaling import mean_and_std
from average_dice.models import training
from average_dice.models.learning_curves import LearningCurves
from average_dice.models.mlp import MLP
from average_dice.models.training import Schedule, begin
from average_dice.problem import Problem
from average_dice.resampling import Resample


@dataclass(frozen=True)
class COPTD(TrainedEstimator):
    """COP-TD: a network for the ratio that balances the flow of states, with a target network.

    τ, the rate of the target network, is `target_rate`: a larger one learns faster, and less stably.
    """

    hidden: tuple[int, ...] = (256, 256)
    learning_rate: float = 5e-3
    target_rate: float = 5e-4
    batch_size: int = 512
    num_steps: int = 5_000
    num_checkpoints: int = 50
    value: ValueRule = flow_normalised

    def train(
        self, problem: Problem, *, keys: Sequence[jax.Array], resamples: Sequence[Resample] | None = None
    ) -> list[Fit]:
        problem.require_discounting()
        data, encode = problem.dataset, problem.dataset.encoding.encode
        mean, std = mean_and_std(encode(data.observation))
        rows = {
            "x": single((encode(data.observation) - mean) / std),
            "after": single((encode(data.next_observation) - mean) / std),
            "flow": single(problem.discount * ~data.terminated * problem.ratio),
        }
        starts = {"x": rows["x"][data.starts]}
        settings = {"target_rate": self.target_rate, "start": problem.normaliser}
        width = rows["x"].shape[1]
        networks, batch_keys = begin(lambda key: MLP(width, self.hidden, jnp.tanh, key=key), keys)
        copies = Copies.of(problem, len(keys), resamples)
        curves = LearningCurves()

        def record(step: int, networks: MLP, targets: MLP) -> None:
            ratios = np.asarray(_ratios(networks, rows["x"]), np.float64)
            values = [
                self.value(one.problem, one.of_rows(ratio)) for one, ratio in zip(copies.resamples, ratios, strict=True)
            ]
            curves.add(step, np.array(values), _losses(networks, rows, starts, settings))

        networks, _ = training.train(
            update_step,
            networks,
            networks,
            (rows, starts),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, copies.num_checkpoints(self.num_checkpoints)),
            keys=batch_keys,
            record=record,
            samples=(copies.rows, copies.starts()),
        )

        too_short = short_training(self.num_steps, self.target_rate, problem.discount)

        def fit(copy: int, resample: Resample) -> Fit:
            network = nth(networks, copy)

            def predict(observations: np.ndarray) -> np.ndarray:
                return np.asarray(_ratio(network, single((encode(observations) - mean) / std)), np.float64)

            ratio = resample.of_rows(predict(data.observation))
            found = fit_of_state_ratio(resample.problem, ratio, predict, self.value, curves.of(copy))
            return replace(found, notes=(*found.notes, *too_short))

        return [fit(copy, resample) for copy, resample in enumerate(copies.resamples)]


def _ratio(network: MLP, inputs: Float[Array, "row input"]) -> Float[Array, " row"]:
    return jnp.exp(jax.vmap(network)(inputs))


def loss(network: MLP, target: MLP, rows: dict[str, Array], starts: dict[str, Array], start: Array) -> Float[Array, ""]:
    """E_D[½ w(s)² − γ m ρ w̄(s) w(s′)] − (1 − γ) E[w(s₀)]."""
    arrivals = rows["flow"] * _ratio(target, rows["x"]) * _ratio(network, rows["after"])
    return jnp.mean(0.5 * _ratio(network, rows["x"]) ** 2 - arrivals) - start * jnp.mean(_ratio(network, starts["x"]))


def update_step(
    network: MLP,
    target: MLP,
    minibatches: tuple[dict[str, Array], dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[MLP, MLP]:
    """The semi-gradient, and the updated target network."""
    gradient = jax.grad(loss)(network, target, *minibatches, settings["start"])
    return gradient, soft_update(target, network, settings["target_rate"])


@jax.jit
def _ratios(networks: MLP, inputs: Array) -> Array:
    return jax.vmap(lambda network: _ratio(network, inputs))(networks)


@jax.jit
def _losses(networks: MLP, rows: dict[str, Array], starts: dict[str, Array], settings: dict[str, Array]) -> Array:
    return jax.vmap(lambda network: loss(network, network, rows, starts, settings["start"]))(networks)
