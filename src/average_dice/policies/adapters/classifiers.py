"""Models with `predict_proba`, such as classifiers and pipelines of scikit-learn; and those with `predict` alone."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.policies.adapters.callables import actions_policy
from average_dice.policies.adapters.failing import explained
from average_dice.policies.adapters.frames import as_frame
from average_dice.policies.adapters.log_names import action_codes, num_actions
from average_dice.policies.base import Observations, Policy
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.unbound import UnboundPolicy


def from_classifier(model: Any, data: LoggedDataset | None) -> Policy:
    """π(a|s) = predict_proba, with `classes_` as actions: by the log's names, or by number.

    Actions of the log that the classifier lacks have probability 0. Integers that the log lacks are further actions.
    """
    name = type(model).__name__
    if data is None:
        return UnboundPolicy(partial(from_classifier, model), name)
    if not data.is_discrete:
        raise PolicyError(f"{name} predicts probabilities of classes, and the log's actions are continuous.")
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise PolicyError(f"{name} has no classes_: fit it first.")
    if isinstance(classes, list):
        raise PolicyError(f"{name} predicts several outputs. Give a classifier of one action.")
    codes = action_codes(classes, data, name)
    if codes.min() < 0:
        raise PolicyError(f"{name} has the class {codes.min()}. Actions are numbered 0, 1, 2, …")
    found = ClassProbabilities(model, data, codes, max(num_actions(data), int(codes.max()) + 1))
    with explained(name, data):
        found(data.observation[:1])
    return CategoricalPolicy(found)


def from_predictor(model: Any, data: LoggedDataset | None) -> Policy:
    """A deterministic policy: the action is what the model predicts."""
    if data is None:
        return UnboundPolicy(partial(from_predictor, model), type(model).__name__)
    log = data
    return actions_policy(
        lambda observations: model.predict(inputs(model, observations, log)), data, type(model).__name__
    )


def inputs(model: Any, observations: Observations, data: LoggedDataset) -> Any:
    """The observations as the model was trained on them: a data frame, if it knows names of features."""
    names = getattr(model, "feature_names_in_", None)
    return observations if names is None else as_frame(observations, data, [str(name) for name in names])


@dataclass(frozen=True, eq=False, repr=False)
class ClassProbabilities:
    """log π(·|s): a column for each action of the log."""

    model: Any
    data: LoggedDataset
    codes: np.ndarray  # the action of each class
    num_actions: int

    def __call__(self, observations: Observations) -> np.ndarray:
        found = np.asarray(self.model.predict_proba(inputs(self.model, observations, self.data)), np.float64)
        if found.shape != (len(observations), len(self.codes)):
            raise PolicyError(f"{self!r}: predict_proba has shape {found.shape}, with {len(self.codes)} classes.")
        log_probabilities = np.full((len(observations), self.num_actions), -np.inf)
        with np.errstate(divide="ignore"):
            log_probabilities[:, self.codes] = np.log(found)
        return log_probabilities

    def __repr__(self) -> str:
        return f"{type(self.model).__name__}, {self.num_actions} actions"
