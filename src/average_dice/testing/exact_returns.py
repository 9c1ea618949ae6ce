"""The exact distribution of the return of a small MDP, by enumeration of its trajectories."""

from collections import defaultdict

import numpy as np
from jaxtyping import Float

from average_dice.testing.exact_mdps import ExactMDP

DIGITS = 10  # returns that differ by less are one: sums in another order differ by rounding


def exact_returns(
    mdp: ExactMDP, num_steps: int, policy: Float[np.ndarray, "state action"]
) -> tuple[Float[np.ndarray, " outcome"], Float[np.ndarray, " outcome"]]:
    """Σ_{t<num_steps} γᵗ r_t of all trajectories under a policy, in ascending order, and their probabilities."""
    found: dict[float, float] = defaultdict(float)
    ends = 1 - mdp.transition.sum(axis=2, keepdims=True)
    outcomes = np.concatenate([mdp.transition, ends], axis=2)
    paths = [(float(chance), state, 0.0) for state, chance in enumerate(mdp.start) if chance > 0]
    for step in range(num_steps):
        longer = []
        for chance, state, total in paths:
            for action, share in enumerate(policy[state]):
                earned = total + mdp.discount**step * float(mdp.reward[state, action])
                for after, probability in enumerate(outcomes[state, action]):
                    if (times := chance * float(share) * float(probability)) > 0:
                        longer.append((times, after, earned))
        for chance, after, total in longer:
            if after == mdp.num_states or step == num_steps - 1:
                found[round(total, DIGITS)] += chance
        paths = [one for one in longer if one[1] < mdp.num_states]
    ordered = sorted(found.items())
    return np.array([one for one, _ in ordered]), np.array([chance for _, chance in ordered])
