"""Confounded processes with exact values: an unrecorded binary state u drives the logged actions and the outcomes.

The log records μ(a|s), the probability over u. Given u, the odds of an action are exactly Γ times or 1/Γ times those
of μ, so a sensitivity analysis at this Γ must contain the true value, and one at a smaller Γ need not.

    b(1|s, u = 1) has the odds Γ m/(1 − m),     b(1|s, u = 0) has the odds m/(1 − m)/Γ,     m = μ(1|s)

P(u = 1|s) is such that b averages to μ. A state is a pair 2s + u; the log shows s.
"""

import numpy as np
from jaxtyping import Float

from average_dice.testing.misleading.finite_mdps import HiddenStateMDP, normal_noise

RECORDED = np.array([0.4, 0.6])  # μ(1|s)
TARGET = np.array([0.8, 0.7])  # π(1|s)
ENDS = 0.3  # the probability of termination at each step
NEVER_TRUNCATED = (200,)  # steps: the probability of a longer episode is negligible
NOISE = 0.5  # standard deviation of rewards, given everything
EFFECT = 0.6  # of u on the reward, in both directions


def behaviour_given_u(recorded: Float[np.ndarray, " state"], gamma: float) -> Float[np.ndarray, "state u"]:
    """b(1|s, u): odds of 1/Γ and Γ times the recorded ones."""
    odds = recorded / (1 - recorded)
    deviating = np.stack([odds / gamma, odds * gamma], axis=1)
    return deviating / (1 + deviating)


def share_of_u(recorded: Float[np.ndarray, " state"], gamma: float) -> Float[np.ndarray, " state"]:
    """P(u = 1|s), with which b averages to the recorded probabilities; ½ where Γ = 1."""
    if gamma == 1:
        return np.full(len(recorded), 0.5)
    given = behaviour_given_u(recorded, gamma)
    return (recorded - given[:, 0]) / (given[:, 1] - given[:, 0])


def confounded(gamma: float, *, steps: bool, persistent: bool = False, noise: float = NOISE) -> HiddenStateMDP:
    """A confounded bandit, or with `steps` a confounded MDP with two recorded states.

    u = 1 raises the reward of action 1, lowers that of action 0, and leads more often to state 1, which pays more.
    `persistent`: u is drawn once for the episode, and μ is then ½ everywhere; otherwise it is drawn anew at each step.
    """
    recorded = np.full(2, 0.5) if persistent else RECORDED
    given, share = behaviour_given_u(recorded, gamma), share_of_u(recorded, gamma)
    of_u = np.stack([1 - share, share], axis=1)  # P(u|s)
    transition, reward = np.zeros((4, 2, 4)), np.zeros((4, 2))
    behaviour, target, marginal = (np.zeros((4, 2)) for _ in range(3))
    for s in (0, 1):
        for u in (0, 1):
            state = 2 * s + u
            behaviour[state] = [1 - given[s, u], given[s, u]]
            marginal[state] = [1 - recorded[s], recorded[s]]
            target[state] = [1 - TARGET[s], TARGET[s]]
            for action in (0, 1):
                agrees = 1.0 if u == action else -1.0
                reward[state, action] = 0.5 * s + 0.2 * action + EFFECT * agrees
                to_one = 0.5 + 0.3 * agrees
                for after, chance in ((0, 1 - to_one), (1, to_one)):
                    later = np.eye(2)[u] if persistent else of_u[after]
                    transition[state, action, 2 * after : 2 * after + 2] = (1 - ENDS) * chance * later
    return HiddenStateMDP(
        transition=transition if steps else np.zeros((4, 2, 4)),
        reward=reward,
        start=0.5 * of_u.ravel(),
        target=target,
        behaviour=behaviour,
        discount=0.9 if steps else 0.0,
        truncations=NEVER_TRUNCATED,
        observed_as=np.array([0, 0, 1, 1]),
        recorded=marginal,
        reward_noise=normal_noise(noise) if noise else None,
    )
