"""Policy files: a saved policy is loaded unchanged, and every invalid file is an error."""

import pickle

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import average_dice as ad
from sample_policies import OBSERVATIONS, network

CATEGORICAL = ad.CategoricalPolicy(network(4))
GAUSSIAN = ad.GaussianPolicy(network(2, "relu"), np.array([-1.0, 0.5]), low=-np.ones(2), high=np.ones(2))
METADATA = {"format": "average-dice-policy", "version": "1", "distribution": "categorical", "activation": "tanh"}


def tensors(**changes):
    made = network(4)
    content = {f"layers.{i}.weight": weight for i, weight in enumerate(made.weights)}
    content |= {f"layers.{i}.bias": bias for i, bias in enumerate(made.biases)}
    content |= changes
    return {name: values for name, values in content.items() if values is not None}


def test_categorical_round_trip(tmp_path):
    ad.save_policy(CATEGORICAL, tmp_path / "policy.safetensors")
    again = ad.load_policy(tmp_path / "policy.safetensors")
    np.testing.assert_array_equal(again.log_probabilities(OBSERVATIONS), CATEGORICAL.log_probabilities(OBSERVATIONS))


def test_gaussian_round_trip(tmp_path):
    ad.save_policy(GAUSSIAN, tmp_path / "policy.safetensors")
    again = ad.load_policy(tmp_path / "policy.safetensors")
    actions = np.linspace(-2, 2, 100).reshape(50, 2)
    np.testing.assert_array_equal(again.log_prob(OBSERVATIONS, actions), GAUSSIAN.log_prob(OBSERVATIONS, actions))
    np.testing.assert_array_equal(again.clip(actions), GAUSSIAN.clip(actions))


def test_the_file_has_the_documented_names(tmp_path):
    ad.save_policy(GAUSSIAN, tmp_path / "policy.safetensors")
    with safe_open(tmp_path / "policy.safetensors", framework="numpy") as file:
        assert file.metadata() == METADATA | {"distribution": "gaussian", "activation": "relu"}
        layers = [f"layers.{i}.{part}" for i in range(3) for part in ("bias", "weight")]
        others = ["action.high", "action.low", "log_std", "observation.mean", "observation.std"]
        assert sorted(file.keys()) == sorted(layers + others)
        assert file.get_tensor("layers.0.weight").shape == (8, 3)


def test_single_precision_files_are_read_in_double(tmp_path):
    save_file({name: values.astype(np.float32) for name, values in tensors().items()}, tmp_path / "p", METADATA)
    policy = ad.load_policy(tmp_path / "p")
    assert policy.log_probabilities(OBSERVATIONS).dtype == np.float64


@pytest.mark.parametrize(
    ("metadata", "changes", "message"),
    [
        ({"format": "something else"}, {}, "not a policy file"),
        ({"version": "2"}, {}, "version 2 is not known"),
        ({"distribution": "cauchy"}, {}, "unknown distribution 'cauchy'"),
        ({"activation": "swish"}, {}, "unknown activation 'swish'"),
        ({"distribution": "gaussian"}, {}, "log_std is missing"),
        ({"distribution": "gaussian"}, {"log_std": np.zeros(3)}, "log_std has shape"),
        ({}, {"layers.1.bias": None}, "layers.1.bias is missing"),
        ({}, {"layers.0.weight": None}, "layers.0.weight is missing"),
        ({}, {"layers.1.weight": None}, "unknown tensor layers.1.bias"),
        ({}, {"layers.7.weight": np.zeros((2, 2))}, "unknown tensor layers.7.weight"),
        ({}, {"layers.1.weight": np.zeros((8, 5))}, "layer 1"),
        ({}, {"layers.1.weight": np.array(1.0)}, "must be a matrix"),
        ({}, {"layers.2.weight": np.zeros((0, 8)), "layers.2.bias": np.zeros(0)}, "must be a matrix"),
        ({}, {"layers.1.bias": np.full(8, np.nan)}, "NaN or infinite"),
        ({}, {"observation.mean": np.zeros(4)}, "observation mean"),
        ({}, {"observation.std": np.zeros(3)}, "above zero"),
    ],
)
def test_invalid_files(tmp_path, metadata, changes, message):
    save_file(tensors(**changes), tmp_path / "policy.safetensors", METADATA | metadata)
    with pytest.raises(ad.PolicyError, match=rf"policy\.safetensors: .*{message}"):
        ad.load_policy(tmp_path / "policy.safetensors")


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(ad.PolicyError, match="no such file"):
        ad.load_policy(tmp_path / "policy.safetensors")
    for content in (b"", b"nonsense", pickle.dumps({"layers": 1})):
        (tmp_path / "policy.safetensors").write_bytes(content)
        with pytest.raises(ad.PolicyError, match="not a readable safetensors file"):
            ad.load_policy(tmp_path / "policy.safetensors")


def test_only_networks_can_be_saved(tmp_path):
    with pytest.raises(ad.PolicyError, match="only a policy made of a Network"):
        ad.save_policy(ad.CategoricalPolicy(lambda observations: observations), tmp_path / "policy.safetensors")
    assert not list(tmp_path.iterdir())
