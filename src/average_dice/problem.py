"""Problem: one log, one policy, one discount, and the quantities derived from them.

The value is J = c E_π[Σ γᵗ r_t] with the normaliser c = 1 − γ: a reward per step. Where γ = 1, c = 1: the total.

Quantities that several methods share are computed here, once, when they are first used:

    ρ_t = π(a_t|s_t) / μ(a_t|s_t)
    log_product_t = Σ_{k<t} log ρ_k           a prefix sum within the episode; 0 at t = 0

in float64 and in log space, so that products of hundreds of ratios neither overflow nor underflow.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from jaxtyping import Float, Int

from average_dice import memory
from average_dice.data import LoggedDataset
from average_dice.data.validation import PROBABILITY_ROUNDING
from average_dice.errors import NotApplicable, PolicyError, SettingError
from average_dice.policies import CategoricalPolicy, DeterministicPolicy, Network, as_policy
from average_dice.policies.admissible import ForbiddenActions
from average_dice.policies.base import Observations, WeightedActions
from average_dice.policies.deterministic import NO_DENSITY
from average_dice.policies.without_step import without_step

# A larger log ratio is an error in the log. Below it, weights times ratios times rewards fit into float64 (e^709).
LARGEST_LOG_RATIO = 300.0

# Replaces the highest log product if all products are zero: −∞ − (−∞) would be NaN.
LOWEST_LOG_PRODUCT = np.finfo(np.float64).min


class Estimand(StrEnum):
    """What the value is, by the discount."""

    PER_STEP = "reward-per-step"  # (1 − γ) E[Σ γᵗ r]
    TOTAL = "total-reward"  # E[Σ r], where γ = 1
    ONE_STEP = "one-step-reward"  # E[r₀], where γ = 0 or every episode has one step


Result = TypeVar("Result")
Rows = Float[np.ndarray, " transition"]
Episodes = Float[np.ndarray, " episode"]


# Cached columns of a problem that do not depend on the reward.
WITHOUT_REWARD = (
    "log_discount",
    "target_log_prob",
    "forbidden_actions",
    "log_ratio",
    "ratio",
    "log_product",
    "final_log_product",
    "log_uncensored_at_step",
    "log_uncensored",
    "episode_index",
)


@dataclass(frozen=True, eq=False)
class Made:
    """Results by name, each with what was reduced to stay below the limit of memory. `kept`: those to keep in use."""

    results: "WeakValueDictionary[Hashable, Any]" = field(default_factory=WeakValueDictionary)
    reduced: dict[Hashable, list[memory.Reduction]] = field(default_factory=dict)
    kept: list[Any] | None = None

    def once(self, name: Hashable, make: Callable[[], Result]) -> Result:
        """The result of this name, made if there is none in use."""
        found: Result | None = self.results.get(name)
        if found is None:
            with memory.recording() as self.reduced[name]:
                found = self.results[name] = make()
            if self.kept is not None:
                self.kept.append(found)
        else:
            memory.record(*self.reduced[name])
        return found


@dataclass(frozen=True, eq=False)
class Problem:
    """The question: what is the value of `policy` at this discount, according to `dataset`?

    Without a policy object, the log's `target_log_prob` is used; methods that need more than π at the logged actions
    then raise `NotApplicable`. If both are given, the policy object is used. It may be
    anything that `as_policy` accepts.

    The discount lies between 0 and 1. A discount of 1 needs a log in which every episode terminates. In a log of
    one-step episodes no reward is discounted, so the discount is set to 0: the value is E_π[r | s₀].
    """

    dataset: LoggedDataset
    policy: Any  # a Policy, or None
    discount: float
    _made: "Made" = field(default_factory=lambda: Made(), init=False, repr=False)
    _made_for_all_rewards: "Made" = field(default_factory=lambda: Made(), init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise SettingError(f"the discount must lie between 0 and 1, not {self.discount}.")
        if not isinstance(self.dataset, LoggedDataset):
            raise SettingError(f"give a LoggedDataset, not a {type(self.dataset).__name__}: see read_dataset.")
        if self.policy is not None:
            object.__setattr__(self, "policy", as_policy(self.policy, self.dataset))
        if self.dataset.is_one_step:
            object.__setattr__(self, "discount", 0.0)
        if self.discount == 1 and self.is_truncated:
            data = self.dataset
            truncated = data.num_episodes - int(data.terminated.sum())
            earliest = int(data.lengths[~data.terminated[data.starts + data.lengths - 1]].min())
            raise SettingError(
                f"a discount of 1 needs episodes that terminate, and {truncated:,} of {data.num_episodes:,} are "
                f"truncated, the earliest after step {earliest}. Give a horizon of at most {earliest}, or a discount "
                "below 1."
            )

    def __repr__(self) -> str:
        policy = "target_log_prob of the log" if self.policy is None else type(self.policy).__name__
        return f"Problem({self.dataset.in_short}; {policy}; discount {self.discount:g})"

    @property
    def normaliser(self) -> float:
        """c in J = c E[Σ γᵗ r]: 1 − γ, or 1 where γ = 1."""
        return 1.0 - self.discount if self.discount < 1 else 1.0

    @property
    def estimand(self) -> Estimand:
        """What the value is."""
        ends = {0.0: Estimand.ONE_STEP, 1.0: Estimand.TOTAL}
        return ends.get(self.discount, Estimand.PER_STEP)

    @cached_property
    def log_discount(self) -> Rows:
        """log γᵗ of each row."""
        return log_power(self.discount, self.dataset.step)

    def require_discounting(self) -> None:
        """Raises `NotApplicable` where γ = 1, for methods without an undiscounted form."""
        if self.discount == 1:
            raise NotApplicable("it needs a discount below 1: use fqe, wdr or average-dice-features, for example")

    @cached_property
    def target_log_prob(self) -> Float[np.ndarray, " transition"]:
        """log π(a_t|s_t) of the logged actions."""
        data = self.dataset
        if self.policy is None:
            if data.target_log_prob is None:
                raise NotApplicable("it needs π at the logged actions: give a policy, or a target_log_prob column")
            return data.target_log_prob
        _ = self.forbidden_actions  # refuses a policy that does not respect the mask
        log_prob = np.asarray(self.policy.log_prob(data.observation, data.action), np.float64)
        if log_prob.shape != (data.num_transitions,):
            raise PolicyError(f"the policy's log_prob has shape {log_prob.shape}, not ({data.num_transitions},).")
        wrong = np.isnan(log_prob) | (log_prob == np.inf)
        if wrong.any():
            row = int(wrong.argmax())
            raise PolicyError(f"{self.place(row)}: the policy's log_prob is {log_prob[row]}. Correct the policy.")
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
        """Actions of π at these observations, with weights that sum to one in every row.

        If the log has a mask, forbidden actions have weight zero at every logged state.
        """
        actions, weights = self._weighted_actions(observations, num_draws=num_draws, generator=generator)
        if self.forbidden_actions is not None:
            weights = self.forbidden_actions.without(observations, actions, weights)
        return actions, weights

    @cached_property
    def forbidden_actions(self) -> ForbiddenActions | None:
        """The actions whose weight is rounding that must be removed; None if there are none.

        Raises a `PolicyError` if π puts more weight than that on actions that the mask forbids.
        """
        data = self.dataset
        if data.action_mask is None or not hasattr(self.policy, "weighted_actions"):
            return None
        try:
            actions, weights = self._weighted_actions(data.observation, num_draws=1, generator=np.random.default_rng(0))
        except NotApplicable:
            return None  # π is known at the logged actions alone, which the mask allows
        return ForbiddenActions.of(data, data.action_mask, actions, weights)

    def _weighted_actions(
        self, observations: Observations, *, num_draws: int, generator: np.random.Generator
    ) -> WeightedActions:
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
        if not np.isfinite(actions).all() or not np.allclose(weights.sum(axis=1), 1, atol=1e-6):  # float32
            raise PolicyError("the policy's weighted_actions must be finite, with weights that sum to one in each row.")
        return actions, weights

    @property
    def has_density(self) -> bool:
        """Whether π has probabilities or densities. A deterministic policy over continuous actions has none."""
        return self.dataset.is_discrete or not isinstance(self.policy, DeterministicPolicy)

    @cached_property
    def log_ratio(self) -> Float[np.ndarray, " transition"]:
        """log ρ_t; −∞ where π never takes the logged action."""
        if not self.has_density:
            raise NotApplicable(NO_DENSITY)  # also where μ is unknown: to log it would not help
        if self.dataset.behaviour_log_prob is None:
            raise NotApplicable(
                "it needs μ at the logged actions, and the log has no behaviour_log_prob column: "
                "give --estimate-behaviour (ad.estimate_behaviour)"
            )
        log_ratio = self.target_log_prob - self.dataset.behaviour_log_prob
        row = int(log_ratio.argmax())
        if log_ratio[row] > LARGEST_LOG_RATIO:
            raise PolicyError(
                f"{self.place(row)}: π is e^{log_ratio[row]:.0f} times as likely as μ to take the logged action. "
                "One of the two log-probabilities must be wrong: check both."
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
        """Σ_{k<t} log ρ_k, of the actions before step t."""
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
        """The effective sample size (Σ p)² / Σ p² over the products p of whole episodes."""
        products = np.exp(self.final_log_product - max(self.final_log_product.max(), LOWEST_LOG_PRODUCT))
        return float(products.sum() ** 2 / (products @ products)) if products.any() else 0.0

    @cached_property
    def log_uncensored_at_step(self) -> Float[np.ndarray, " step"]:
        """log of the share of episodes not yet truncated at each step, had none terminated.

        It is 0 if all are truncated at one length. This is the estimator of Kaplan and Meier: of the episodes that
        reach step t and do not terminate there, those truncated right after it are censored, and the others are
        weighted up for them. It assumes that truncation does not depend on what happened. Leaving out the truncated
        episodes instead would over-represent the terminated ones, which are never truncated.
        """
        data = self.dataset
        horizon = int(data.lengths.max())
        last = data.starts + data.lengths - 1
        reached = np.bincount(data.step, minlength=horizon)
        terminated = np.bincount(data.step[last[data.terminated[last]]], minlength=horizon)
        truncated = np.bincount(data.step[last[~data.terminated[last]]], minlength=horizon)
        survived = (reached - terminated)[:-1]  # each of them is truncated after its step or reaches the next
        uncensored = survived - truncated[:-1]
        return np.append(0.0, np.cumsum(np.log(uncensored) - np.log(survived)))

    @cached_property
    def log_uncensored(self) -> Rows:
        """`log_uncensored_at_step` at the step of each row."""
        return self.log_uncensored_at_step[self.dataset.step]

    @property
    def is_truncated(self) -> bool:
        """Whether any episode is truncated rather than terminated."""
        return int(self.dataset.terminated.sum()) < self.dataset.num_episodes

    @property
    def misses_rewards(self) -> bool:
        """Whether a part of the value lies after truncations, where the log has no rewards: not where γ = 0."""
        return self.is_truncated and self.discount > 0

    @property
    def value_bounds(self) -> tuple[float, float]:
        """The bounds of J that rewards allow. After a termination all rewards are 0.

        With γ < 1, J is an average of rewards. If every episode terminates and none has more than one reward other than
        0, as where only the outcome pays, J is at most c times that reward. With γ = 1, an episode has at most as many
        positive rewards, and as many negative ones, as any episode of the log.
        """
        reward = self.dataset.reward
        low, high = float(reward.min()), float(reward.max())
        if not self.dataset.terminated.any():
            return low, high
        low, high = min(low, 0.0), max(high, 0.0)
        losses, gains = (int(self.by_episode((sign * reward > 0).astype(np.float64)).max()) for sign in (-1, 1))
        if self.discount == 1:
            return losses * low, gains * high
        pays_once = not self.is_truncated and int(self.by_episode((reward != 0).astype(np.float64)).max()) <= 1
        return (self.normaliser * low, self.normaliser * high) if pays_once else (low, high)

    @property
    def flow(self) -> Float[np.ndarray, " transition"]:
        """1 − γm, with m = 1 unless the step terminated: the part of the row's weight that leaves the flow.

        For the exact ratio w on any log, truncated or not, E_D[w ρ (1 − γm)] = 1 − γ; or 1 where γ = 1.
        """
        return np.where(self.dataset.terminated, 1.0, 1.0 - self.discount)

    @property
    def scale(self) -> float:
        """(n/K)(1 − γ), or n/K where γ = 1, which turns a mean label into a ratio."""
        return self.dataset.num_transitions / self.dataset.num_episodes * self.normaliser

    @property
    def start_observation(self) -> Float[np.ndarray, "episode observation"]:
        """s₀ of each episode."""
        return self.dataset.observation[self.dataset.starts]

    @cached_property
    def episode_index(self) -> Int[np.ndarray, " transition"]:
        """The episode of each row, numbered 0, 1, 2, …"""
        return np.repeat(np.arange(self.dataset.num_episodes), self.dataset.lengths)

    def select_episodes(self, chosen: Int[np.ndarray, " chosen"]) -> "Problem":
        """The same question about some episodes. The discount stays, even if all of these have one step."""
        part = Problem(self.dataset.select_episodes(chosen), self.policy, self.discount)
        object.__setattr__(part, "discount", self.discount)
        return part

    def with_behaviour(self, log_prob: Rows) -> "Problem":
        """The same question with other estimates of log μ at the logged actions."""
        other = Problem(self.dataset.with_behaviour(log_prob), self.policy, self.discount)
        kept = ("target_log_prob", "forbidden_actions", "log_discount", "episode_index")
        other.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return other

    def with_single_action(self) -> "Problem":
        """The log as a process without choices: one action, taken with certainty.

        Every importance ratio is then 1, and π is the behaviour policy: a method estimates the value of μ.
        """
        found = self.once("single action", self._with_single_action, of_reward=False)
        return found if found.dataset.reward is self.dataset.reward else found.with_reward(self.dataset.reward)

    def _with_single_action(self) -> "Problem":
        data = self.dataset
        certain = np.zeros(data.num_transitions)
        log = replace(
            data,
            action=np.zeros(data.num_transitions, np.int64),
            behaviour_log_prob=certain,
            target_log_prob=certain,
            action_mask=None,
            action_features=None,
            names=replace(data.names, actions=()),
            estimated_behaviour=None,
        )
        single = Network(weights=(np.zeros((1, data.observation.shape[1])),), biases=(np.zeros(1),))
        found = Problem(log, None if self.policy is None else CategoricalPolicy(single), self.discount)
        if self._made_for_all_rewards.kept is not None:
            found.keep_for_other_rewards()
        return found

    @staticmethod
    def up_to(dataset: LoggedDataset, policy: Any, discount: float, horizon: int) -> "Problem":
        """The value of the first `horizon` steps: the process terminates then, and the step is part of the state.

        A horizon after which no logged episode goes on changes nothing.
        """
        ends_before = dataset.terminated.sum() == dataset.num_episodes and dataset.lengths.max() <= horizon
        if horizon > 0 and ends_before:
            return Problem(dataset, policy, discount)
        target = None if policy is None else without_step(as_policy(policy, dataset))
        return Problem(dataset.up_to(horizon), target, discount)

    def with_reward(self, reward: Rows) -> "Problem":
        """The same question about another reward. What does not depend on the reward is shared."""
        other = Problem(self.dataset.with_reward(reward), self.policy, self.discount)
        object.__setattr__(other, "discount", self.discount)
        object.__setattr__(other, "_made_for_all_rewards", self._made_for_all_rewards)
        other.__dict__.update({name: self.__dict__[name] for name in WITHOUT_REWARD if name in self.__dict__})
        return other

    def keep_for_other_rewards(self) -> list[Any]:
        """From now on, keeps what does not depend on the reward, in this list. Clear it when all rewards are done."""
        kept: list[Any] = []
        object.__setattr__(self, "_made_for_all_rewards", Made(kept=kept))
        return kept

    def once(self, name: Hashable, make: Callable[[], Result], *, of_reward: bool = True) -> Result:
        """The result of `make`, computed once for each name and kept as long as it is in use.

        Methods with a common part (the same features, the same critic) share it in this way. With `of_reward` False, it
        is also shared with problems of other rewards.
        """
        return (self._made if of_reward else self._made_for_all_rewards).once(name, make)

    def by_episode(self, rows: Rows) -> Episodes:
        """The sum over the rows of each episode."""
        return np.bincount(self.episode_index, rows, self.dataset.num_episodes)

    def place(self, row: int) -> str:
        """The episode and step of a row, for messages."""
        return self.dataset.place(row)


def log_power(base: float, exponent: int | np.ndarray) -> Any:
    """log baseⁿ for n ≥ 0; also for a base of 0, where 0⁰ = 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(exponent, 0), 0.0, exponent * np.log(base))
