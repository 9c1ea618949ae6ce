"""SR-DICE (Fujimoto, Meger & Precup, 2021): the ratio as a linear function of features, by their successor features.

1. An encoder φ(s, a) that predicts next state (weight 1), action (1) and reward (0.1) linearly.
2. Successor features by TD, one for each output of φ:  ψ(s,a) = (1 − γ) φ(s,a) + γ m E_π[ψ(s′,a′)].
3. ζ = uᵀφ with u = argmin ½ E_D[(uᵀφ)²] − uᵀ E[ψ(s₀,π)]: linear, so solved, and Ĵ = E_D[ζ r].

It needs π but not μ, and estimates all of J.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.estimators._shared.network_inputs import NetworkInputs, mean_over, nth, pick, single
from average_dice.estimators._shared.ratio_fits import fit_of_pair_ratio
from average_dice.estimators._shared.resampled_copies import Copies, mean_seen
from average_dice.estimators._shared.target_network import short_training, soft_update
from average_dice.estimators.base import Estimator, TrainedEstimator
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import PairRule, plain_pairs
from average_dice.features.scaling import mean_and_std
from average_dice.models import training
from average_dice.models.learning_curves import LearningCurves
from average_dice.models.mlp import MLP
from average_dice.models.training import Sample, Schedule, begin
from average_dice.problem import Problem
from average_dice.resampling import Resample

LOSS_WEIGHTS = {"after": 1.0, "action": 1.0, "reward": 0.1}  # those of the paper
ENCODER_SHARE = 0.3  # of the steps of the successor features, as in the paper: 30,000 and 100,000


@dataclass(frozen=True)
class SRDICE(TrainedEstimator):
    """SR-DICE: a ratio that is linear in learnt features, by their successor features.

    `encoder_steps` of stage 1 and `num_steps` of stage 2; the paper takes 30,000 and 100,000.
    """

    hidden: tuple[int, ...] = (256, 256)
    num_features: int = 256
    learning_rate: float = 3e-4
    target_rate: float = 0.005
    batch_size: int = 256
    encoder_steps: int = 2_000
    num_steps: int = 6_000
    num_checkpoints: int = 20
    ridge: float = 1e-6
    value: PairRule = plain_pairs

    def with_training(self, *, num_steps: int, num_checkpoints: int, **options: float) -> "Estimator":
        encoder = replace(self, encoder_steps=max(1, round(ENCODER_SHARE * num_steps)))
        return TrainedEstimator.with_training(encoder, num_steps=num_steps, num_checkpoints=num_checkpoints, **options)

    def train(
        self, problem: Problem, *, keys: Sequence[jax.Array], resamples: Sequence[Resample] | None = None
    ) -> list[Fit]:
        problem.require_discounting()
        inputs = NetworkInputs.of(problem)
        encoder_keys, successor_keys = zip(*(jax.random.split(key) for key in keys), strict=True)
        copies = Copies.of(problem, len(keys), resamples)
        encoders = self._encoders(problem, inputs, copies, encoder_keys)
        phi = np.asarray(_outputs(encoders, inputs.transitions["x"]))
        seen = [resample.of_rows(features) for resample, features in zip(copies.resamples, phi, strict=True)]
        grams = np.stack([np.einsum("nf,ng->fg", one, one, dtype=np.float64) / len(one) for one in seen])
        grams += self.ridge * np.eye(self.num_features)
        starts = inputs.choices(problem.start_observation)
        rows = inputs.transitions
        settings = {"target_rate": self.target_rate, "start": problem.normaliser}
        starts_seen = copies.starts()
        curves = LearningCurves()

        def coefficients(networks: MLP) -> np.ndarray:
            goals = np.asarray(_means(networks, *starts, starts_seen), np.float64)
            return np.linalg.solve(grams, goals[:, :, None])[:, :, 0]

        def record(step: int, networks: MLP, memory: Any) -> None:
            values = [
                np.mean(self.value(resample.problem, features @ solution) * resample.problem.dataset.reward)
                for resample, features, solution in zip(copies.resamples, seen, coefficients(networks), strict=True)
            ]
            curves.add(
                self.encoder_steps + step, np.array(values), _losses(networks, encoders, rows, settings)
            )  # the encoder trained before

        width = rows["x"].shape[1]
        networks, batch_keys = begin(
            lambda key: MLP(width, self.hidden, num_outputs=self.num_features, key=key), successor_keys
        )
        networks, _ = training.train(
            update_step,
            networks,
            {"target": networks, "encoder": encoders},
            (rows,),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, copies.num_checkpoints(self.num_checkpoints)),
            keys=batch_keys,
            record=record,
            samples=(copies.rows,),
        )
        solutions = coefficients(networks)

        too_short = short_training(self.num_steps, self.target_rate, problem.discount)

        def fit(copy: int, resample: Resample) -> Fit:
            encoder = nth(encoders, copy)

            def ratio(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
                features = jax.vmap(encoder)(inputs.encode(observations, actions))
                return np.asarray(features, np.float64) @ solutions[copy]

            rows = resample.of_rows(ratio(problem.dataset.observation, problem.dataset.action))
            found = fit_of_pair_ratio(resample.problem, rows, ratio, self.value, curves.of(copy))
            return replace(found, notes=(*found.notes, *too_short))

        return [fit(copy, resample) for copy, resample in enumerate(copies.resamples)]

    def _encoders(self, problem: Problem, inputs: NetworkInputs, copies: Copies, keys: Sequence[jax.Array]) -> MLP:
        """Stage 1: one trained φ for each key."""
        data = problem.dataset
        x = inputs.transitions["x"]
        encode = data.encoding.encode
        mean, std = mean_and_std(encode(data.observation))
        reward_mean, reward_std = mean_and_std(data.reward[:, None])
        rows = {
            "x": x,
            "after": single((encode(data.next_observation) - mean) / std),
            "action": x[:, len(mean) :],
            "reward": single((data.reward[:, None] - reward_mean) / reward_std),
        }

        def make(key: jax.Array) -> dict[str, MLP]:
            keys = jax.random.split(key, 1 + len(LOSS_WEIGHTS))
            return {
                "phi": MLP(x.shape[1], self.hidden[:1], num_outputs=self.num_features, key=keys[0]),
                **{
                    name: MLP(self.num_features, (), num_outputs=rows[name].shape[1], key=one_key)
                    for name, one_key in zip(LOSS_WEIGHTS, keys[1:], strict=True)
                },
            }

        networks, batch_keys = begin(make, keys)
        trained, _ = training.train(
            encoder_update,
            networks,
            jnp.zeros(len(keys)),
            (rows,),
            {},
            Schedule(self.learning_rate, self.batch_size, self.encoder_steps, 1),
            keys=batch_keys,
            record=lambda step, networks, memory: None,
            samples=(copies.rows,),
        )
        return trained["phi"]


def encoder_update(
    networks: dict[str, MLP], memory: Array, minibatches: tuple[dict[str, Array]], settings: Any, key: jax.Array
) -> tuple[dict[str, MLP], Array]:
    """The gradient of the losses of predicting next state, action and reward."""
    (rows,) = minibatches

    def loss(networks: dict[str, MLP]) -> Array:
        phi = jax.vmap(networks["phi"])(rows["x"])
        errors = {name: jnp.mean((jax.vmap(networks[name])(phi) - rows[name]) ** 2) for name in LOSS_WEIGHTS}
        return sum((weight * errors[name] for name, weight in LOSS_WEIGHTS.items()), jnp.zeros(()))

    return jax.grad(loss)(networks), memory


def successor_loss(network: MLP, target: MLP, encoder: MLP, rows: dict[str, Array], start: Array) -> Float[Array, ""]:
    """½ E ‖ψ(s,a) − (1 − γ) φ(s,a) − γ m ψ̄(s′,π)‖²."""
    phi = jax.vmap(encoder)(rows["x"])
    after = mean_over(target, rows["after"], rows["after_weight"])
    errors = jax.vmap(network)(rows["x"]) - start * phi - rows["m"][:, None] * after
    return 0.5 * jnp.mean(jnp.sum(errors**2, axis=1))


def update_step(
    network: MLP,
    memory: dict[str, Any],
    minibatches: tuple[dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[MLP, dict[str, Any]]:
    """The semi-gradient of the successor features, and their updated target network."""
    (rows,) = minibatches
    target, encoder = memory["target"], memory["encoder"]
    after, after_weight = pick(rows["after"], rows["after_weight"], key)
    rows = {**rows, "after": after, "after_weight": after_weight}
    gradient = jax.grad(successor_loss)(network, target, encoder, rows, settings["start"])
    return gradient, {"target": soft_update(target, network, settings["target_rate"]), "encoder": encoder}


@jax.jit
def _outputs(networks: MLP, inputs: Array) -> Array:
    return jax.vmap(lambda network: jax.vmap(network)(inputs))(networks)


@jax.jit
def _means(networks: MLP, choices: Array, weights: Array, seen: Sample | None) -> Array:
    return jax.vmap(lambda network, seen: mean_seen(mean_over(network, choices, weights), seen))(networks, seen)


@jax.jit
def _losses(networks: MLP, encoders: MLP, rows: dict[str, Array], settings: dict[str, Array]) -> Array:
    after, weight = pick(rows["after"], rows["after_weight"], jax.random.key(0))
    whole = {**rows, "after": after, "after_weight": weight}

    def loss(network: MLP, encoder: MLP) -> Array:
        return successor_loss(network, network, encoder, whole, settings["start"])

    return jax.vmap(loss)(networks, encoders)
