"""d3rlpy's fitted Q evaluation of any of our policies, for `peers.py`."""

from typing import Any

import d3rlpy
import numpy as np
import torch
from d3rlpy.dataset import MDPDataset
from d3rlpy.logging import NoopAdapterFactory
from d3rlpy.ope import FQE, DiscreteFQE, FQEConfig

import average_dice as ad
from average_dice.features.logged_state_actions import target_actions


class SampledPolicy:
    """What d3rlpy asks of the algorithm whose policy it evaluates: the next actions. Ours are sampled from π.

    d3rlpy's own algorithms give the best action here, which is another policy if π is stochastic.
    """

    def __init__(self, problem: ad.Problem, seed: int) -> None:
        self.policy, self.generator = problem.policy, np.random.default_rng(seed)
        self.impl = self

    def predict_best_action(self, observations: torch.Tensor) -> torch.Tensor:
        actions = self.policy.sample(observations.numpy().astype(np.float64), generator=self.generator)
        return torch.tensor(actions, dtype=torch.int64 if actions.ndim == 1 else torch.float32)


def train(problem: ad.Problem, seed: int, num_steps: int) -> Any:
    """The settings are d3rlpy's defaults."""
    d3rlpy.seed(seed)
    data = problem.dataset
    log = MDPDataset(
        observations=data.observation.astype(np.float32),
        actions=data.action[:, None] if data.is_discrete else data.action.astype(np.float32),
        rewards=data.reward.astype(np.float32)[:, None],
        terminals=data.terminated.astype(np.float32),
        timeouts=data.truncated.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE if data.is_discrete else d3rlpy.ActionSpace.CONTINUOUS,
    )
    method = DiscreteFQE if data.is_discrete else FQE
    found = method(algo=SampledPolicy(problem, seed), config=FQEConfig(gamma=problem.discount))
    quiet = {"show_progress": False, "logger_adapter": NoopAdapterFactory(), "save_interval": num_steps + 1}
    found.fit(log, n_steps=num_steps, n_steps_per_epoch=num_steps, **quiet)
    return found


def value_at_starts(found: Any, problem: ad.Problem) -> float:
    """(1 − γ) times the mean of Σ_a π(a|s₀) Q(s₀, a); continuous actions are sampled."""
    actions, weights = target_actions(problem, problem.start_observation)
    start = problem.start_observation.astype(np.float32)
    q = [found.predict_value(start, actions[:, number]) for number in range(weights.shape[1])]
    return float(problem.normaliser * (weights * np.column_stack(q)).sum(axis=1).mean())
