"""Sensitivity to what was not recorded: bounds on the value if the behaviour policy knew more than the log shows.

Let b(a|s, u) be the true probability of the logged action, given also what was not recorded, u; the log has μ(a|s).
The value is E[Σ γᵗ r_t ∏ π/b]. Every form below bounds it over all b that deviate from μ by at most Γ at each step.

- `deviation`: how far 1/b may lie from 1/μ, for a Γ.
- `weighted_means`: the largest weighted mean with weights between bounds; solved by sorting.
- `products`: every step, or a single step, may be affected; u is arbitrary.
- `memoryless`: every step may be affected, by a u that is drawn anew at each step; tighter, on a table of states.
- `possible`: the values that the rewards allow, where bounds are clipped.
- `tipping`: the Γ at which a conclusion is no longer certain.
"""

from average_dice.inference.sensitivity.deviation import Deviation, in_odds, in_probability
from average_dice.inference.sensitivity.forms import LOWER, UPPER, Bounds, Form, Gammas, Side
from average_dice.inference.sensitivity.memoryless import Memoryless
from average_dice.inference.sensitivity.possible import clipped, possible_range
from average_dice.inference.sensitivity.products import EveryStep, OneStep
from average_dice.inference.sensitivity.tipping import LARGEST_GAMMA, tipping_gamma
from average_dice.inference.sensitivity.weighted_means import largest_mean

__all__ = [
    "LARGEST_GAMMA",
    "LOWER",
    "UPPER",
    "Bounds",
    "Deviation",
    "EveryStep",
    "Form",
    "Gammas",
    "Memoryless",
    "OneStep",
    "Side",
    "clipped",
    "in_odds",
    "in_probability",
    "largest_mean",
    "possible_range",
    "tipping_gamma",
]
