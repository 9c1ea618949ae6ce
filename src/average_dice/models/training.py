"""The library's only gradient loop: Adam on minibatches, for many copies at once.

Copies differ in their seeds or, as bootstrap resamples, in the rows that they train on. All steps between two
checkpoints are one `lax.scan` inside one jitted function, mapped over copies by `vmap`. Python runs only at the
checkpoints, to record values, to move a progress bar, and to let Ctrl-C interrupt.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from average_dice.progress import report

Tree = Any  # a pytree of arrays
UpdateStep = Callable[[Tree, Tree, tuple[Tree, ...], Tree, jax.Array], tuple[Tree, Tree]]


@dataclass(frozen=True)
class Schedule:
    """Settings of Adam. `num_checkpoints` are spread evenly over the steps; `momentum` is its β₁."""

    learning_rate: float
    batch_size: int
    num_steps: int
    num_checkpoints: int
    momentum: float = 0.9

    @property
    def checkpoints(self) -> list[int]:
        """The steps after which there is a checkpoint."""
        places = np.linspace(0, self.num_steps, max(self.num_checkpoints, 1) + 1).round().astype(int)
        return np.unique(places)[1:].tolist()


class Sample(eqx.Module):
    """The rows of a group that each copy uses: the first `count` of its `rows`, which may repeat."""

    rows: Int[Array, "*copy longest"]
    count: Int[Array, "*copy"]

    @staticmethod
    def of(rows: Sequence[np.ndarray]) -> "Sample":
        """From the rows of each copy, padded to one length."""
        counts = [len(one) for one in rows]
        padded = np.zeros((len(rows), max(counts)), np.int32)
        for copy, one in enumerate(rows):
            padded[copy, : len(one)] = one
        return Sample(jnp.asarray(padded), jnp.asarray(counts, jnp.int32))

    def mean(self, values: Float[Array, "row *output"]) -> Float[Array, "*output"]:
        """The mean of values over the rows of one copy."""
        seen = (jnp.arange(len(self.rows)) < self.count).reshape(-1, *[1] * (values.ndim - 1))
        return jnp.sum(jnp.where(seen, values[self.rows], 0), axis=0) / self.count

    def minibatch(self, batch_size: int, key: jax.Array) -> Int[Array, " drawn"]:
        """Random rows of one copy; or all its rows, if no copy has more than a minibatch.

        In the second case, copies with fewer rows than others repeat some of them at random.
        """
        longest = len(self.rows)
        if longest > batch_size:
            return self.rows[jax.random.randint(key, (batch_size,), 0, self.count)]
        place = jnp.arange(longest)
        return self.rows[jnp.where(place < self.count, place, jax.random.randint(key, (longest,), 0, self.count))]


def train(
    update_step: UpdateStep,
    parameters: Tree,
    memory: Tree,
    groups: tuple[Tree, ...],
    settings: Tree,
    schedule: Schedule,
    *,
    keys: Sequence[jax.Array],
    record: Callable[[int, Tree, Tree], bool | None],
    samples: tuple[Sample | None, ...] | None = None,
) -> tuple[Tree, Tree]:
    """Trains one copy of the parameters for each key and returns them, and the memory with them.

    - `update_step(parameters, memory, minibatches, settings, key)` gives the gradient that Adam descends along, and
      the memory after this step, for one copy. It must be a function of a module, not a closure, so that compiled code
      is reused. Its key is new in every step.
    - `parameters` and `memory` have one copy for each key along the first axis of every array. Memory is what changes
      without Adam (a dual variable, a target network), and what differs between copies.
    - `groups`: what minibatches are drawn from, a tree of columns each: the transitions of the log and, for methods
      that need them, its starts. A group no larger than a minibatch is taken whole in every step.
    - `settings`: numbers that `update_step` needs.
    - `record(step, parameters, memory)` is called before the first step and at every checkpoint. If it returns True,
      training stops there.
    - `samples`: the rows of each group that each copy uses; None: all of them.
    """
    optimiser_state = jax.vmap(optax.adam(schedule.learning_rate).init)(parameters)
    stacked = jnp.stack(list(keys))
    record(0, parameters, memory)
    done = 0
    for until in schedule.checkpoints:
        parameters, memory, optimiser_state = _steps(
            update_step,
            (parameters, memory, optimiser_state),
            groups,
            samples or (None,) * len(groups),
            settings,
            stacked,
            schedule.learning_rate,
            schedule.momentum,
            done,
            batch_size=schedule.batch_size,
            num_steps=until - done,
        )
        done = until
        enough = record(done, parameters, memory)
        report(done, schedule.num_steps)
        if enough:
            break
    return parameters, memory


def begin(make: Callable[[jax.Array], Tree], keys: Sequence[jax.Array]) -> tuple[Tree, list[jax.Array]]:
    """One copy of what `make(key)` gives for each key, and a fresh key for each to train with."""
    init_keys, batch_keys = jnp.moveaxis(jax.vmap(jax.random.split)(jnp.stack(list(keys))), 1, 0)
    return jax.vmap(make)(init_keys), list(batch_keys)


@partial(jax.jit, static_argnames=("update_step", "batch_size", "num_steps"))
def _steps(
    update_step: UpdateStep,
    states: tuple[Tree, Tree, Tree],
    groups: tuple[Tree, ...],
    samples: tuple[Sample | None, ...],
    settings: Tree,
    keys: jax.Array,
    learning_rate: ArrayLike,
    momentum: ArrayLike,
    done: ArrayLike,
    *,
    batch_size: int,
    num_steps: int,
) -> tuple[Tree, Tree, Tree]:
    sizes = [{len(column) for column in jax.tree.leaves(rows)} for rows in groups]
    if any(len(lengths) != 1 for lengths in sizes):
        raise ValueError("the columns of a group differ in length")  # JAX would clamp an index beyond the shorter one
    optimiser = optax.adam(learning_rate, b1=momentum)

    def one_copy(
        state: tuple[Tree, Tree, Tree], samples: tuple[Sample | None, ...], key: jax.Array
    ) -> tuple[Tree, Tree, Tree]:
        def step(state: tuple[Tree, Tree, Tree], time: Any) -> tuple[tuple[Tree, Tree, Tree], None]:
            parameters, memory, optimiser_state = state
            *row_keys, own_key = jax.random.split(jax.random.fold_in(key, time), len(groups) + 1)
            minibatches = tuple(
                _minibatch(rows, min(lengths), sample, batch_size, row_key)
                for rows, lengths, sample, row_key in zip(groups, sizes, samples, row_keys, strict=True)
            )
            gradient, memory = update_step(parameters, memory, minibatches, settings, own_key)
            updates, optimiser_state = optimiser.update(gradient, optimiser_state)
            return (optax.apply_updates(parameters, updates), memory, optimiser_state), None

        return jax.lax.scan(step, state, done + jnp.arange(num_steps))[0]

    return jax.vmap(one_copy)(states, samples, keys)


def _minibatch(rows: Tree, num_rows: int, sample: Sample | None, batch_size: int, key: jax.Array) -> Tree:
    if sample is None:
        if num_rows <= batch_size:
            return rows
        chosen = jax.random.randint(key, (batch_size,), 0, num_rows)
    else:
        chosen = sample.minibatch(batch_size, key)
    return jax.tree.map(lambda column: column[chosen], rows)
