"""The saddle point of the DICE family: one objective, six methods.

With f(x) = x²/2, Q over pairs, ζ the ratio of pairs and λ a number,

    max_ζ min_{Q,λ}  (1 − γ) E[Q(s₀,π)] + λ + E_D[ζ (α_R r + γ m Q(s′,π) − Q(s,a) − λ g)]
                     + α_Q E_D[f(Q)] − α_ζ E_D[f(ζ)]

(Yang, Nachum, Dai, Li & Schuurmans, 2020.) In the literature g = 1: λ pulls the sum of ζ to one, which is wrong where
episodes terminate. By default g = (1 − γm)/(1 − γ), for which E_D[ζ g] = 1 holds on any log. The methods need π but not
μ, and estimate all of J. The network for Q gives (1 − γ) Q.

Simultaneous descent and ascent circles around the saddle point, and momentum drives it away: with plain Adam, MWL and
MQL never converge, and the others hardly. So each player takes an optimistic step, along 2 g_t − g_{t−1} (Daskalakis,
Ilyas, Syrgkanis & Zeng, 2018), by Adam without momentum, and the result is a running average of the parameters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from average_dice.errors import NotApplicable
from average_dice.estimators._shared.network_inputs import NetworkInputs, mean_over, nth, pick, single
from average_dice.estimators._shared.ratio_fits import fit_of_pair_ratio
from average_dice.estimators._shared.resampled_copies import Copies, mean_seen
from average_dice.estimators.base import TrainedEstimator
from average_dice.estimators.results import Critic, Fit
from average_dice.estimators.value_rules import PairRule, flow_normalised_pairs, plain_pairs
from average_dice.models import training
from average_dice.models.learning_curves import History, LearningCurves
from average_dice.models.mlp import MLP
from average_dice.models.training import Sample, Schedule, begin
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample

Players = dict[str, Any]  # "q" and "zeta", networks, and "lam", a number
Memory = dict[str, Players]  # "average", the running one, and "gradient", the last


def flow_goal(problem: Problem) -> Rows:
    """g = (1 − γm)/(1 − γ)."""
    return problem.flow / problem.normaliser


def unit_goal(problem: Problem) -> Rows:
    """g = 1, as in the literature."""
    return np.ones(problem.dataset.num_transitions)


@dataclass(frozen=True)
class Game:
    """How the six methods differ: α_Q, α_ζ, α_R, whether ζ is a square (ζ ≥ 0), and whether λ is learnt."""

    alpha_q: float
    alpha_zeta: float
    alpha_r: float
    positive: bool
    normalises: bool


@dataclass(frozen=True)
class SaddlePoint(TrainedEstimator):
    """Made by its constructors: `dual_dice`, `gen_dice`, `gradient_dice`, `best_dice`, `mwl`, `mql`.

    `goal` is g; `value` is how the value follows from ζ, None if it follows from Q.
    """

    game: Game
    value: PairRule | None = plain_pairs
    goal: Callable[[Problem], Rows] = flow_goal
    hidden: tuple[int, ...] = (256, 256)
    learning_rate: float = 1e-4
    batch_size: int = 512
    average_rate: float = 0.002  # averages over about the last 500 steps
    num_steps: int = 2_000
    num_checkpoints: int = 30

    @staticmethod
    def dual_dice() -> "SaddlePoint":
        """DualDICE: a saddle point with a penalty on ζ.

        (Nachum, Chow, Dai & Li, 2019.)
        """
        return SaddlePoint(Game(0.0, 1.0, 0.0, positive=False, normalises=False))

    @staticmethod
    def gen_dice() -> "SaddlePoint":
        """GenDICE: a saddle point with a penalty on Q, ζ ≥ 0, normalised.

        (Zhang, Dai, Li & Schuurmans, 2020.)
        """
        return SaddlePoint(Game(1.0, 0.0, 0.0, positive=True, normalises=True))

    @staticmethod
    def gradient_dice() -> "SaddlePoint":
        """GradientDICE: GenDICE with a ζ of any sign.

        (Zhang, Liu & Whiteson, 2020.)
        """
        return SaddlePoint(Game(1.0, 0.0, 0.0, positive=False, normalises=True))

    @staticmethod
    def best_dice() -> "SaddlePoint":
        """BestDICE: a saddle point with rewards and a penalty on ζ, ζ ≥ 0, normalised.

        (Yang et al., 2020.)
        """
        return SaddlePoint(Game(0.0, 1.0, 1.0, positive=True, normalises=True), flow_normalised_pairs)

    @staticmethod
    def mwl() -> "SaddlePoint":
        """Minimax weight learning: a saddle point without a penalty.

        (Uehara, Huang & Jiang, 2020.)
        """
        return SaddlePoint(Game(0.0, 0.0, 0.0, positive=False, normalises=False))

    @staticmethod
    def mql() -> "SaddlePoint":
        """Minimax Q learning: a saddle point with rewards; its value is that of Q.

        (Uehara, Huang & Jiang, 2020.)
        """
        return SaddlePoint(Game(0.0, 0.0, 1.0, positive=False, normalises=False), None)

    def train(
        self, problem: Problem, *, keys: Sequence[jax.Array], resamples: Sequence[Resample] | None = None
    ) -> list[Fit]:
        problem.require_discounting()
        inputs = NetworkInputs.of(problem)
        rows = {**inputs.transitions, "g": single(self.goal(problem))}
        settings = {
            "alpha_q": self.game.alpha_q,
            "alpha_zeta": self.game.alpha_zeta,
            "alpha_r": self.game.alpha_r,
            "positive": float(self.game.positive),
            "normalises": float(self.game.normalises),
            "start": problem.normaliser,
            "average_rate": self.average_rate,
        }
        players, batch_keys = begin(lambda key: self._players(rows["x"].shape[1], key), keys)
        copies = Copies.of(problem, len(keys), resamples)
        starts_seen = copies.starts(len(inputs.starts["x"]) // problem.dataset.num_episodes)
        curves = LearningCurves()
        checkpoints = copies.num_checkpoints(self.num_checkpoints)

        def record(step: int, players: Players, memory: Memory) -> None:
            ratios, direct, losses = _at_checkpoint(memory["average"], rows, inputs.starts, starts_seen, settings)
            direct = inputs.unit * np.asarray(direct, np.float64)
            curves.add(step, self._values(copies.resamples, np.asarray(ratios, np.float64), direct), losses)

        _, memory = training.train(
            update_step,
            players,
            {"average": players, "gradient": jax.tree.map(jnp.zeros_like, players)},
            (rows, inputs.starts),
            settings,
            Schedule(self.learning_rate, self.batch_size, self.num_steps, checkpoints, momentum=0.0),
            keys=batch_keys,
            record=record,
            samples=(copies.rows, starts_seen),
        )
        return [
            self._fit(problem, resample, nth(memory["average"], copy), inputs, settings, curves.of(copy))
            for copy, resample in enumerate(copies.resamples)
        ]

    def _players(self, width: int, key: jax.Array) -> Players:
        for_q, for_zeta = jax.random.split(key)
        return {
            "q": MLP(width, self.hidden, key=for_q),
            "zeta": MLP(width, self.hidden, key=for_zeta),
            "lam": jnp.zeros(()),
        }

    def _values(self, resamples: list[Resample], ratios: np.ndarray, direct: np.ndarray) -> np.ndarray:
        if self.value is None:
            return direct
        return np.array(
            [
                np.mean(self.value(resample.problem, resample.of_rows(ratio)) * resample.problem.dataset.reward)
                for resample, ratio in zip(resamples, ratios, strict=True)
            ]
        )

    def _fit(
        self,
        problem: Problem,
        resample: Resample,
        players: Players,
        inputs: NetworkInputs,
        settings: dict[str, float],
        history: History,
    ) -> Fit:
        def ratio(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
            return np.asarray(zeta(players, inputs.encode(observations, actions), settings), np.float64)

        if self.value is not None:
            rows = resample.of_rows(ratio(problem.dataset.observation, problem.dataset.action))
            return fit_of_pair_ratio(resample.problem, rows, ratio, self.value, history)
        if not np.isfinite(history.value[-1]):
            raise NotApplicable("training diverged: lower the learning rate")

        def q(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
            return inputs.unit * np.asarray(jax.vmap(players["q"])(inputs.encode(observations, actions)), np.float64)

        def v(observations: np.ndarray) -> np.ndarray:
            return inputs.unit * np.asarray(mean_over(players["q"], *inputs.choices(observations)), np.float64)

        return Fit(float(history.value[-1]), critic=Critic(q, v), history=history)


def zeta(players: Players, inputs: Float[Array, "row input"], settings: dict[str, Any]) -> Float[Array, " row"]:
    """ζ: the network's output, or its square."""
    outputs = jax.vmap(players["zeta"])(inputs)
    return settings["positive"] * outputs**2 + (1 - settings["positive"]) * outputs


def objective(
    players: Players, rows: dict[str, Array], starts: dict[str, Array], settings: dict[str, Array]
) -> Float[Array, ""]:
    """The objective above; `rows` and `starts` have actions of π and their weights."""
    scale = 1 / settings["start"]  # the network gives (1 − γ) Q
    inputs = [rows["x"], _flat(rows["after"]), _flat(starts["x"])]
    outputs = jax.vmap(players["q"])(jnp.concatenate(inputs))  # one long batch: one matrix product per layer, not three
    q, after, start = jnp.split(outputs, np.cumsum([len(part) for part in inputs])[:-1])
    q = scale * q
    q_after = scale * jnp.sum(rows["after_weight"] * after.reshape(rows["after_weight"].shape), axis=1)
    at_start = jnp.mean(jnp.sum(starts["weight"] * start.reshape(starts["weight"].shape), axis=1))
    ratio = zeta(players, rows["x"], settings)
    lam = settings["normalises"] * players["lam"]
    balance = settings["alpha_r"] * rows["r"] + rows["m"] * q_after - q - lam * rows["g"]
    penalties = settings["alpha_q"] * 0.5 * q**2 - settings["alpha_zeta"] * 0.5 * ratio**2
    return at_start + lam + jnp.mean(ratio * balance + penalties)


def _flat(choices: Float[Array, "row resample input"]) -> Float[Array, "choice input"]:
    return choices.reshape(-1, choices.shape[-1])


def update_step(
    players: Players,
    memory: Memory,
    minibatches: tuple[dict[str, Array], dict[str, Array]],
    settings: dict[str, Array],
    key: jax.Array,
) -> tuple[Players, Memory]:
    """Q and λ descend, ζ ascends, each along 2 g_t − g_{t−1}."""
    rows, starts = minibatches
    after, after_weight = pick(rows["after"], rows["after_weight"], key)
    rows = {**rows, "after": after, "after_weight": after_weight}
    gradient = jax.grad(objective)(players, rows, starts, settings)
    gradient["zeta"] = jax.tree.map(jnp.negative, gradient["zeta"])
    optimistic = jax.tree.map(lambda now, then: 2 * now - then, gradient, memory["gradient"])
    rate = settings["average_rate"]
    average = jax.tree.map(lambda mean, now: mean + rate * (now - mean), memory["average"], players)
    return optimistic, {"average": average, "gradient": gradient}


@jax.jit
def _at_checkpoint(
    players: Players,
    rows: dict[str, Array],
    starts: dict[str, Array],
    starts_seen: Sample | None,
    settings: dict[str, Array],
) -> tuple[Array, Array, Array]:
    """ζ on the rows, E[q(s₀,π)] over the starts of each copy, and the objective on the whole log.

    If actions were sampled, the objective uses one of them at each state.
    """
    after, after_weight = pick(rows["after"], rows["after_weight"], jax.random.key(0))
    whole = {**rows, "after": after, "after_weight": after_weight}

    def one(players: Players, seen: Sample | None) -> tuple[Array, Array, Array]:
        direct = mean_seen(mean_over(players["q"], starts["x"], starts["weight"]), seen)
        return zeta(players, rows["x"], settings), direct, objective(players, whole, starts, settings)

    return jax.vmap(one)(players, starts_seen)
