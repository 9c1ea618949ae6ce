"""Problem: one log, one policy, one discount, and what follows from them.

Everything that several methods share is computed here, once and only when it is asked for:

    ρ_t = π(a_t|s_t) / μ(a_t|s_t)
    log_product_t = Σ_{k<t} log ρ_k           a prefix sum within the episode; 0 at t = 0

in float64 and in log space, so that products of hundreds of ratios neither overflow nor vanish.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from average_dice.data import LoggedDataset
from average_dice.data.validation import PROBABILITY_ROUNDING
from average_dice.errors import NotApplicable, PolicyError, SettingError
from average_dice.policies import Policy
from average_dice.policies.base import Observations, WeightedActions

# A single ratio beyond this is a mistake in the log; below it, weights times ratios times rewards fit into float64.
LARGEST_LOG_RATIO = 300.0

LOWEST_LOG_PRODUCT = np.finfo(np.float64).min


@dataclass(frozen=True, eq=False)
class Problem:
    """What would `policy` earn, discounted, judging by `dataset`?

    Without a policy object, `target_log_prob` of the log stands in; methods that need more than π at the logged
    actions then raise `NotApplicable`. Where both are given, the policy object counts.
    """

    dataset: LoggedDataset
    policy: Policy | None
    discount: float

    def __post_init__(self) -> None:
        if not 0 < self.discount < 1:
            raise SettingError(f"the discount must lie between 0 and 1, both excluded, not {self.discount}.")
        if not isinstance(self.dataset, LoggedDataset):
            raise SettingError(f"give a LoggedDataset, not a {type(self.dataset).__name__}: see read_dataset.")
        if self.policy is not None and not hasattr(self.policy, "log_prob"):
            raise PolicyError(f"{type(self.policy).__name__} is not a policy: it has no log_prob.")

    @cached_property
    def target_log_prob(self) -> Float[np.ndarray, " transition"]:
        """log π(a_t|s_t) of the logged actions."""
        data = self.dataset
        if self.policy is None:
            if data.target_log_prob is None:
                raise NotApplicable("it needs π at the logged actions: give a policy, or a target_log_prob column")
            return data.target_log_prob
        log_prob = np.asarray(self.policy.log_prob(data.observation, data.action), np.float64)
        if log_prob.shape != (data.num_transitions,):
            raise PolicyError(f"the policy's log_prob has shape {log_prob.shape}, not ({data.num_transitions},).")
        wrong = np.isnan(log_prob) | (log_prob == np.inf)
        if wrong.any():
            row = int(wrong.argmax())
            raise PolicyError(f"{self.place(row)}: the policy's log_prob is {log_prob[row]}. Mend the policy.")
        if data.is_discrete and log_prob.max() > PROBABILITY_ROUNDING:
            row = int(log_prob.argmax())
            raise PolicyError(
                f"{self.place(row)}: the policy's log_prob is {log_prob[row]:g}, above zero, for a discrete action. "
                "It must give the logarithm of a probability."
            )
        return log_prob

    def target_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
        """What π would do at these observations: actions, and weights that sum to one in every row."""
        if self.policy is None or not hasattr(self.policy, "weighted_actions"):
            raise NotApplicable("it needs π itself, not only its probabilities of the logged actions: give a policy")
        actions, weights = self.policy.weighted_actions(observations, num_draws=num_draws, generator=generator)
        data = self.dataset
        expected = (len(observations), weights.shape[1], *data.action.shape[1:])
        if actions.shape != expected or (actions.dtype.kind in "iu") != data.is_discrete:
            raise PolicyError(
                f"the policy's actions are {actions.dtype} of shape {actions.shape}, the log's would be "
                f"{data.action.dtype} of {expected}. Give the policy that belongs to this log."
            )
        if not np.isfinite(actions).all() or not np.allclose(weights.sum(axis=1), 1, atol=1e-6):
            raise PolicyError("the policy's weighted_actions must be finite, with weights that sum to one in each row.")
        return actions, weights

    @cached_property
    def log_ratio(self) -> Float[np.ndarray, " transition"]:
        """log ρ_t; −∞ where π never takes the logged action."""
        if self.dataset.behaviour_log_prob is None:
            raise NotApplicable("it needs μ at the logged actions, and the log has no behaviour_log_prob column")
        log_ratio = self.target_log_prob - self.dataset.behaviour_log_prob
        row = int(log_ratio.argmax())
        if log_ratio[row] > LARGEST_LOG_RATIO:
            raise PolicyError(
                f"{self.place(row)}: π is e^{log_ratio[row]:.0f} times as likely as μ to take the logged action. "
                "No log can carry that: check both log-probabilities."
            )
        return log_ratio

    @cached_property
    def ratio(self) -> Float[np.ndarray, " transition"]:
        """ρ_t, the importance ratio of the logged action."""
        return np.exp(self.log_ratio)

    @property
    def mean_ratio(self) -> float:
        """The mean of ρ over the log, which tends to 1. Flows divide by it: near γ = 1 its noise exceeds 1 − γ."""
        return float(self.ratio.mean()) or 1.0

    @cached_property
    def log_product(self) -> Float[np.ndarray, " transition"]:
        """Σ_{k<t} log ρ_k: what brought the episode to step t, without the action taken there."""
        log_product = np.zeros(self.dataset.num_transitions)
        for start, length in zip(self.dataset.starts, self.dataset.lengths, strict=True):
            end = start + length
            np.cumsum(self.log_ratio[start : end - 1], out=log_product[start + 1 : end])
        return log_product

    @cached_property
    def final_log_product(self) -> Float[np.ndarray, " episode"]:
        """The log product of each whole episode, its last action included."""
        last = self.dataset.starts + self.dataset.lengths - 1
        return self.log_product[last] + self.log_ratio[last]

    @property
    def effective_episodes(self) -> float:
        """(Σ p)² / Σ p² over the products p of whole episodes: how many of them the ratios leave standing."""
        products = np.exp(self.final_log_product - max(self.final_log_product.max(), LOWEST_LOG_PRODUCT))
        return float(products.sum() ** 2 / (products @ products)) if products.any() else 0.0

    @property
    def flow(self) -> Float[np.ndarray, " transition"]:
        """1 − γm, with m = 1 unless the step terminated: what a unit of weight on the row takes out of the flow.

        For the exact ratio w on any log, truncated or not, E_D[w ρ (1 − γm)] = 1 − γ.
        """
        return np.where(self.dataset.terminated, 1.0, 1.0 - self.discount)

    @property
    def scale(self) -> float:
        """c = (n/K)(1 − γ), which turns a mean label into a ratio."""
        return self.dataset.num_transitions / self.dataset.num_episodes * (1 - self.discount)

    @property
    def start_observation(self) -> Float[np.ndarray, "episode observation"]:
        return self.dataset.observation[self.dataset.starts]

    @cached_property
    def episode_index(self) -> Int[np.ndarray, " transition"]:
        """Which episode a row belongs to, counted 0, 1, 2, …"""
        return np.repeat(np.arange(self.dataset.num_episodes), self.dataset.lengths)

    def place(self, row: int) -> str:
        """The row as a person would look it up."""
        return f"episode {self.dataset.episode[row]}, step {self.dataset.step[row]}"
