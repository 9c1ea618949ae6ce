"""From a learnt ratio to a `Fit`: the value, the weights of the rows, and how evenly they are spread."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import PairRule, ValueRule, flow_mass, flow_normalised_pairs
from average_dice.models.learning_curves import History
from average_dice.notes import Note, NoteCode
from average_dice.problem import Episodes, Problem, Rows

Predict = Callable[..., Float[np.ndarray, " row"]]

NO_OVERLAP = "the policy gives probability zero to the first action of every logged episode: no overlap"
NO_EPISODE = "the policy gives probability zero to at least one action of every logged episode: no overlap"
OVERFLOW = "the products of importance ratios exceed float64: the policy and the log hardly overlap"
IGNORED = Note(NoteCode.TRUNCATION_IGNORED, "rewards after truncation are ignored")


def fit_of_state_ratio(
    problem: Problem, ratio: Rows, predict: Predict, value: ValueRule, history: History | None = None
) -> Fit:
    """The fit of a method that learns w(s): `ratio` on the rows, `predict(observations)` at any state."""

    def ratio_of(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        if actions is not None:
            raise NotApplicable("it learns the ratio of states, not of states and actions")
        check_observations(problem, observations)
        return predict(observations)

    found_mass = float(np.mean(ratio * flow_mass(problem)))
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = value.weights(problem, ratio)
    return _fit(value(problem, ratio), weights, found_mass, ratio_of, value.name, history)


def fit_of_pair_ratio(
    problem: Problem, ratio: Rows, predict: Predict, value: PairRule, history: History | None = None
) -> Fit:
    """The fit of a method that learns ζ(s, a): `ratio` on the rows, `predict(observations, actions)` at any."""

    def ratio_of(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        if actions is None:
            raise NotApplicable("it learns the ratio of states and actions: give both")
        check_observations(problem, observations)
        return predict(observations, actions)

    found_mass = float(np.mean(ratio * problem.flow)) / problem.normaliser
    weights = value(problem, ratio)
    name = "flow-normalised" if value is flow_normalised_pairs else "not normalised"
    return _fit(float(np.mean(weights * problem.dataset.reward)), weights, found_mass, ratio_of, name, history)


def _fit(value: float, weights: Rows, found_mass: float, ratio_of: Predict, rule: str, history: History | None) -> Fit:
    if not (np.isfinite(value) and np.isfinite(weights).all()):
        raise NotApplicable("the weights it found have no positive mass, or no finite one")
    diagnostics = {**weight_diagnostics(weights), "flow_mass": found_mass}
    return Fit(value, weights, ratio_of, diagnostics=diagnostics, history=history, notes=(value_note(rule),))


def value_note(rule: str) -> Note:
    """How the value follows from the ratio."""
    return Note(NoteCode.VALUE_RULE, f"value {rule}")


def weight_diagnostics(weights: Rows) -> dict[str, float]:
    """How evenly the weight is spread over rows. A small effective sample size or one large share is little support."""
    largest = float(np.abs(weights).max())
    if largest == 0:
        return {"effective_sample_size": 0.0}
    relative = weights / largest
    size = float(np.abs(relative).sum())
    return {
        "effective_sample_size": float(relative.sum() ** 2 / (relative @ relative)),
        "largest_weight_share": 1 / size,
        "negative_weight_share": float(np.abs(relative[relative < 0]).sum()) / size,
    }


def added_by_episode(problem: Problem, rows: Rows) -> Episodes:
    """The contribution of each episode to the mean over rows: the mean over episodes is the mean over rows."""
    data = problem.dataset
    return problem.by_episode(rows) * data.num_episodes / data.num_transitions


def check_observations(problem: Problem, observations: np.ndarray) -> None:
    """Raises unless the observations have as many dimensions as those of the log."""
    width = problem.dataset.observation.shape[1]
    if observations.ndim != 2 or observations.shape[1] != width:
        raise SettingError(f"give observations as [row, {width}], not of shape {observations.shape}.")
