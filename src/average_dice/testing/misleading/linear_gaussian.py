"""A linear-Gaussian process: continuous states and actions, with mean rewards in closed form.

    s′ = keep · s + push · a + N(0, noise²),      a ~ N(bias + gain · s, std²)

States and actions are Gaussian at every step, so J(π) is a sum of means over steps.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr

from average_dice.policies import GaussianPolicy
from average_dice.testing.misleading.log import Columns, discounted_returns


@dataclass(frozen=True)
class Linear:
    """weight · x"""

    weight: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.weight * x

    def mean(self, centre: float, spread: float) -> float:
        """E of it for x ~ N(centre, spread²)."""
        return self.weight * centre


@dataclass(frozen=True)
class Square:
    """weight · x²"""

    weight: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.weight * x**2

    def mean(self, centre: float, spread: float) -> float:
        """E of it for x ~ N(centre, spread²)."""
        return self.weight * (centre**2 + spread**2)


@dataclass(frozen=True)
class Between:
    """weight where low < x < high, and 0 elsewhere"""

    weight: float
    low: float
    high: float = np.inf

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.weight * ((x > self.low) & (x < self.high))

    def mean(self, centre: float, spread: float) -> float:
        """E of it for x ~ N(centre, spread²)."""
        return float(self.weight * (ndtr((self.high - centre) / spread) - ndtr((self.low - centre) / spread)))


RewardTerm = Linear | Square | Between


@dataclass(frozen=True)
class GaussianActions:
    """a ~ N(bias + gain · s, std²)"""

    bias: float = 0.0
    gain: float = 0.0
    std: float = 1.0


@dataclass(frozen=True, eq=False)
class LinearGaussianMDP:
    """s′ = keep · s + push · a + N(0, noise²). The reward is a sum of terms of the state and of the action.

    - `start`: mean and standard deviation of the first state.
    - `recorded`: the density that the log holds; that of μ if None.
    - `clip`: the log holds the action clipped to ±clip, and the density of the clipped action.
    """

    target: GaussianActions
    behaviour: GaussianActions
    of_state: tuple[RewardTerm, ...] = ()
    of_action: tuple[RewardTerm, ...] = ()
    keep: float = 0.8
    push: float = 0.3
    noise: float = 0.3
    start: tuple[float, float] = (0.0, 0.5)
    discount: float = 0.9
    truncation: int = 40
    recorded: GaussianActions | None = None
    clip: float | None = None

    @property
    def truth(self) -> float:
        """J(π)."""
        num_steps = int(np.ceil(np.log(1e-14) / np.log(self.discount)))  # 1e-14: rounding
        (centre, spread), act, total = self.start, self.target, 0.0
        moves = self.keep + self.push * act.gain
        for step in range(num_steps):
            action = act.bias + act.gain * centre, float(np.hypot(act.gain * spread, act.std))
            mean = sum(term.mean(centre, spread) for term in self.of_state)
            mean += sum(term.mean(*action) for term in self.of_action)
            total += self.discount**step * mean
            centre = moves * centre + self.push * act.bias
            spread = float(np.sqrt((moves * spread) ** 2 + (self.push * act.std) ** 2 + self.noise**2))
        return float((1 - self.discount) * total)

    @property
    def policy(self) -> GaussianPolicy:
        """π."""
        act = self.target
        return GaussianPolicy(lambda observations: act.bias + act.gain * observations[:, :1], [np.log(act.std)])

    def sample(self, num_episodes: int, seed: int, first: Int[np.ndarray, " episode"] | None = None) -> Columns:
        """The columns of a log of μ. First states are always sampled: `first` must be None."""
        if first is not None:
            raise ValueError("a LinearGaussianMDP samples its first states; leave `first` out")
        generator = np.random.default_rng(seed)
        act, recorded = self.behaviour, self.recorded or self.behaviour
        state = generator.normal(*self.start, num_episodes)
        states, actions, rewards = [state], [], []
        for _ in range(self.truncation):
            chosen = generator.normal(act.bias + act.gain * state, act.std)
            rewards.append(sum(term(state) for term in self.of_state) + sum(term(chosen) for term in self.of_action))
            actions.append(chosen)
            state = self.keep * state + self.push * chosen + generator.normal(0, self.noise, num_episodes)
            states.append(state)
        action = np.stack(actions, axis=1).ravel()
        logged = np.stack(states[:-1], axis=1).ravel()
        if self.clip is not None:
            action = np.clip(action, -self.clip, self.clip)
        standard = (action - recorded.bias - recorded.gain * logged) / recorded.std
        return {
            "episode": np.repeat(np.arange(num_episodes), self.truncation),
            "step": np.tile(np.arange(self.truncation), num_episodes),
            "observation": logged[:, None],
            "action": action[:, None],
            "reward": np.stack(rewards, axis=1).ravel(),
            "next_observation": np.stack(states[1:], axis=1).reshape(-1, 1),
            "terminated": np.zeros(len(action), bool),
            "behaviour_log_prob": -0.5 * standard**2 - np.log(recorded.std) - 0.5 * np.log(2 * np.pi),
        }

    def play(self, num_episodes: int, seed: int) -> Float[np.ndarray, " episode"]:
        """(1 − γ) Σ γᵗ r_t of episodes of π, until γᵗ is negligible."""
        long = int(np.ceil(np.log(1e-6) / np.log(self.discount)))  # 1e-6: far below the sampling error
        own = replace(self, behaviour=self.target, recorded=None, clip=None, truncation=long)
        return discounted_returns(own.sample(num_episodes, seed), self.discount)
