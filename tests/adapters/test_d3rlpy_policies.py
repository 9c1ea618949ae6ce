"""Algorithms of d3rlpy: the action is that of `predict`."""

import numpy as np
import pytest

from average_dice.policies import DeterministicPolicy, as_policy
from named_log import continuous_log, named_log

pytestmark = pytest.mark.filterwarnings("ignore")  # d3rlpy imports gym, which warns about itself
d3rlpy = pytest.importorskip("d3rlpy", exc_type=ImportError)


@pytest.mark.parametrize("kind", ["DiscreteBCConfig", "DQNConfig"])
def test_discrete_algorithms(kind):
    log = named_log()
    algorithm = getattr(d3rlpy.algos, kind)().create()
    algorithm.create_impl((2,), 2)
    policy = as_policy(algorithm, log)
    assert isinstance(policy, DeterministicPolicy)
    np.testing.assert_array_equal(
        policy.actions(log.observation), algorithm.predict(log.observation.astype(np.float32))
    )


@pytest.mark.parametrize("kind", ["BCConfig", "SACConfig", "CQLConfig"])
def test_continuous_algorithms(kind):
    log = continuous_log(width=2)
    algorithm = getattr(d3rlpy.algos, kind)().create()
    algorithm.create_impl((3,), 2)
    found = as_policy(algorithm, log).actions(log.observation)
    np.testing.assert_allclose(found, algorithm.predict(log.observation.astype(np.float32)), atol=1e-6)
