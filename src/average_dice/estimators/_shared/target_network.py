"""The slow copy of a network that bootstrapping methods aim at:  slow ← slow + τ (fast − slow)."""

from typing import Any

import jax
from jax.typing import ArrayLike

Tree = Any


def soft_update(slow: Tree, fast: Tree, rate: ArrayLike) -> Tree:
    """The slow copy after one more step."""
    return jax.tree.map(lambda one, other: one + rate * (other - one), slow, fast)


def doubts(num_steps: int, rate: float, discount: float) -> tuple[str, ...]:
    """A note where training is too short for the copy.

    Each look ahead waits for the copy, 1/τ steps, and J is made of 1/(1 − γ) of them: after n steps, exp(−n τ (1 − γ))
    of where the network began is still in its answer, even if it follows its targets at once.
    """
    needed = 3 / (rate * (1 - discount))
    if num_steps >= needed:
        return ()
    return (f"trained for {num_steps:,} steps: its slow copy would need about {needed:,.0f} at this discount",)
