"""Missing support: π takes actions, or reaches states, without data in the log.

No method knows what happens there. A check must notice it from the policy and the observations.
"""

from functools import partial

import numpy as np

from average_dice.testing.misleading.finite_mdps import HiddenStateMDP, in_every_state, one_state
from average_dice.testing.misleading.log import Columns, LogWithTruth, MisleadingLog, sample_log


def unseen_action(
    seed: int, *, shift: float = 0.0, differs: float = 0.0, rare: float = 0.0, num: int = 200
) -> LogWithTruth:
    """π takes action 2 in 4 % of the steps, and no logged episode has it. It equals action 1 but for `differs`."""
    generator = np.random.default_rng(11)
    transition = generator.dirichlet(np.ones(4), size=(4, 3))
    reward = generator.normal(size=(4, 3)) + shift
    transition[:, 2], reward[:, 2] = transition[:, 1], reward[:, 1] + differs
    mdp = HiddenStateMDP(
        transition,
        reward,
        np.full(4, 0.25),
        in_every_state([0.48, 0.48, 0.04], 4),
        in_every_state([0.5 - rare / 2, 0.5 - rare / 2, rare], 4),
        discount=0.95,
        truncations=(60,),
    )
    return sample_log(mdp, num, seed, accept=lambda columns: bool(columns["action"].max() < 2))


def support_hole(seed: int, *, through: float = 0.4, arrive: float = 0.11) -> LogWithTruth:
    """State 2 pays. Only action 1 in state 1 leads there, and μ never takes it in state 1."""
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 0] = 1.0
    transition[0, 1] = [1 - arrive, arrive, 0.0]
    transition[1, 0, 0] = transition[1, 1, 2] = 1.0
    transition[2] = [0.03, 0.0, 0.97]
    mdp = HiddenStateMDP(
        transition,
        np.array([[0.1, 0.1], [0.1, 0.1], [1.0, 1.0]]),
        np.eye(3)[0],
        np.array([[0.3, 0.7], [1 - through, through], [0.5, 0.5]]),
        np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]),
        discount=0.95,
        truncations=(60,),
    )
    return sample_log(mdp, 200, seed)


def hole_at_step(seed: int, *, step: int, probability: float) -> LogWithTruth:
    """μ is deterministic at one hidden step. The other action leads to a state that pays 5 at every step."""
    num = step + 2
    transition = np.zeros((num + 1, 2, num + 1))
    transition[np.arange(num), :, np.minimum(np.arange(num) + 1, num - 1)] = 1.0
    transition[step, 1], transition[num, :, num] = np.eye(num + 1)[num], 1.0
    behaviour = in_every_state([0.5, 0.5], num + 1)
    behaviour[step] = [1.0, 0.0]
    reward = np.zeros((num + 1, 2))
    reward[:, 1], reward[num] = 0.5, 5.0
    observed_as = np.zeros(num + 1, int)
    observed_as[num] = 1
    target = in_every_state([1 - probability, probability], num + 1)
    mdp = HiddenStateMDP(transition, reward, np.eye(num + 1)[0], target, behaviour, 0.9, observed_as=observed_as)
    return sample_log(mdp, 200, seed)


def lucky_rare_action(seed: int) -> LogWithTruth:
    """Action 2 pays 8 with probability 0.2 and costs 4 otherwise. The log has it once or twice, and it paid."""

    def luck(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return np.where(action == 2, np.where(generator.random(len(state)) < 0.2, 9.6, -2.4), 0.0)

    def lucky(columns: Columns) -> bool:
        found = columns["reward"][columns["action"] == 2]
        return 1 <= len(found) <= 2 and bool(found.min() > 0)

    mdp = one_state([0.5, 0.2, -1.6], [0.6, 0.3, 0.1], [0.6, 0.399, 0.001], reward_noise=luck)
    return sample_log(mdp, 100, seed, accept=lucky)


def wear(seed: int, *, observed: bool) -> LogWithTruth:
    """Each action 1 wears the machine. At 25 it breaks and costs 30 a step; no logged episode gets so far."""
    num = 26
    transition = np.zeros((num, 2, num))
    transition[np.arange(num), 0, np.arange(num)] = 1.0
    transition[np.arange(num), 1, np.minimum(np.arange(num) + 1, num - 1)] = 1.0
    reward = in_every_state([0.0, 1.0], num)
    reward[-1] = -30.0
    mdp = HiddenStateMDP(
        transition,
        reward,
        np.eye(num)[0],
        in_every_state([0.1, 0.9], num),
        in_every_state([0.5, 0.5], num),
        discount=0.9,
        truncations=(30,),
        observed_as=None if observed else np.zeros(num, int),
        observations=np.append(np.arange(num), 0.0)[:, None] / 10 if observed else None,
    )
    return sample_log(mdp, 200, seed, accept=lambda columns: bool(columns["reward"].min() > -30))


LOGS = (
    MisleadingLog("unseen-twin", "π takes an action that is never logged and equals another", unseen_action),
    MisleadingLog("unseen-twin-plus-10", "the same with 10 on every reward", partial(unseen_action, shift=10.0)),
    MisleadingLog(
        "rare-twin-missing",
        "μ takes that action once in a thousand steps, and by chance never",
        partial(unseen_action, rare=0.001, num=40),
    ),
    MisleadingLog(
        "unseen-action-pays", "the action that is never logged pays 10 more", partial(unseen_action, differs=10.0)
    ),
    MisleadingLog(
        "unseen-action-costs", "the action that is never logged costs 10 more", partial(unseen_action, differs=-10.0)
    ),
    MisleadingLog("support-hole", "the state that pays follows an action that μ never takes there", support_hole),
    MisleadingLog(
        "small-support-hole",
        "the same, and π takes it with probability 0.1",
        partial(support_hole, through=0.1, arrive=0.3),
    ),
    MisleadingLog(
        "hole-at-step-3",
        "μ is deterministic at step 3, and π takes the other action with probability 0.15",
        partial(hole_at_step, step=3, probability=0.15),
    ),
    MisleadingLog(
        "hole-at-step-10",
        "μ is deterministic at step 10, where γᵗ is below ½",
        partial(hole_at_step, step=10, probability=0.5),
    ),
    MisleadingLog("lucky-rare-action", "an action logged once or twice paid by luck", lucky_rare_action),
    MisleadingLog(
        "wear-hidden",
        "wear breaks the machine for π just before truncation, never in the log; wear is not observed",
        partial(wear, observed=False),
        visible=False,
    ),
    MisleadingLog(
        "wear-shown",
        "wear breaks the machine for π, never in the log; wear is observed, and π reaches states that μ never visited",
        partial(wear, observed=True),
    ),
)
