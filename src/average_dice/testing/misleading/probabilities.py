"""Wrong behaviour probabilities: the column does not hold μ(a|s) of the logged actions.

Every importance ratio is then wrong, also where its mean is nearly 1.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from average_dice.testing.misleading.edits import shifted
from average_dice.testing.misleading.finite_mdps import HiddenStateMDP, hidden_context, in_every_state, ordinary
from average_dice.testing.misleading.hidden_states import key_and_lock, repeating_pays
from average_dice.testing.misleading.linear_gaussian import GaussianActions, Linear, LinearGaussianMDP, Square
from average_dice.testing.misleading.log import LogWithTruth, MisleadingLog, from_process, sample_log


def balanced(recorded: ArrayLike, behaviour: ArrayLike, **settings: Any) -> HiddenStateMDP:
    """Two states at random. μ is the same in both, π only in the first: errors cancel in the mean of the ratios."""
    actions = np.asarray(behaviour, float)
    settings = {"discount": 0.9, "recorded": in_every_state(recorded, 2), **settings}
    target = np.stack([actions, np.concatenate([actions[1::-1], actions[2:]])])
    reward = np.array([[1.0, -1.0, 0.5][: len(actions)], [2.0, 0.0, 0.5][: len(actions)]])
    transition = np.full((2, len(actions), 2), 0.5)
    return HiddenStateMDP(transition, reward, np.full(2, 0.5), target, in_every_state(actions, 2), **settings)


def behaviour_learns(seed: int) -> LogWithTruth:
    """μ changed during the log; the column holds its mean."""
    stages = [replace(key_and_lock(), behaviour=in_every_state([1 - p, p], 4)) for p in (0.1, 0.3, 0.5, 0.7, 0.9)]
    return sample_log(hidden_context(stages, recorded=in_every_state([0.5, 0.5], 20)), 200, seed)


def recorded_as(recorded: ArrayLike, behaviour: ArrayLike, target: ArrayLike) -> HiddenStateMDP:
    """The key and the lock, with one row of probabilities each for the column, μ and π."""
    return key_and_lock(behaviour=behaviour, recorded=in_every_state(recorded, 4), target=target)


LOGS = (
    MisleadingLog(
        "recorded-uniform",
        "μ prefers one action, the column says uniform",
        from_process(balanced([0.5, 0.5], [0.8, 0.2]), 200),
    ),
    MisleadingLog(
        "recorded-uniform-memory",
        "the same where the action before is hidden and matters",
        from_process(
            repeating_pays(
                target=np.array([[0.8, 0.2]] * 2 + [[0.2, 0.8]] * 2),
                behaviour=in_every_state([0.8, 0.2], 4),
                recorded=in_every_state([0.5, 0.5], 4),
            ),
            200,
        ),
    ),
    MisleadingLog(
        "swapped-columns",
        "the probabilities of actions 1 and 2 are swapped",
        from_process(balanced([0.6, 0.1, 0.3], [0.6, 0.3, 0.1]), 200),
    ),
    MisleadingLog(
        "slightly-off",
        "every probability is off by a tenth, the mean of the ratios by 4 %, and the past is hidden",
        from_process(recorded_as([0.5, 0.5], behaviour=[0.55, 0.45], target=[0.7, 0.3]), 200),
    ),
    MisleadingLog(
        "floored-probabilities",
        "probabilities below 0.05 are recorded as 0.05",
        from_process(recorded_as([0.98, 0.05], behaviour=[0.98, 0.02], target=[0.9, 0.1]), 300),
    ),
    MisleadingLog("behaviour-learns", "μ changed during the log, the column holds its mean", behaviour_learns),
    MisleadingLog(
        "late-actions",
        "actions and their probabilities are one row late",
        from_process(ordinary(5), 200, shifted("action", "behaviour_log_prob")),
    ),
    MisleadingLog(
        "clipped-density",
        "the log holds the clipped action and its density, the reward follows the unclipped one",
        from_process(
            LinearGaussianMDP(GaussianActions(0.6), GaussianActions(0.0), of_action=(Linear(1.0),), push=0.0, clip=1.0),
            200,
        ),
    ),
    MisleadingLog(
        "wrong-std",
        "μ acts with a standard deviation of 0.4, the column says 0.5",
        from_process(
            LinearGaussianMDP(
                GaussianActions(0.2, 0.0, 0.4),
                GaussianActions(0.0, 0.0, 0.4),
                recorded=GaussianActions(0.0, 0.0, 0.5),
                of_state=(Square(-1.0), Linear(1.0)),
            ),
            200,
        ),
    ),
)
