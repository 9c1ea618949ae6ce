"""Policy files: safetensors with a fixed set of names, tables in CSV, rules in JSON. Reading never executes code."""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from average_dice.errors import PolicyError
from average_dice.files import written_whole
from average_dice.policies.adapters.rules import read_rules
from average_dice.policies.adapters.tables import read_csv
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.gaussian import GaussianPolicy
from average_dice.policies.network import Network
from average_dice.policies.unbound import UnboundPolicy

FORMAT, VERSION = "average-dice-policy", "1"
READERS = {".csv": read_csv, ".json": read_rules}  # by names; all other files are safetensors
PolicyOfFile = CategoricalPolicy | GaussianPolicy | DeterministicPolicy

# A standard deviation of e⁻²⁰ = 2·10⁻⁹ is below the rounding of float32 actions: such a policy is deterministic.
LEAST_LOG_STD = -20.0


def load_policy(path: str | Path) -> PolicyOfFile | UnboundPolicy:
    """Reads a policy file. A Gaussian policy whose `log_std` are all below −20, or −∞, is read as deterministic.

    Tables (.csv) and rules (.json) speak of columns and actions by name. `evaluate` finds these in its log;
    elsewhere use `as_policy(policy, data)`.

    >>> policy = load_policy("policy.safetensors")  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise PolicyError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}. Check the path.")
    if path.suffix in READERS:
        return READERS[path.suffix](path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise PolicyError(f"{path}: not a readable safetensors file ({error}).") from None
    try:
        return _build(metadata, tensors)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None


def save_policy(policy: PolicyOfFile, path: str | Path) -> None:
    """Writes a policy whose logits, mean or continuous actions are a `Network`, a deterministic one as Gaussian with a
    `log_std` of −∞. The file appears whole or not at all.
    """
    network = _function_of(policy)
    if not isinstance(network, Network):
        raise PolicyError("only a policy made of a Network can be saved, and this one is made of another function.")
    tensors = {}
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        tensors[f"layers.{layer}.weight"], tensors[f"layers.{layer}.bias"] = weight, bias
    optional = {"observation.mean": network.mean, "observation.std": network.std}
    if isinstance(policy, GaussianPolicy):
        optional |= {"log_std": policy.log_std, "action.low": policy.low, "action.high": policy.high}
    if isinstance(policy, DeterministicPolicy):
        optional |= {"log_std": np.full(network.num_outputs, -np.inf)}
    tensors |= {name: values for name, values in optional.items() if values is not None}
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "distribution": "categorical" if isinstance(policy, CategoricalPolicy) else "gaussian",
        "activation": network.activation,
    }
    content = save({name: np.ascontiguousarray(values) for name, values in tensors.items()}, metadata)
    with written_whole(path) as temporary:
        temporary.write_bytes(content)


def _function_of(policy: PolicyOfFile) -> Any:
    match policy:
        case CategoricalPolicy():
            return policy.logits
        case GaussianPolicy():
            return policy.mean
    return None if policy.is_discrete else policy.action


def _build(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> PolicyOfFile:
    if metadata.get("format") != FORMAT:
        raise PolicyError(f"not a policy file: its metadata must have format = {FORMAT}.")
    if metadata.get("version") != VERSION:
        raise PolicyError(f"version {metadata.get('version')} is not known here. Update average-dice.")
    unused = {name: values.astype(np.float64) for name, values in tensors.items()}

    weights: list[np.ndarray] = []
    biases: list[np.ndarray] = []
    while (name := f"layers.{len(weights)}.weight") in unused:
        weights.append(unused.pop(name))
        bias = unused.pop(f"layers.{len(biases)}.bias", None)
        if bias is None:
            raise PolicyError(f"layers.{len(biases)}.bias is missing.")
        biases.append(bias)
    if not weights:
        raise PolicyError("layers.0.weight is missing.")
    activation = metadata.get("activation", "")
    mean, std = unused.pop("observation.mean", None), unused.pop("observation.std", None)
    network = Network(tuple(weights), tuple(biases), activation, mean, std)

    match metadata.get("distribution"):
        case "categorical":
            policy: PolicyOfFile = CategoricalPolicy(network)
        case "gaussian":
            if "log_std" not in unused:
                raise PolicyError("log_std is missing: a Gaussian policy needs it.")
            log_std = unused.pop("log_std")
            if log_std.shape != (network.num_outputs,):
                raise PolicyError(f"log_std has shape {log_std.shape}, not ({network.num_outputs},) as the output.")
            low, high = unused.pop("action.low", None), unused.pop("action.high", None)
            policy = _gaussian_or_deterministic(network, log_std, low, high)
        case other:
            raise PolicyError(f"unknown distribution {other!r}. It must be categorical or gaussian.")
    if unused:
        raise PolicyError(f"unknown tensor {', '.join(sorted(unused))}. Check the names of the layers.")
    return policy


def _gaussian_or_deterministic(
    network: Network, log_std: np.ndarray, low: np.ndarray | None, high: np.ndarray | None
) -> GaussianPolicy | DeterministicPolicy:
    constant = log_std < LEAST_LOG_STD
    if not constant.any():
        return GaussianPolicy(network, log_std, low, high)
    if not constant.all():
        raise PolicyError(
            f"log_std is {log_std[constant][0]:g} in dimension {constant.argmax()}, and above {LEAST_LOG_STD:g} in "
            "others: the policy is deterministic in some dimensions only, and has no density. Give all of them a "
            "standard deviation, or none."
        )
    return DeterministicPolicy(network)  # as with a Gaussian policy, actions are unclipped
