"""Speed relative to the bare matrix products, in the same run: `make bench`.

- Network training (2×256, batch 512): the time of the matrix products of a step, over the time of a step.
- Feature regression at 100,000 transitions: the time of a whole fit, over the time of one ΦᵀΦ of the same size.

Machines are shared and noisy, so each number is the best of several interleaved rounds, and only ratios mean anything.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from average_dice.models import FourierFeatures, MLPRegression, Regression

Weights = tuple[jax.Array, jax.Array, jax.Array]

ROUNDS = 5
STEPS = 500


def best(*functions: Callable[[], object]) -> list[float]:
    """The shortest time of each, over rounds in which each runs once."""
    for function in functions:
        function()
    times = np.empty((ROUNDS, len(functions)))
    for round_times in times:
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            round_times[index] = time.perf_counter() - start
    return [float(shortest) for shortest in times.min(axis=0)]


def problem(num_rows: int, num_inputs: int) -> Regression:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(num_rows, num_inputs))
    targets = np.exp(0.3 * inputs[:, 0])
    return Regression(inputs, targets, np.ones(num_rows), 1.0, np.arange(num_rows) // 100)


def training(num_inputs: int = 11, batch: int = 512, hidden: int = 256) -> None:
    rows = problem(4_000, num_inputs)
    key = jax.random.key(0)

    def trains(num_seeds: int) -> Callable[[], object]:
        model = MLPRegression(num_steps=STEPS, num_checkpoints=1)
        keys = [jax.random.fold_in(key, seed) for seed in range(num_seeds)]
        return lambda: model.fit_seeds(rows, keys=keys, value_of=lambda f: 0.0)

    # Forward, and backward to the weights and to the inputs of the second layer: every implementation needs these.
    # Each product is used by the next or, scaled to almost 0, by the weights, so that the compiler keeps all of them.
    @jax.jit
    def bare(x: jax.Array, first: jax.Array, second: jax.Array, third: jax.Array) -> jax.Array:
        def step(weights: Weights, _: None) -> tuple[Weights, None]:
            first, second, third = weights
            hidden = x @ first
            top = hidden @ second
            back = top @ second.T
            tiny = 1e-30
            first = first + tiny * (x.T @ back)
            second = second + tiny * (hidden.T @ top)
            third = third + tiny * (top.T @ (top @ third))
            return (first, second, third), None

        return jax.lax.scan(step, (first, second, third), None, length=STEPS)[0][1]

    ones = [
        jnp.full(shape, 1e-3) for shape in ((batch, num_inputs), (num_inputs, hidden), (hidden, hidden), (hidden, 1))
    ]
    products, one, five = best(lambda: bare(*ones).block_until_ready(), trains(1), trains(5))
    print(f"network 2×{hidden}, batch {batch}, {num_inputs} inputs")
    print(f"  bare matrix products        {STEPS / products:8.0f} steps a second")
    print(f"  training, one seed          {STEPS / one:8.0f} steps a second   ratio {products / one:.2f}")
    print(f"  training, five seeds at once{5 * STEPS / five:8.0f} steps a second   ratio {5 * products / five:.2f}")
    print("  (target: a ratio of at least 0.5)")


def closed_form(num_rows: int = 100_000, num_inputs: int = 12) -> None:
    rows = problem(num_rows, num_inputs)
    model = FourierFeatures()
    phi = np.random.default_rng(0).normal(size=(num_rows, 1 + num_inputs + model.num_features))
    key = jax.random.key(0)
    gram, fit = best(lambda: phi.T @ phi, lambda: model.fit(rows, key=key, value_of=lambda f: 0.0))
    print(f"feature regression, {num_rows:,} transitions, {phi.shape[1]} features, ridge by cross-validation included")
    print(f"  one ΦᵀΦ                     {gram:8.3f} seconds")
    print(f"  the whole fit               {fit:8.3f} seconds          ratio {fit / gram:.2f}")
    print("  (target: a ratio of at most 3)")


if __name__ == "__main__":
    training()
    closed_form()
