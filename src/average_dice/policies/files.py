"""Policy files: safetensors with a fixed set of names. Reading a file never executes code."""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from average_dice.errors import PolicyError
from average_dice.files import written_whole
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.gaussian import GaussianPolicy
from average_dice.policies.network import Network

FORMAT, VERSION = "average-dice-policy", "1"


def load_policy(path: str | Path) -> CategoricalPolicy | GaussianPolicy:
    """Reads a policy file.

    >>> policy = load_policy("policy.safetensors")  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise PolicyError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}. Check the path.")
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


def save_policy(policy: CategoricalPolicy | GaussianPolicy, path: str | Path) -> None:
    """Writes a policy whose logits or mean are a `Network`. The file appears whole or not at all."""
    network = policy.logits if isinstance(policy, CategoricalPolicy) else policy.mean
    if not isinstance(network, Network):
        raise PolicyError("only a policy made of a Network can be saved, and this one is made of another function.")
    tensors = {}
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        tensors[f"layers.{layer}.weight"], tensors[f"layers.{layer}.bias"] = weight, bias
    optional = {"observation.mean": network.mean, "observation.std": network.std}
    if isinstance(policy, GaussianPolicy):
        optional |= {"log_std": policy.log_std, "action.low": policy.low, "action.high": policy.high}
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


def _build(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> CategoricalPolicy | GaussianPolicy:
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
            policy: CategoricalPolicy | GaussianPolicy = CategoricalPolicy(network)
        case "gaussian":
            if "log_std" not in unused:
                raise PolicyError("log_std is missing: a Gaussian policy needs it.")
            log_std = unused.pop("log_std")
            if log_std.shape != (network.num_outputs,):
                raise PolicyError(f"log_std has shape {log_std.shape}, not ({network.num_outputs},) as the output.")
            policy = GaussianPolicy(network, log_std, unused.pop("action.low", None), unused.pop("action.high", None))
        case other:
            raise PolicyError(f"unknown distribution {other!r}. It must be categorical or gaussian.")
    if unused:
        raise PolicyError(f"unknown tensor {', '.join(sorted(unused))}. Check the names of the layers.")
    return policy
