"""Models of discrete actions. Each gives log-probabilities of all actions in every row.

    probabilities of a row's fold  ←  fitted to the rows of all other folds, by their weights

- `Constant`: how often each action was taken.
- `Table`: how often at each state, shrunk towards the constant; for states that repeat.
- `Softmax`: multinomial logistic regression with a ridge, on linear or on random Fourier features.
- `Trees`: gradient-boosted trees of scikit-learn.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from average_dice.behaviour.folded import FoldedLog, Rows

HALF = 0.5  # of a row of every action: no action has the probability 0 only because a fold lacks it
STEPS = 200  # of L-BFGS, at most
NUM_TREES, NUM_LEAVES, LEARNING_RATE = 60, 8, 0.1  # small trees, few enough for bootstrap resamples
LEAST_CURVATURE = 1e-8  # makes the preconditioner invertible

LogProbs = Float[np.ndarray, "transition choice"]


@runtime_checkable
class CategoricalModel(Protocol):
    """A model of discrete actions."""

    @property
    def name(self) -> str:
        """In words, with its settings."""

    def predict(self, log: FoldedLog, weights: Rows) -> LogProbs:
        """log μ(a|s) of every action in every row, from models that have not seen the row's fold."""


@dataclass(frozen=True)
class Constant:
    """The same probabilities in every row."""

    name: str = "constant"

    def predict(self, log: FoldedLog, weights: Rows) -> LogProbs:
        """Frequencies in the other folds."""
        counts = _counts(log, weights, np.zeros(len(weights), np.int64), 1)
        return np.log(_frequencies(counts)[log.fold, 0])


@dataclass(frozen=True)
class Table:
    """Frequencies at each state, as if `shrinkage` more rows of the state had the actions of the whole log."""

    shrinkage: float

    @property
    def name(self) -> str:
        """With its shrinkage."""
        return f"table (shrinkage {self.shrinkage:g})"

    def predict(self, log: FoldedLog, weights: Rows) -> LogProbs:
        """Frequencies in the other folds."""
        counts = _counts(log, weights, log.states.logged, log.states.number)
        overall = _frequencies(counts.sum(axis=1))
        shrunk = counts + self.shrinkage * overall[:, None]
        return np.log(shrunk / shrunk.sum(axis=2, keepdims=True))[log.fold, log.states.logged]


def _counts(
    log: FoldedLog, weights: Rows, state: np.ndarray, num_states: int
) -> Float[np.ndarray, "fold state choice"]:
    """The weight of every action at every state, outside of each fold."""
    shape = (log.num_folds, num_states, log.num_actions)
    place = np.ravel_multi_index((log.fold, state, log.data.action), shape)
    inside = np.bincount(place, weights, int(np.prod(shape))).reshape(shape)
    return inside.sum(axis=0) - inside


def _frequencies(counts: np.ndarray) -> np.ndarray:
    return (counts + HALF) / (counts + HALF).sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Softmax:
    """log μ(a|s) = φ(s)ᵀβ_a − log Σ exp, with the ridge λ/2 ‖β‖² on the mean negative log likelihood.

    L-BFGS in coordinates in which the curvature at β = 0 is the identity. Resamples start from the fit to the log.
    """

    features: Literal["linear", "fourier"]
    ridge: float
    _starts: dict[int, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """With its ridge."""
        return f"{self.features} (ridge {self.ridge:g})"

    def predict(self, log: FoldedLog, weights: Rows) -> LogProbs:
        """One regression for each fold."""
        phi = log.linear if self.features == "linear" else log.fourier
        penalty = np.full(phi.shape[1], self.ridge)
        penalty[0] = LEAST_CURVATURE  # of the constant
        curvature = phi.T @ phi / (4 * len(phi)) + np.diag(penalty + LEAST_CURVATURE)
        root = solve_triangular(cholesky(curvature), np.eye(len(curvature)))  # β = root θ
        scaled = phi @ root
        found = np.empty((len(phi), log.num_actions))
        for fold, train, rest in log.splits(weights):
            start = self._starts.get(fold, np.zeros((phi.shape[1], log.num_actions)))
            theta = _fitted(log, scaled[train], train, weights[train], root, penalty, start)
            self._starts.setdefault(fold, theta)
            found[rest] = scaled[rest] @ theta
        return found


def _fitted(
    log: FoldedLog,
    scaled: np.ndarray,
    train: np.ndarray,
    weights: np.ndarray,
    root: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    """The coefficients θ of a multinomial regression."""
    if not len(train):
        return np.zeros_like(start)
    share = weights / weights.sum()
    taken = np.zeros((len(train), log.num_actions))
    taken[np.arange(len(train)), log.data.action[train]] = 1.0
    mask = None if log.mask is None else log.mask[train]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(start.shape)
        log_prob = normalised(scaled @ theta, mask)
        beta = root @ theta
        fit = -float(share @ log_prob[taken > 0])
        slope = scaled.T @ (share[:, None] * (np.exp(log_prob) - taken)) + root.T @ (penalty[:, None] * beta)
        return fit + 0.5 * float((penalty[:, None] * beta**2).sum()), slope.ravel()

    options = {"maxiter": STEPS, "ftol": 1e-9, "gtol": 1e-6}
    return np.asarray(minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options).x).reshape(
        start.shape
    )


@dataclass(frozen=True)
class Trees:
    """Gradient-boosted trees on the inputs."""

    name: str = "trees"

    def predict(self, log: FoldedLog, weights: Rows) -> LogProbs:
        """One classifier for each fold."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        inputs = log.linear[:, 1:]
        least = HALF / (weights.sum() + HALF * log.num_actions)
        found = np.full((len(inputs), log.num_actions), least)
        for _, train, rest in log.splits(weights):
            actions = np.unique(log.data.action[train])
            if len(actions) < 2:
                found[np.ix_(rest, actions)] = 1.0
                continue
            trees = HistGradientBoostingClassifier(
                max_iter=NUM_TREES,
                max_leaf_nodes=NUM_LEAVES,
                learning_rate=LEARNING_RATE,
                early_stopping=False,
                random_state=0,
            )
            with threadpool_limits(1, "openmp"):  # resamples have threads of their own
                trees.fit(inputs[train], log.data.action[train], sample_weight=weights[train])
                found[np.ix_(rest, actions)] = np.maximum(trees.predict_proba(inputs[rest]), least)
        return np.log(found)


def normalised(scores: np.ndarray, mask: np.ndarray | None) -> LogProbs:
    """Log-probabilities; −∞ for forbidden actions."""
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
