"""The recorded probabilities: does any prediction from the past of the episode beat them?

If actions were sampled with the recorded probabilities μ, no q that knows only the past is better than μ on average:

    E[q(a | past) / μ(a | s)] ≤ 1    at every step,   so    e = mean over ε of ∏_rows (1 − ε + ε q / μ)   has E[e] ≤ 1

for any q that was learnt from other episodes. e is the wealth of a gambler who bets on q against μ: by Markov's
inequality P(e ≥ 100) ≤ 1 %, with any number of rows and without approximations (Ville, 1939; Ramdas et al., 2023). q is
learnt from a random half of the episodes and bets on the other half, and the other way round; e is the mean of the two.

It finds probabilities that are wrong or belong to other rows, a behaviour policy that changes during the log or repeats
its actions, and hidden causes of actions that show in the past of the episode.
"""

import numpy as np
from scipy import special

from average_dice.errors import NotApplicable
from average_dice.inference.refutation.base import Measured, Refuter
from average_dice.inference.refutation.case import Case
from average_dice.inference.refutation.predicted_actions import log_density, past_of

STAKES = (0.03, 0.2, 0.6)  # ε: a small one is for a q that is often worse than μ, a large one for a q that is better
MOST = 1_000.0  # larger exponents are reported as this


def _measure(case: Case) -> Measured:
    data = case.problem.dataset
    if data.behaviour_log_prob is None:
        raise NotApplicable("the log has no behaviour_log_prob column")
    case.require_episodes()
    inputs = past_of(case)
    ((first, second),) = case.random_halves(1)
    half = [data.rows_of(first), data.rows_of(second)]
    logs = []
    for learn, apply in (half, half[::-1]):
        better = log_density(case, inputs, learn, apply) - data.behaviour_log_prob[apply]
        logs += [np.sum(np.logaddexp(np.log1p(-one), np.log(one) + better)) for one in STAKES]
    number = float(np.clip((special.logsumexp(logs) - np.log(len(logs))) / np.log(10), -MOST, MOST))
    return Measured(
        number,
        "the past of an episode predicts its actions no better than the recorded probabilities do",
        "the past of an episode predicts its actions better than the recorded probabilities: these are wrong, or "
        "actions had causes that they do not show",
    )


PROBABILITIES = Refuter(
    name="probabilities",
    asks="Were actions sampled with the recorded probabilities?",
    unit="zeros of the odds (2: 100 to 1)",
    limit=2.0,
    why="At most 1 % of sound logs reach it, by Markov's inequality",
    measure=_measure,
)
