"""Exact MDPs with the spaces and questions of real logs, and logs of every trajectory of them.

Many actions, one-step episodes (a bandit), discounts of 0 and 1, and a deterministic policy over discrete actions.
Every episode terminates within two steps, so that a log can hold every trajectory in proportion to its probability.
Every estimator must recover the values, or say why it does not apply.
"""

from dataclasses import replace

import numpy as np

from average_dice.problem import Problem
from average_dice.testing.exact_mdps import ExactMDP

NUM_ACTIONS = 40


def two_steps() -> ExactMDP:
    """States 0 and 1 come first. They lead to 2 or 3, or terminate; 2 and 3 terminate. Probabilities in quarters."""
    transition = np.zeros((4, 2, 4))
    transition[0, :, 2:] = [[0.5, 0.5], [0.25, 0.25]]
    transition[1, :, 2:] = [[0.0, 0.75], [0.75, 0.25]]
    return ExactMDP(
        name="two steps",
        transition=transition,
        reward=np.array([[1.0, 3.0], [0.5, 2.0], [2.0, 4.0], [-1.0, 1.0]]),
        start=np.array([0.75, 0.25, 0.0, 0.0]),
        target=np.array([[0.2, 0.8], [0.4, 0.6], [0.1, 0.9], [0.7, 0.3]]),
        behaviour=np.array([[0.5, 0.5], [0.75, 0.25], [0.5, 0.5], [0.5, 0.5]]),
        discount=0.9,
    )


def undiscounted() -> ExactMDP:
    """A discount of 1: the value is the expected total reward."""
    return replace(two_steps(), name="undiscounted", discount=1.0)


def first_step() -> ExactMDP:
    """A discount of 0: only the first reward counts, though episodes go on."""
    return replace(two_steps(), name="first step", discount=0.0)


def one_step() -> ExactMDP:
    """A bandit with contexts: every episode terminates after its first step."""
    mdp = two_steps()
    return replace(mdp, name="one step", transition=np.zeros_like(mdp.transition), discount=0.0)


def deterministic() -> ExactMDP:
    """π takes one action in each state, with probability 1; μ takes both."""
    return replace(two_steps(), name="deterministic", target=np.eye(2)[[1, 0, 1, 1]])


def many_actions() -> ExactMDP:
    """Forty actions, which pay differently in each state and lead to two others; π prefers those that pay."""
    generator = np.random.default_rng(21)
    transition = np.zeros((3, NUM_ACTIONS, 3))
    transition[0, :, 1:] = np.eye(2)[np.arange(NUM_ACTIONS) % 2]
    reward = 1 + generator.normal(size=(3, 1)) + 0.5 * generator.normal(size=(3, NUM_ACTIONS))
    target = np.exp(reward)
    return ExactMDP(
        name="many actions",
        transition=transition,
        reward=reward,
        start=np.array([1.0, 0.0, 0.0]),
        target=target / target.sum(axis=1, keepdims=True),
        behaviour=np.full((3, NUM_ACTIONS), 1 / NUM_ACTIONS),
        discount=0.9,
    )


# With the unit of their probabilities: each is a multiple of 1 / unit.
REAL_SPACES: dict[str, tuple[ExactMDP, int]] = {
    mdp.name: (mdp, unit)
    for mdp, unit in (
        (two_steps(), 4),
        (undiscounted(), 4),
        (first_step(), 4),
        (one_step(), 4),
        (deterministic(), 4),
        (many_actions(), NUM_ACTIONS),
    )
}


def every_trajectory_of(name: str) -> tuple[ExactMDP, Problem]:
    """The MDP and its log of every trajectory."""
    mdp, unit = REAL_SPACES[name]
    return mdp, Problem(replace(mdp, truncation=2).exhaustive(unit), mdp.policy, mdp.discount)
