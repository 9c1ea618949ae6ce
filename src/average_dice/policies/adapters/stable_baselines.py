"""Models of Stable-Baselines3 and its contributions: PPO, A2C, TRPO, DQN, SAC, TD3 and others with these policies."""

from typing import Any

import numpy as np

from average_dice import memory
from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.policies.adapters.callables import Named
from average_dice.policies.adapters.torch_modules import evaluating
from average_dice.policies.base import Observations, Policy
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.conditional_gaussian import ConditionalGaussianPolicy
from average_dice.policies.deterministic import DeterministicPolicy

ROWS_AT_ONCE = 4_096


def from_stable_baselines(
    model: Any, data: LoggedDataset | None, *, normalise: Any = None, deterministic: bool = False
) -> Policy:
    """The policy of a model: its distribution if it has one, else its greedy action.

    - `normalise`: a VecNormalize whose statistics normalise the log's observations; by default that of the model's
      environment, if it has one. False if the log's observations are normalised already.
    - `deterministic`: the action of `predict(…, deterministic=True)` instead of the distribution.
    """
    policy = getattr(model, "policy", model)
    source = type(model).__name__
    if normalise is None and hasattr(model, "get_vec_normalize_env"):
        normalise = model.get_vec_normalize_env()
    space = policy.observation_space
    if not getattr(space, "dtype", None) or not isinstance(space.shape, tuple):
        raise PolicyError(
            f"{source} takes {space}, and a log has rows of numbers. Wrap it in a function that makes them."
        )
    if data is not None and data.observation.shape[1] != int(np.prod(space.shape)):
        raise PolicyError(
            f"{source} takes observations of {int(np.prod(space.shape))} numbers, the log has "
            f"{data.observation.shape[1]}. Give the policy that belongs to this log."
        )

    def prepared(observations: Observations) -> np.ndarray:
        shaped = observations.reshape(len(observations), *space.shape)
        return (normalise.normalize_obs(shaped) if normalise else shaped).astype(space.dtype)

    actions = policy.action_space
    discrete = type(actions).__name__ == "Discrete"
    if not discrete and type(actions).__name__ != "Box":
        raise PolicyError(f"{source} has actions in {actions}. Discrete and Box are supported.")
    if deterministic or _distribution_of(policy) is None:

        def greedy(observations: Observations) -> np.ndarray:
            found, _ = policy.predict(prepared(observations), deterministic=True)
            return found.astype(np.int64) if discrete else found.reshape(len(found), -1).astype(np.float64)

        return DeterministicPolicy(Named(greedy, source), num_actions=int(actions.n) if discrete else None)

    def outputs(observations: Observations) -> tuple[np.ndarray, ...]:
        some = memory.rows_at_once(ROWS_AT_ONCE)
        with evaluating(policy):
            parts = [
                _numbers(policy, prepared(observations[start : start + some]), discrete)
                for start in range(0, max(len(observations), 1), some)
            ]
        return tuple(np.concatenate(one) for one in zip(*parts, strict=True))

    if discrete:
        return CategoricalPolicy(Named(lambda observations: outputs(observations)[0], f"{source}, {actions.n} actions"))

    def moments(observations: Observations) -> tuple[np.ndarray, np.ndarray]:
        mean, std = outputs(observations)
        return mean, std

    if not policy.squash_output:
        return ConditionalGaussianPolicy(moments, source=source)
    return ConditionalGaussianPolicy(moments, actions.low.reshape(-1), actions.high.reshape(-1), source)


def _distribution_of(policy: Any) -> Any:
    """A function from tensors to the distribution of actions; None if the policy is deterministic."""
    if hasattr(policy, "lstm_actor"):
        raise PolicyError(
            "recurrent policies remember earlier steps, and a policy here depends on the observation alone."
        )
    if hasattr(policy, "get_distribution"):
        return policy.get_distribution
    actor: Any = getattr(policy, "actor", None)
    if hasattr(actor, "get_action_dist_params"):

        def distribution(tensor: Any) -> Any:
            mean, log_std, more = actor.get_action_dist_params(tensor)
            return actor.action_dist.proba_distribution(mean, log_std, **more)

        return distribution
    return None


def _numbers(policy: Any, observations: np.ndarray, discrete: bool) -> tuple[np.ndarray, ...]:
    """Logits, or means and standard deviations before a tanh."""
    tensor, _ = policy.obs_to_tensor(observations)
    found = _distribution_of(policy)(tensor).distribution
    wanted = (found.logits,) if discrete else (found.mean, found.stddev)
    return tuple(one.cpu().numpy().astype(np.float64) for one in wanted)
