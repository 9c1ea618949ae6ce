"""A network and observations for the tests of policies."""

import numpy as np

from average_dice.policies import Network

OBSERVATIONS = np.random.default_rng(0).normal(size=(50, 3))


def network(num_outputs, activation="tanh", scale=1.0):
    generator = np.random.default_rng(1)
    sizes = [(8, 3), (8, 8), (num_outputs, 8)]
    return Network(
        weights=tuple(scale * generator.normal(size=size) for size in sizes),
        biases=tuple(generator.normal(size=size[0]) for size in sizes),
        activation=activation,
        mean=generator.normal(size=3),
        std=generator.uniform(0.5, 2.0, size=3),
    )
