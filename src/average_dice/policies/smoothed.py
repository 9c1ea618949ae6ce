"""A deterministic policy with Gaussian noise on its actions: a policy with importance ratios, and a value nearby."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.data import LoggedDataset
from average_dice.errors import SettingError
from average_dice.policies.base import Observations, Policy, short_name
from average_dice.policies.deterministic import DeterministicPolicy
from average_dice.policies.gaussian import GaussianPolicy

BANDWIDTHS = tuple(number / 20 for number in range(1, 21))  # 0.05, 0.1, …, 1: at 1 the noise is as wide as the log's
LEAST_SHARE = 0.5  # of the rows, for each dimension: see `smoothed`
LEAST_SPREAD = 1e-9  # relative to the largest action: a smaller spread is rounding


@dataclass(frozen=True, eq=False)
class SmoothedPolicy(GaussianPolicy):
    """π_h(a|s) = N(a; π(s), (h · spread)²), with the deterministic policy `original` and the bandwidth h."""

    original: DeterministicPolicy | None = None
    bandwidth: float = float("nan")

    def __repr__(self) -> str:
        return f"SmoothedPolicy({short_name(self.mean, 'dimensions of the action')}, bandwidth {self.bandwidth:g})"


def smoothed(policy: Policy, dataset: LoggedDataset, bandwidth: float | None = None) -> SmoothedPolicy:
    """The policy with Gaussian noise on its actions, whose standard deviations are `bandwidth` × `residual_spread`.

    A wide bandwidth changes the value, a narrow one leaves few rows with any weight. If it is None, it is the smallest
    of 0.05, 0.1, …, 1 with an effective sample size of one-step ratios of at least half of the rows for each dimension
    of the action (n · 0.5ᵈ rows), or the one with the largest effective sample size. Reason: products of t ratios keep
    about the t-th power of that share, so with one half in one dimension five steps keep 3 % of the episodes, and with
    less hardly any. For μ around π(s), the bandwidth is then about 0.4.
    This needs the log's `behaviour_log_prob`; a bandwidth of your own does not.
    """
    if not isinstance(policy, DeterministicPolicy) or policy.is_discrete or dataset.is_discrete:
        raise SettingError("only deterministic policies over continuous actions are smoothed. Leave others unchanged.")
    spread = residual_spread(dataset)
    centre = policy.actions(dataset.observation)
    if centre.shape != dataset.action.shape:
        raise SettingError(
            f"the policy has actions of {centre.shape[1]} numbers, the log of {dataset.action.shape[1]}. "
            "Give the policy that belongs to this log."
        )
    if bandwidth is None:
        bandwidth = _chosen_bandwidth(policy, dataset, spread)
    if not (bandwidth > 0 and np.isfinite(bandwidth)):
        raise SettingError(f"the bandwidth must be above zero, not {bandwidth}.")
    return SmoothedPolicy(policy.action, np.log(bandwidth * spread), original=policy, bandwidth=float(bandwidth))


def residual_spread(dataset: LoggedDataset) -> Float[np.ndarray, " action"]:
    """The standard deviation of the logged actions around a linear regression on the observation, by dimension."""
    inputs = with_constant(dataset.observation)
    coefficients, *_ = np.linalg.lstsq(inputs, dataset.action, rcond=None)
    spread = np.std(dataset.action - inputs @ coefficients, axis=0)
    return np.maximum(spread, LEAST_SPREAD * max(1.0, float(np.abs(dataset.action).max())))


def with_constant(observations: Observations) -> Float[np.ndarray, "row input"]:
    """The observations, and a column of ones."""
    return np.column_stack([np.ones(len(observations)), observations])


def _chosen_bandwidth(policy: DeterministicPolicy, dataset: LoggedDataset, spread: np.ndarray) -> float:
    if dataset.behaviour_log_prob is None:
        raise SettingError(
            "a bandwidth is chosen by importance ratios, and the log has no behaviour_log_prob column. Give one."
        )
    wanted = dataset.num_transitions * LEAST_SHARE ** len(spread)
    sizes = []
    for bandwidth in BANDWIDTHS:
        log_prob = GaussianPolicy(policy.action, np.log(bandwidth * spread)).log_prob(
            dataset.observation, dataset.action
        )
        log_ratio = log_prob - dataset.behaviour_log_prob
        ratio = np.exp(log_ratio - log_ratio.max())
        sizes.append(float(ratio.sum() ** 2 / (ratio @ ratio)))
        if sizes[-1] >= wanted:
            return bandwidth
    return BANDWIDTHS[int(np.argmax(sizes))]
