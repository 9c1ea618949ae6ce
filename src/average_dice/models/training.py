"""The library's only gradient loop: Adam on minibatches, many seeds at once.

All steps between two records are one `lax.scan` inside one jitted function, mapped over seeds by `vmap`. Python looks
in at the records only, to note how things stand, to move a progress bar, and to let Ctrl-C through.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike

from ..progress import report

Tree = Any  # a pytree of arrays
Downhill = Callable[[Tree, Tree, Tree, Tree], tuple[Tree, Tree]]


def train(
    downhill: Downhill,
    parameters: Tree,
    memory: Tree,
    rows: Tree,
    settings: Tree,
    *,
    keys: Sequence[jax.Array],
    learning_rate: float,
    batch_size: int,
    num_steps: int,
    num_records: int,
    record: Callable[[int, Tree], None],
) -> Tree:
    """Trains one copy of the parameters for each key and returns them.

    - `downhill(parameters, memory, minibatch, settings)` gives the gradient that Adam follows downhill, and the memory
      after this step, for one copy. It must be a function of a module, not a closure: then compiled code is used again.
    - `parameters` and `memory` have one copy for each key along the first axis of every array. Memory is what moves
      without Adam: a dual variable, a target network.
    - `rows`: the log, one row a transition; `settings`: numbers that `downhill` needs.
    - `record(step, parameters)` is called before the first step and at `num_records` points from there to the last.
    """
    optimiser_state = jax.vmap(optax.adam(learning_rate).init)(parameters)
    stacked = jnp.stack(list(keys))
    record(0, parameters)
    done = 0
    for until in np.unique(np.linspace(0, num_steps, num_records + 1).round().astype(int))[1:]:
        parameters, memory, optimiser_state = _steps(
            downhill,
            (parameters, memory, optimiser_state),
            rows,
            settings,
            stacked,
            learning_rate,
            done,
            batch_size=batch_size,
            num_steps=int(until) - done,
        )
        done = int(until)
        record(done, parameters)
        report(done, num_steps)
    return parameters


@partial(jax.jit, static_argnames=("downhill", "batch_size", "num_steps"))
def _steps(
    downhill: Downhill,
    states: tuple[Tree, Tree, Tree],
    rows: Tree,
    settings: Tree,
    keys: jax.Array,
    learning_rate: ArrayLike,
    done: ArrayLike,
    *,
    batch_size: int,
    num_steps: int,
) -> tuple[Tree, Tree, Tree]:
    (num_rows,) = {len(column) for column in jax.tree.leaves(rows)}  # an index beyond a shorter one would be clamped
    optimiser = optax.adam(learning_rate)

    def one_seed(state: tuple[Tree, Tree, Tree], key: jax.Array) -> tuple[Tree, Tree, Tree]:
        def step(state: tuple[Tree, Tree, Tree], time: Any) -> tuple[tuple[Tree, Tree, Tree], None]:
            parameters, memory, optimiser_state = state
            chosen = jax.random.randint(jax.random.fold_in(key, time), (batch_size,), 0, num_rows)
            minibatch = jax.tree.map(lambda column: column[chosen], rows)
            gradient, memory = downhill(parameters, memory, minibatch, settings)
            updates, optimiser_state = optimiser.update(gradient, optimiser_state)
            return (optax.apply_updates(parameters, updates), memory, optimiser_state), None

        return jax.lax.scan(step, state, done + jnp.arange(num_steps))[0]

    return jax.vmap(one_seed)(states, keys)
