"""What the labels of the authors' released code tend to, exactly.

The label is γᵗ ρ_{t−1} ρ_t ⋯ ρ_{T−1}, to the end of the episode, and 1 at t = 0. Given the state at t, the product of
the ratios from t on has the mean 1, whatever happened before, so

    E[label | s_t = s] = γᵗ E_μ[ρ_{t−1} | s_t = s]:

the states that are reached by t − 1 steps of μ and a single one of π. The density ratio needs t steps of π.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from average_dice.testing.exact_mdps import ExactMDP


@dataclass(frozen=True, eq=False)
class ReleasedLimit:
    """The ratio of each state and the value, as the number of episodes grows; for a table, which fits every mean."""

    ratio: Float[np.ndarray, " state"]
    value: float


def released_limit(mdp: ExactMDP) -> ReleasedLimit:
    """w(s) = L (1 − γ) Σ_t γᵗ P(s_t = s after t − 1 steps of μ and one of π) / Σ_t P_μ(s_t = s).

    L is the length of the longest episode: that of the truncation, which the MDP must have.
    """
    visits = mdp.visits(mdp.behaviour, mdp.horizon)
    moved = np.vstack([visits[0], visits[:-1] @ mdp.step_matrix(mdp.target)])
    label_sums = mdp.discount ** np.arange(mdp.horizon) @ moved
    ratio = mdp.horizon * mdp.normaliser * label_sums / visits.sum(axis=0)
    return ReleasedLimit(ratio, mdp.value_of(mdp.logged * ratio))
