"""What many tests share."""

import os
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import settings

import average_dice as ad
from average_dice.testing.exact_mdps import early_termination

# Half of the tests' time is XLA's compiler. It need not do its best, and what it made is kept for the other worker, for
# commands that tests start, and for the next run.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
for name, value in (("compilation_cache_dir", str(COMPILED)), ("persistent_cache_min_compile_time_secs", 0.05)):
    jax.config.update(f"jax_{name}", value)
    os.environ[f"JAX_{name}".upper()] = str(value)

settings.register_profile("checks", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("checks")


@pytest.fixture
def key() -> jax.Array:
    return jax.random.key(0)


@pytest.fixture(scope="session")
def small_log() -> ad.LoggedDataset:
    """A dozen episodes with early deaths, with both log-probabilities."""
    mdp = early_termination()
    log = mdp.sample(12, seed=3)
    target = mdp.policy.log_prob(log.observation, log.action)
    return ad.LoggedDataset(**columns_of(log) | {"target_log_prob": target}, metadata={"task": "exact"})


def columns_of(log: ad.LoggedDataset) -> dict[str, np.ndarray]:
    """The columns as a dictionary of fresh arrays, without those that are unknown."""
    names = ("episode", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    optional = ("behaviour_log_prob", "target_log_prob", "action_mask")
    columns = {name: getattr(log, name) for name in (*names, *optional)}
    return {name: values.copy() for name, values in columns.items() if values is not None}
