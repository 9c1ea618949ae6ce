"""Any distribution of torch or JAX as a policy, by its log_prob and its samples."""

from collections.abc import Callable
from typing import Any

import numpy as np

from average_dice.policies.adapters.outputs import read_output
from average_dice.policies.base import Observations
from average_dice.policies.density import DensityPolicy

Call = Callable[[Observations], Any]


def from_distribution(call: Call, probed: Any, source: str) -> DensityPolicy:
    """A policy from a function to distributions; `probed` is one of them."""
    if any(kind.__module__.startswith("torch.") for kind in type(probed).__mro__):
        return _from_torch(call, source)
    return _from_jax(call, source)


def _from_torch(call: Call, source: str) -> DensityPolicy:
    def density(observations: Observations, actions: np.ndarray) -> np.ndarray:
        import torch

        found = read_output(call(observations)).distribution
        log_prob = found.log_prob(torch.tensor(actions, dtype=torch.float64))  # a copy: torch warns if read-only
        return _summed(log_prob.detach().cpu().numpy())

    def draws(observations: Observations, number: int, seed: int) -> np.ndarray:
        import torch

        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            found = read_output(call(observations)).distribution
            return found.sample((number,)).cpu().numpy().swapaxes(0, 1)

    return DensityPolicy(density, draws, source)


def _from_jax(call: Call, source: str) -> DensityPolicy:
    def density(observations: Observations, actions: np.ndarray) -> np.ndarray:
        return _summed(np.asarray(read_output(call(observations)).distribution.log_prob(actions)))

    def draws(observations: Observations, number: int, seed: int) -> np.ndarray:
        import jax

        found = read_output(call(observations)).distribution
        return np.asarray(found.sample(seed=jax.random.key(seed), sample_shape=(number,))).swapaxes(0, 1)

    return DensityPolicy(density, draws, source)


def _summed(log_prob: np.ndarray) -> np.ndarray:
    """One number a row: the sum over independent dimensions of the action, if the distribution has them."""
    return log_prob.astype(np.float64).reshape(len(log_prob), -1).sum(axis=1)
