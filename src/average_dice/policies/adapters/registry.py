"""as_policy: whatever a user calls a policy, as one. A new kind takes its file here and one line in `ADAPTERS`.

Kinds are recognised by what they have and by the names of their packages; nothing is imported for that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError, SettingError
from average_dice.policies.adapters.callables import from_function
from average_dice.policies.adapters.classifiers import from_classifier, from_predictor
from average_dice.policies.adapters.d3rlpy_algorithms import from_d3rlpy
from average_dice.policies.adapters.jax_modules import from_equinox, from_flax
from average_dice.policies.adapters.rules import from_rules
from average_dice.policies.adapters.stable_baselines import from_stable_baselines
from average_dice.policies.adapters.tables import from_array, from_frame, from_mapping
from average_dice.policies.adapters.torch_modules import from_module
from average_dice.policies.admissible import admissible
from average_dice.policies.base import Policy
from average_dice.policies.files import load_policy
from average_dice.policies.unbound import UnboundPolicy

ACCEPTED = (
    "a policy is an object with log_prob, sample and weighted_actions, a model with predict_proba or predict, a "
    "function of observations, a module of torch, flax or equinox, a model of Stable-Baselines3 or d3rlpy, a table of "
    "probabilities by state, rules, or the path of a .safetensors, .csv or .json file"
)


@dataclass(frozen=True)
class Adapter:
    """A kind of policies: how it is recognised, and what makes a `Policy` of it, with the log if it is given."""

    name: str
    recognises: Callable[[Any], bool]
    adapt: Callable[..., Policy]


def comes_from(*packages: str) -> Callable[[Any], bool]:
    """Whether a class of the object, or one that it derives from, is of one of these packages."""
    return lambda given: any(kind.__module__.split(".")[0] in packages for kind in type(given).__mro__)


_is_foreign = comes_from("torch", "flax", "equinox", "distrax")  # they may have a log_prob of another meaning


def _is_frame(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "__getitem__") and hasattr(given, "shape")


def _is_array(given: Any) -> bool:
    return isinstance(given, np.ndarray) or (isinstance(given, list) and all(isinstance(one, list) for one in given))


ADAPTERS = (
    Adapter("Stable-Baselines3", comes_from("stable_baselines3", "sb3_contrib"), from_stable_baselines),
    Adapter("d3rlpy", comes_from("d3rlpy"), from_d3rlpy),
    Adapter("predict_proba", lambda given: hasattr(given, "predict_proba"), from_classifier),
    Adapter("torch", comes_from("torch"), from_module),
    Adapter("flax", comes_from("flax"), from_flax),
    Adapter("equinox", comes_from("equinox"), from_equinox),
    Adapter("predict", lambda given: hasattr(given, "predict"), from_predictor),
    Adapter("data frame", _is_frame, from_frame),
    Adapter("rules", lambda given: isinstance(given, Mapping) and "rules" in given, from_rules),
    Adapter("mapping", lambda given: isinstance(given, Mapping), from_mapping),
    Adapter("array", _is_array, from_array),
    Adapter("function", callable, from_function),
)


def as_policy(policy: Any, data: LoggedDataset | None = None, *, mask: bool = False, **options: Any) -> Policy:
    """The object as a `Policy`. `evaluate`, `compare` and `Problem` call it with their log.

    Accepted are: objects of the protocol, which stay as they are; models with `predict_proba` or `predict`; functions;
    modules of torch, flax and equinox; models of Stable-Baselines3 and d3rlpy; tables of probabilities by state; rules;
    and paths of policy files. docs/your_policy.md describes each of them.

    - `data`: the log, which knows the names of columns and actions and whether actions are discrete.
    - `mask`: at the log's states, gives forbidden actions (`action_mask`) probability 0, and divides by the rest.
    - `output`: of functions and modules: `probabilities`, `logits`, `actions` or `gaussian`, if it cannot be guessed.
    - `frame`: of functions: they get a pandas DataFrame with the log's names.
    - `normalise`, `deterministic`: of Stable-Baselines3.

    >>> table = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> policy = as_policy(lambda observations: table[observations[:, 0].astype(int)], output="probabilities")
    >>> np.exp(policy.log_prob(np.array([[0.0], [1.0]]), np.array([1, 1]))).round(3).tolist()
    [0.1, 0.8]
    """
    if isinstance(policy, type):
        raise PolicyError(f"{policy.__name__} is a class. Give an object of it: {ACCEPTED}.")
    found = _adapted(policy, data, options)
    if mask and isinstance(found, UnboundPolicy):
        return UnboundPolicy(lambda log: as_policy(found, log, mask=True), found.source)
    return admissible(found, data) if mask else found


def _adapted(policy: Any, data: LoggedDataset | None, options: dict[str, Any]) -> Policy:
    if isinstance(policy, str | Path):
        policy = load_policy(policy)
    if isinstance(policy, UnboundPolicy):
        _no_options(options, policy.source)
        return policy if data is None else policy.bind(data)
    if hasattr(policy, "weighted_actions") or (hasattr(policy, "log_prob") and not _is_foreign(policy)):
        _no_options(options, type(policy).__name__)
        return policy
    for adapter in ADAPTERS:
        if adapter.recognises(policy):
            known = [name for name, one in signature(adapter.adapt).parameters.items() if one.kind is one.KEYWORD_ONLY]
            if unknown := set(options) - set(known):
                some = f"Its options are {', '.join(known)}." if known else "It has no options."
                raise SettingError(f"{adapter.name}: unknown option {min(unknown)!r}. {some}")
            return adapter.adapt(policy, data, **options)
    raise PolicyError(f"{type(policy).__name__} is not a policy: {ACCEPTED}.")


def _no_options(options: dict[str, Any], name: str) -> None:
    if options:
        raise SettingError(f"{name} is a policy already, and has no option {min(options)!r}.")
