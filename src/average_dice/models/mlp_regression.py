"""Regression by an MLP, trained on the paper's loss with its dual variable.

    ½ E[(f(x) − y)²] + (λ₁/2) ‖θ‖² + λ₂ ( max_η E[η (a f(x) − b)] − η²/2 )

A minibatch gives no unbiased estimate of the square of a mean, but one of its Fenchel dual. θ descends by Adam, and η
ascends by plain steps that take it a fixed part of the way to its maximum E[a f] − b. (With Adam, the size of η's steps
would not depend on its gradient; θ and η would oscillate, and at λ₂ = 5 the mass would never converge.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from average_dice.features.scaling import mean_and_std
from average_dice.models.early_stopping import Best, left_out
from average_dice.models.learning_curves import LearningCurves
from average_dice.models.mlp import MLP
from average_dice.models.regression import (
    Fitted,
    FittedAnew,
    Inputs,
    PreparedModel,
    RatioModel,
    Regression,
    Resampled,
    RowValues,
    ValueOf,
)
from average_dice.models.training import Sample, Schedule, UpdateStep, begin, train
from average_dice.problem import Problem

# Larger targets are divided by a common unit first, so that their squares fit into float32 (3e38).
LARGEST_TARGET = 1e12

Memory = dict[str, Array]  # "dual", and of each copy the "goal" of its mass and the "offset" of its targets


@dataclass(frozen=True)
class MLPRegression(RatioModel):
    """The paper's setting by default; λ₁ is `ridge`, λ₂ is `mass_weight`.

    `standardise` standardises the inputs; the paper uses them raw. With `held_out`, that share of the episodes is held
    out, the network with the least squared error on them is kept, and training stops after `patience` checkpoints
    without progress. The network then learns the difference from the mean target: without informative inputs it
    predicts the mean target, and not 0 like an untrained network.
    """

    hidden: tuple[int, ...] = (256, 256)
    ridge: float = 0.001
    mass_weight: float = 0.5
    learning_rate: float = 5e-4
    dual_rate: float = 0.1  # averages the mass over about ten minibatches
    batch_size: int = 512
    num_steps: int = 10_000
    standardise: bool = False
    num_checkpoints: int = 50
    held_out: float = 0.0
    patience: int = 10  # a fifth of the checkpoints: longer costs time, shorter stops in a plateau

    @property
    def trains(self) -> bool:
        return True

    def fit(self, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> Fitted:
        return self.fit_seeds(regression, keys=[key], value_of=value_of)[0]

    def fit_seeds(self, regression: Regression, *, keys: Sequence[jax.Array], value_of: ValueOf) -> list[Fitted]:
        return self.train([regression], keys=keys, values_of=[value_of])

    def prepare(self, problem: Problem, regression: Regression, *, key: jax.Array, value_of: ValueOf) -> PreparedModel:
        return TrainedTogether(self, regression, key, value_of, problem)

    def train(
        self, regressions: Sequence[Regression], *, keys: Sequence[jax.Array], values_of: Sequence[ValueOf]
    ) -> list[Fitted]:
        """One network for each key, all trained together, each on its own regression, or all on the only one."""
        scaled = [Scaled.of(one, self.standardise, self.held_out) for one in regressions]
        columns = {  # of all regressions, one after the other
            "x": jnp.concatenate([one.inputs(one.regression.inputs) for one in scaled]),
            "y": _single(np.concatenate([one.regression.targets / one.unit for one in scaled])),
            "a": _single(np.concatenate([one.regression.mass for one in scaled])),
        }
        if any(one.regression.weights is not None for one in scaled):
            columns["weight"] = _single(np.concatenate([one.regression.unit_weights for one in scaled]))
        rows = np.split(np.arange(len(columns["y"])), np.cumsum([len(one.left_out) for one in scaled])[:-1])
        sees = None
        if len(scaled) > 1:
            sees = Sample.of(rows)
        else:
            scaled, rows, values_of = scaled * len(keys), rows * len(keys), list(values_of) * len(keys)
        kept = Sample.of([every[~one.left_out] for every, one in zip(rows, scaled, strict=True)])
        memory = {
            "dual": jnp.zeros(len(keys)),
            "goal": _single(np.array([one.regression.mass_goal / one.unit for one in scaled])),
            "offset": _single(np.array([one.offset for one in scaled])),
        }
        settings = {"ridge": self.ridge, "mass_weight": self.mass_weight, "dual_rate": self.dual_rate}
        num_inputs = columns["x"].shape[1]
        networks, batch_keys = begin(lambda key: self.network(num_inputs, key), keys)
        curves = LearningCurves()
        best = Best(self.patience)
        stops = any(one.left_out.any() for one in scaled)
        num_checkpoints = self.num_checkpoints if stops or sees is None else 1  # the curves of resamples are not used

        def on_rows(networks: MLP) -> list[RowValues]:
            outputs = np.asarray(_outputs(networks, columns["x"], sees), np.float64)
            return [one.f(of_one[: len(one.left_out)]) for one, of_one in zip(scaled, outputs, strict=True)]

        def record(step: int, networks: MLP, memory: Memory) -> bool:
            rows = on_rows(networks)
            penalties = self.ridge * np.asarray(self.penalties(networks), np.float64)
            losses = [self.loss(one.regression, f) for one, f in zip(scaled, rows, strict=True)] + penalties
            curves.add(step, np.array([value_of(f) for value_of, f in zip(values_of, rows, strict=True)]), losses)
            if not stops:
                return False
            return best.offer(networks, np.array([one.held_out_error(f) for one, f in zip(scaled, rows, strict=True)]))

        networks, memory = train(
            self.update_step,
            networks,
            memory,
            (columns,),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, num_checkpoints),
            keys=batch_keys,
            record=record,
            samples=(kept,),
        )
        if stops:
            networks = best.parameters
            record(curves.forget_last(), networks, memory)  # so that the curves end at the kept network

        def fitted(copy: int, one: Scaled, rows: RowValues) -> Fitted:
            network: MLP = jax.tree.map(lambda leaf: leaf[copy : copy + 1], networks)

            def predict(inputs: Inputs) -> RowValues:
                return one.f(np.asarray(_outputs(network, one.inputs(inputs), None)[0], np.float64))

            return Fitted(rows, predict, curves.of(copy))

        found = zip(scaled, on_rows(networks), strict=True)
        return [fitted(copy, one, rows) for copy, (one, rows) in enumerate(found)]

    @property
    def update_step(self) -> UpdateStep:
        """The gradient step of the loss."""
        return update_step

    def network(self, num_inputs: int, key: jax.Array) -> MLP:
        """The network before its training."""
        return MLP(num_inputs, self.hidden, key=key)

    def penalties(self, networks: MLP) -> Float[Array, " copy"]:
        """½ ‖θ‖² of each network."""
        return _square_norms(networks) / 2

    def loss(self, regression: Regression, f: RowValues) -> float:
        """The loss on the whole log with the dual variable at its maximum, without the penalty on θ."""
        missing = np.mean(regression.mass * f) - regression.mass_goal
        errors = (f - regression.targets) ** 2
        return float(0.5 * np.mean(regression.unit_weights * errors) + 0.5 * self.mass_weight * missing**2)


@dataclass(frozen=True, eq=False)
class TrainedTogether(FittedAnew):
    """Resamples train at once. A repeated episode keeps its number, so that it is either held out or trained on."""

    model: MLPRegression
    problem: Problem

    def refit(self, resamples: Sequence[Resampled]) -> list[Fitted]:
        episodes = [one.resample.of_rows(self.problem.episode_index) for one in resamples]
        return self.model.train(
            [replace(one.regression, episode=episode) for one, episode in zip(resamples, episodes, strict=True)],
            keys=[self.key] * len(resamples),
            values_of=[one.value_of for one in resamples],
        )


@dataclass(frozen=True, eq=False)
class Scaled:
    """A regression in the form that the network learns: scaled inputs, and targets in a unit and from an offset."""

    regression: Regression
    mean: Float[np.ndarray, " input"]
    std: Float[np.ndarray, " input"]
    unit: float
    offset: float
    left_out: Bool[np.ndarray, " row"]

    @staticmethod
    def of(regression: Regression, standardise: bool, held_out: float) -> "Scaled":
        """The scales of a regression, and its held-out rows."""
        mean, std = mean_and_std(regression.inputs) if standardise else (np.zeros(1), np.ones(1))
        unit = max(1.0, float(np.abs(regression.targets).max()) / LARGEST_TARGET)
        out = left_out(regression.episode, held_out)
        offset = float(_single(regression.targets / unit)[~out].mean()) if out.any() else 0.0
        return Scaled(regression, mean, std, unit, offset, out)

    def inputs(self, inputs: Inputs) -> Float[Array, "row input"]:
        """Inputs as the network takes them."""
        return _single((inputs - self.mean) / self.std)

    def f(self, outputs: RowValues) -> RowValues:
        """From the outputs of the network to f."""
        return self.unit * (self.offset + outputs)

    def held_out_error(self, f: RowValues) -> float:
        """On the held-out rows; on all rows of a resample that has a single episode."""
        rows = self.left_out if self.left_out.any() else ~self.left_out
        return float(np.mean(self.regression.unit_weights[rows] * (f - self.regression.targets)[rows] ** 2))


def update_step(
    network: MLP,
    memory: Memory,
    minibatches: tuple[dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[MLP, Memory]:
    """The gradient of the loss for the network, and the dual variable after its ascent step."""
    (minibatch,) = minibatches
    dual = memory["dual"]

    def loss(network: MLP) -> tuple[Float[Array, ""], Float[Array, ""]]:
        f = memory["offset"] + jax.vmap(network)(minibatch["x"])
        error = 0.5 * jnp.mean(minibatch.get("weight", 1.0) * (f - minibatch["y"]) ** 2)
        penalty = 0.5 * settings["ridge"] * _square_norm(network)
        missing = jnp.mean(minibatch["a"] * f) - memory["goal"]
        return error + penalty + settings["mass_weight"] * dual * missing, missing

    gradient, missing = jax.grad(loss, has_aux=True)(network)
    return gradient, {**memory, "dual": dual + settings["dual_rate"] * (missing - dual)}


@jax.jit
def _outputs(networks: MLP, inputs: Float[Array, "row input"], sees: Sample | None) -> Float[Array, "copy seen"]:
    if sees is None:
        return jax.vmap(lambda network: jax.vmap(network)(inputs))(networks)
    return jax.vmap(lambda network, rows: jax.vmap(network)(inputs[rows]))(networks, sees.rows)


@jax.jit
def _square_norms(networks: MLP) -> Float[Array, " copy"]:
    return jax.vmap(_square_norm)(networks)


def _square_norm(network: MLP) -> Float[Array, ""]:
    return jnp.sum(jnp.stack([jnp.sum(leaf**2) for leaf in jax.tree.leaves(network)]))


def _single(values: np.ndarray) -> Array:
    return jnp.asarray(values, jnp.float32)
