"""Simulated tasks: environments, the target policies that we ship for them, rollouts and true values.

Only rolling out needs a simulator (extra `simulate`), and only training a policy needs PyTorch (extra `train`).
"""

from average_dice.tasks.collection import Truth, collect, episode_returns, simulator_versions, true_values, write_truth
from average_dice.tasks.rollouts import MakeEnvs, fastest_envs
from average_dice.tasks.shipped import policy_hash, target_policy, training_record, true_value, truth_record
from average_dice.tasks.task import DISCOUNTS, TASKS, TRANSITIONS, NetworkPolicy, Task, find_task

__all__ = [
    "DISCOUNTS",
    "TASKS",
    "TRANSITIONS",
    "MakeEnvs",
    "NetworkPolicy",
    "Task",
    "Truth",
    "collect",
    "episode_returns",
    "fastest_envs",
    "find_task",
    "policy_hash",
    "simulator_versions",
    "target_policy",
    "training_record",
    "true_value",
    "true_values",
    "truth_record",
    "write_truth",
]
