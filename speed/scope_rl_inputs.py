"""Our logs as SCOPE-RL's discrete estimators want them, for `peers.py`."""

from typing import Any

import numpy as np

import average_dice as ad


def inputs_of(problem: ad.Problem, q: Any = None) -> dict[str, Any]:
    """Episodes of one length. After termination: no reward, and a ratio of 1. `q`: a fitted Q of d3rlpy, if any.

    Episodes that are truncated earlier than others are left out.
    """
    data, length = problem.dataset, int(problem.dataset.lengths.max())
    last = data.starts + data.lengths - 1
    kept = np.flatnonzero(data.terminated[last] | (data.lengths == length))
    place = np.full(data.num_episodes, -1)
    place[kept] = np.arange(len(kept))
    rows = np.flatnonzero(place[problem.episode_index] >= 0)
    to = place[problem.episode_index[rows]] * length + data.step[rows]
    probabilities = np.exp(problem.policy.log_probabilities(data.observation[rows]))
    num_rows, num_actions = len(kept) * length, probabilities.shape[1]

    def padded(values: np.ndarray, after: float) -> np.ndarray:
        found = np.full((num_rows, *values.shape[1:]), after, dtype=values.dtype)
        found[to] = values
        return found

    assert data.behaviour_log_prob is not None
    inputs: dict[str, Any] = {
        "step_per_trajectory": length,
        "action": padded(data.action[rows], 0),
        "reward": padded(data.reward[rows], 0.0),
        "pscore": padded(np.exp(data.behaviour_log_prob[rows]), 1 / num_actions),
        "evaluation_policy_action_dist": padded(probabilities, 1 / num_actions),
        "gamma": problem.discount,
    }
    if q is not None:
        states = data.observation[rows].astype(np.float32)
        values = [q.predict_value(states, np.full(len(states), action)) for action in range(num_actions)]
        inputs["state_action_value_prediction"] = padded(np.column_stack(values).astype(np.float64), 0.0)
    return inputs
