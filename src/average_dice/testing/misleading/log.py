"""A misleading log: its columns, and the policy, the discount and the exact value that go with it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from average_dice.data import LoggedDataset
from average_dice.policies import Policy

Columns = dict[str, Any]  # an array for each name
Edit = Callable[[Columns, np.random.Generator], Columns]

MOST_ATTEMPTS = 2_000  # limits the time: a condition that is met less often is an error in the log's definition


@runtime_checkable
class Process(Protocol):
    """A process with a known value, which can be logged under μ and run under π."""

    @property
    def discount(self) -> float:
        """γ."""
        ...

    @property
    def truth(self) -> float:
        """J(π), exactly."""
        ...

    @property
    def policy(self) -> Policy:
        """π."""
        ...

    def sample(self, num_episodes: int, seed: int, first: Int[np.ndarray, " episode"] | None = None) -> Columns:
        """The columns of a log of μ. `first` are the states at step 0; they are sampled if None."""
        ...

    def play(self, num_episodes: int, seed: int) -> Float[np.ndarray, " episode"]:
        """(1 − γ) Σ γᵗ r_t of episodes of π, until γᵗ is negligible."""
        ...


@dataclass(frozen=True, eq=False)
class LogWithTruth:
    """A log with a policy and a discount, the exact value, and the process that it is the value of."""

    dataset: LoggedDataset
    policy: Policy
    discount: float
    truth: float
    process: Process


@dataclass(frozen=True)
class MisleadingLog:
    """A kind of misleading log, made from a seed.

    - `what`: what misleads, in a few words.
    - `visible`: the log and the policy have a trace of it, which a check or an estimator could use.
    """

    name: str
    what: str
    make: Callable[[int], LogWithTruth]
    visible: bool = True


def sample_log(
    logged: Process,
    num_episodes: int,
    seed: int,
    *,
    edit: Edit | None = None,
    truth_of: Process | None = None,
    first: Int[np.ndarray, " episode"] | None = None,
    accept: Callable[[Columns], bool] | None = None,
) -> LogWithTruth:
    """A log of one process, and the exact value of the same or another.

    - `edit`: changes the columns after sampling.
    - `truth_of`: the process that the policy will meet; `logged` if None.
    - `accept`: sampling is repeated until this holds of the columns.
    """
    for attempt in range(MOST_ATTEMPTS):
        columns = logged.sample(num_episodes, 1_000_000 * (seed + 1) + attempt, first)
        if accept is None or accept(columns):
            break
    else:
        raise ValueError(f"none of {MOST_ATTEMPTS:,} sampled logs was accepted. Make the condition more likely.")
    if edit is not None:
        columns = edit(columns, np.random.default_rng((seed, 1)))
    real = truth_of or logged
    return LogWithTruth(LoggedDataset.from_arrays(**columns), real.policy, real.discount, real.truth, real)


def from_process(process: Process, num_episodes: int, edit: Edit | None = None) -> Callable[[int], LogWithTruth]:
    """A function of the seed that samples logs of this process."""
    return lambda seed: sample_log(process, num_episodes, seed, edit=edit)


def discounted_returns(columns: Columns, discount: float) -> Float[np.ndarray, " episode"]:
    """(1 − γ) Σ γᵗ r_t of each episode."""
    return (1 - discount) * np.bincount(columns["episode"], discount ** columns["step"] * columns["reward"])
