"""The next action, predicted from everything before it: the density of the logged actions under a simple model.

Inputs of a row: the observation, the step, the place of the episode in the log, and of the past of the episode the last
action and reward and their means. Discrete actions: multinomial logistic regression. Continuous: a linear mean with
normal errors. Both with a ridge penalty.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize, special

from average_dice.errors import NotApplicable
from average_dice.features.scaling import mean_and_std
from average_dice.inference.refutation.case import Case
from average_dice.problem import Problem

RIDGE = 1.0  # in rows: the prior weighs as much as one row for each input
MOST_ACTIONS = 100  # of a discrete set: more would need another model
MOST_INPUTS = 500
MOST_ROWS = 20_000  # to learn from: more cost time, and this many show any probability that is off by a few percent
FORBIDDEN = -1e9  # as a logit

Inputs = Float[np.ndarray, "row input"]


def past_of(case: Case) -> Inputs:
    """The inputs of each row, standardised."""
    problem = case.problem
    data = problem.dataset
    place = np.empty(case.num_episodes)
    place[case.order] = np.arange(case.num_episodes)
    seen = np.unique(data.action) if data.is_discrete else None
    if seen is not None and len(seen) > MOST_ACTIONS:
        raise NotApplicable(f"the log has {len(seen)} different actions; at most {MOST_ACTIONS} are predicted")
    actions = data.action if seen is None else (data.action[:, None] == seen[None, :]).astype(np.float64)
    happened = np.column_stack([actions, data.reward])
    inputs = np.column_stack(
        [
            data.encoding.encode(data.observation),
            data.step,
            place[problem.episode_index],
            *_before(problem, happened),
        ]
    )
    if inputs.shape[1] > MOST_INPUTS:
        raise NotApplicable(f"the model of actions would have {inputs.shape[1]} inputs; at most {MOST_INPUTS} are used")
    mean, std = mean_and_std(inputs)
    return np.column_stack([np.ones(len(inputs)), (inputs - mean) / std])


def _before(problem: Problem, happened: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What happened in the row before, and its mean over all rows before; 0 at the first step."""
    step = problem.dataset.step
    first = (step == 0)[:, None]
    last = np.where(first, 0.0, np.roll(happened, 1, axis=0))
    sums = np.cumsum(happened, axis=0) - happened
    begin = np.repeat(sums[problem.dataset.starts], problem.dataset.lengths, axis=0)
    return last, (sums - begin) / np.maximum(step, 1)[:, None]


def log_density(case: Case, inputs: Inputs, learn: np.ndarray, apply: np.ndarray) -> Float[np.ndarray, " applied"]:
    """log q(a | past) of the rows `apply`, by a model that was learnt from the rows `learn`."""
    data = case.problem.dataset
    learn = learn[:MOST_ROWS]
    if not data.is_discrete:
        return _normal(inputs, data.action, learn, apply)
    actions = np.unique(data.action)
    mask = None if data.action_mask is None else data.action_mask[:, actions]
    return _logistic(inputs, np.searchsorted(actions, data.action), len(actions), mask, learn, apply)


def _normal(inputs: Inputs, action: np.ndarray, learn: np.ndarray, apply: np.ndarray) -> np.ndarray:
    x = inputs[learn]
    theta = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ action[learn])
    error = action[learn] - x @ theta
    covariance = error.T @ error / len(learn) + 1e-9 * np.eye(action.shape[1])
    apart = np.linalg.solve(np.linalg.cholesky(covariance), (action[apply] - inputs[apply] @ theta).T)
    _, log_determinant = np.linalg.slogdet(covariance)
    return -0.5 * (np.sum(apart**2, axis=0) + action.shape[1] * np.log(2 * np.pi) + log_determinant)


def _logistic(
    inputs: Inputs,
    action: Int[np.ndarray, " row"],
    num_actions: int,
    mask: np.ndarray | None,
    learn: np.ndarray,
    apply: np.ndarray,
) -> np.ndarray:
    x, chosen = inputs[learn], np.eye(num_actions)[action[learn]]
    shape = (x.shape[1], num_actions)

    def logits(rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
        found = inputs[rows] @ theta
        return found if mask is None else np.where(mask[rows], found, FORBIDDEN)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(shape)
        log_prob = special.log_softmax(logits(learn, theta), axis=1)
        slope = x.T @ (np.exp(log_prob) - chosen) + RIDGE * theta
        return float(-np.sum(chosen * log_prob) + 0.5 * RIDGE * np.sum(theta**2)), slope.ravel()

    found = optimize.minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    log_prob = special.log_softmax(logits(apply, found.x.reshape(shape)), axis=1)
    return np.asarray(log_prob[np.arange(len(apply)), action[apply]])
