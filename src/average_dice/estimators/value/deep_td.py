"""Off-policy TD: a network for q, semi-gradient updates, next actions from π, a target network.

    minimise ½ E[(q(s,a) − (1 − γ) r − γ m q̄(s′,π))²],      q̄ ← q̄ + τ (q − q̄),      Ĵ = E[q(s₀,π)]

The network's output is (1 − γ) Q, an average of rewards, and does not grow with γ. It needs π but not μ, and estimates
all of J. (Fujimoto, Meger & Precup, 2021, call it deep TD.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.network_inputs import NetworkInputs, mean_over, nth, pick
from average_dice.estimators._shared.resampled_copies import Copies, mean_seen
from average_dice.estimators._shared.target_network import short_training, soft_update
from average_dice.estimators.base import TrainedEstimator
from average_dice.estimators.results import Critic, Fit
from average_dice.models import training
from average_dice.models.learning_curves import History, LearningCurves
from average_dice.models.mlp import MLP
from average_dice.models.training import Sample, Schedule, begin
from average_dice.notes import Note
from average_dice.problem import Problem
from average_dice.resampling import Resample


@dataclass(frozen=True)
class DeepTD(TrainedEstimator):
    """Deep TD: a network for q(s, a), semi-gradient updates, a target network.

    τ, the rate of the target network, is `target_rate`: a larger one learns faster, and less stably.
    """

    hidden: tuple[int, ...] = (256, 256)
    learning_rate: float = 3e-4
    target_rate: float = 0.005
    batch_size: int = 512
    num_steps: int = 10_000
    num_checkpoints: int = 50

    def train(
        self, problem: Problem, *, keys: Sequence[jax.Array], resamples: Sequence[Resample] | None = None
    ) -> list[Fit]:
        problem.require_discounting()
        inputs = NetworkInputs.of(problem)
        settings = {"target_rate": self.target_rate, "reward": problem.normaliser}
        width = inputs.transitions["x"].shape[1]
        networks, batch_keys = begin(lambda key: MLP(width, self.hidden, key=key), keys)
        starts = inputs.choices(problem.start_observation)
        copies = Copies.of(problem, len(keys), resamples)
        starts_seen = copies.starts()
        curves = LearningCurves()

        def record(step: int, networks: MLP, target: MLP) -> None:
            curves.add(
                step,
                inputs.unit * np.asarray(_values(networks, *starts, starts_seen), np.float64),
                _losses(networks, inputs.transitions, settings),
            )

        networks, _ = training.train(
            update_step,
            networks,
            networks,
            (inputs.transitions,),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, copies.num_checkpoints(self.num_checkpoints)),
            keys=batch_keys,
            record=record,
            samples=(copies.rows,),
        )
        notes = short_training(self.num_steps, self.target_rate, problem.discount)
        return [self._fit(nth(networks, copy), inputs, curves.of(copy), notes) for copy in range(len(keys))]

    def _fit(self, network: MLP, inputs: NetworkInputs, history: History, notes: tuple[Note, ...]) -> Fit:
        value = float(history.value[-1])
        if not np.isfinite(value):
            raise NotApplicable("training diverged: lower the learning rate")

        def q(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
            return inputs.unit * np.asarray(jax.vmap(network)(inputs.encode(observations, actions)), np.float64)

        def v(observations: np.ndarray) -> np.ndarray:
            return inputs.unit * np.asarray(mean_over(network, *inputs.choices(observations)), np.float64)

        return Fit(value, critic=Critic(q, v), history=history, notes=notes)


def differences(network: MLP, target: MLP, rows: dict[str, Array], reward: Array) -> Array:
    """q(s,a) − (1 − γ) r − γ m q̄(s′,π), of each row."""
    after = mean_over(target, rows["after"], rows["after_weight"])
    return jax.vmap(network)(rows["x"]) - reward * rows["r"] - rows["m"] * after


def update_step(
    network: MLP,
    target: MLP,
    minibatches: tuple[dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[MLP, MLP]:
    """The semi-gradient, and the updated target network."""
    (rows,) = minibatches
    after, weight = pick(rows["after"], rows["after_weight"], key)
    rows = {**rows, "after": after, "after_weight": weight}

    def loss(network: MLP) -> Array:
        return 0.5 * jnp.mean(differences(network, target, rows, settings["reward"]) ** 2)

    return jax.grad(loss)(network), soft_update(target, network, settings["target_rate"])


@jax.jit
def _values(networks: MLP, choices: Array, weights: Array, seen: Sample | None) -> Array:
    return jax.vmap(lambda network, seen: mean_seen(mean_over(network, choices, weights), seen))(networks, seen)


@jax.jit
def _losses(networks: MLP, rows: dict[str, Array], settings: dict[str, Array]) -> Array:
    after, weight = pick(rows["after"], rows["after_weight"], jax.random.key(0))
    rows = {**rows, "after": after, "after_weight": weight}

    def loss(network: MLP) -> Array:
        return 0.5 * jnp.mean(differences(network, network, rows, settings["reward"]) ** 2)

    return jax.vmap(loss)(networks)
