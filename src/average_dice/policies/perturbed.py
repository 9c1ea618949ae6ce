"""Behaviour policies made from a target policy, as in the paper's experiments."""

import numpy as np
from jaxtyping import Float

from average_dice.errors import SettingError
from average_dice.policies.base import Observations
from average_dice.policies.categorical import CategoricalPolicy
from average_dice.policies.gaussian import GaussianPolicy


def mixed_with_uniform(policy: CategoricalPolicy, share: float) -> CategoricalPolicy:
    """μ(a|s) = (1 − x) π(a|s) + x / |A|, with x the share of uniform actions."""
    if not 0 <= share <= 1:
        raise SettingError(f"the share of uniform actions must lie between 0 and 1, not {share}.")

    def logits(observations: Observations) -> Float[np.ndarray, "row choice"]:
        probabilities = np.exp(policy.log_probabilities(observations))
        mixed = (1 - share) * probabilities + share / probabilities.shape[1]
        with np.errstate(divide="ignore"):  # with a share of 0, actions of probability 0 keep it
            return np.log(mixed)

    return CategoricalPolicy(logits)


def with_scaled_variance(policy: GaussianPolicy, scale: float) -> GaussianPolicy:
    """The same mean, and the *variance* multiplied by `scale` (the standard deviation by its root)."""
    if not (scale > 0 and np.isfinite(scale)):
        raise SettingError(f"the scale of the variance must be above zero, not {scale}.")
    return GaussianPolicy(policy.mean, policy.log_std + 0.5 * np.log(scale), policy.low, policy.high)
