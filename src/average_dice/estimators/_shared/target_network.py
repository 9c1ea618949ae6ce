"""The target network of methods that bootstrap:  target ← target + τ (network − target)."""

from typing import Any

import jax
from jax.typing import ArrayLike

from average_dice.notes import Note, NoteCode

Tree = Any


def soft_update(target: Tree, network: Tree, rate: ArrayLike) -> Tree:
    """The target network after one more step."""
    return jax.tree.map(lambda one, other: one + rate * (other - one), target, network)


def short_training(num_steps: int, rate: float, discount: float) -> tuple[Note, ...]:
    """A note where training is too short for the target network.

    The target network needs about 1/τ updates for each step of bootstrapping, and J takes about 1/(1 − γ) such steps.
    After n updates the value still contains exp(−n τ (1 − γ)) of the initial one, even if the network fits its targets
    at once. The note asks for three time constants, after which 5 % remains.
    """
    needed = 3 / (rate * (1 - discount))
    if num_steps >= needed:
        return ()
    text = f"trained for {num_steps:,} steps: its target network needs about {needed:,.0f} at this discount"
    return (Note(NoteCode.SHORT_TRAINING, text),)
