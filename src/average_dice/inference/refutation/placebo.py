"""Placebo rewards: rewards that nothing in the log causes. Every policy then earns 0, and so must the estimate be.

The mean reward of each step is subtracted first. Then whole sequences of rewards are exchanged between episodes, if all
have one length; otherwise the rewards of each step are exchanged between the episodes that reach it. (A policy with
longer episodes would earn more if the mean were left in.) What remains, on average over several exchanges, is a bias
that the method has for this policy and not for the behaviour policy. The test is Student's t.
"""

from dataclasses import replace

import numpy as np
from scipy import stats

from average_dice.inference.refutation.base import OF_CHANCE, Measured, Refuter
from average_dice.inference.refutation.case import Case, value_of
from average_dice.problem import Problem

NUM_EXCHANGES = 4
LEAST = 0.5  # of the half-width of the interval: a smaller effect of a placebo would not change a decision


def _measure(case: Case) -> Measured:
    case.require_episodes()
    generator = np.random.default_rng((case.seed, 13))
    effects = np.array(
        [value_of(case.method, _exchanged(case.problem, generator), case.key) for _ in range(NUM_EXCHANGES)]
    )
    error = float(effects.std(ddof=1)) / np.sqrt(NUM_EXCHANGES)
    by_chance = float(stats.t.ppf(0.995, NUM_EXCHANGES - 1)) * error
    number = abs(float(effects.mean())) / max(by_chance, LEAST * case.half_width)
    return Measured(
        number,
        "with rewards exchanged between episodes, the policy earns what every policy then earns",
        f"with rewards exchanged between episodes, where every policy earns the same, the method still finds a "
        f"difference of {effects.mean():.4g} from the behaviour policy",
    )


def _exchanged(problem: Problem, generator: np.random.Generator) -> Problem:
    """The problem with placebo rewards."""
    data = problem.dataset
    at_step = np.bincount(data.step, data.reward) / np.bincount(data.step)
    reward = data.reward - at_step[data.step]
    if len(np.unique(data.lengths)) == 1:
        reward = reward[data.rows_of(generator.permutation(data.num_episodes))]
    else:
        shuffled = np.lexsort((generator.random(len(reward)), data.step))
        reward[np.lexsort((np.arange(len(reward)), data.step))] = reward[shuffled]
    found = Problem(replace(data, reward=reward), problem.policy, problem.discount)
    object.__setattr__(found, "discount", problem.discount)
    return found


PLACEBO = Refuter(
    name="placebo-rewards",
    asks="Is there no effect where rewards were exchanged at random?",
    unit=OF_CHANCE,
    limit=1.0,
    why="99 % of Student's t over the exchanges, and half of the half-width of the interval",
    measure=_measure,
)
