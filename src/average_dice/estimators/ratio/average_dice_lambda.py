"""Average-DICE(λ): labels between COP-TD (λ = 0) and Average-DICE (λ = 1), in closed form.

    y_t = γ ρ_{t−1} ((1 − λ) w(s_{t−1}) + λ y_{t−1}),      y₀ = (1 − γ) n/K

A state takes over the weight of the state before it: the share λ from the label along the episode, the rest from the
ratio itself. With w = φᵀθ a label is e_t + z_tᵀθ, and the regression of labels on states is one linear system, as in
LSTD(λ):

    (Σ_rows φ(s)φ(s)ᵀ − Σ_arrivals φ(s_t) z_tᵀ) θ = Σ_arrivals φ(s_t) e_t

ρ is divided by its mean over the log, as for COP-TD. Arrivals are the starts and the states after each step that did
not terminate, also after the last step before a truncation. The part λ of a label would continue after a truncation. It
is put on the state after the truncation, times 1/(1 − γλ), as if the process stayed there. For λ = 0 this part is zero;
for λ = 1 it is all of the weight after truncation.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np

from average_dice.errors import SettingError
from average_dice.estimators._shared.ratio_fits import fit_of_state_ratio
from average_dice.estimators.base import Estimator, Prepared, PreparedClosedForm
from average_dice.estimators.results import Fit
from average_dice.estimators.value_rules import ValueRule, flow_normalised
from average_dice.features.logged_states import LoggedStates
from average_dice.linear_systems import solve
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem, Rows
from average_dice.resampling import Resample, RowSums

STAYS = Note(NoteCode.TRUNCATION_STAYS, "the traces' weight after truncation stays at the last state")


@dataclass(frozen=True)
class AverageDICELambda(Estimator):
    """Average-DICE(λ): labels between COP-TD (λ = 0) and Average-DICE (λ = 1), in closed form.

    On `num_features` Fourier features of the state with penalty `ridge`; λ is `trace`.
    A label has a finite variance if (γλ)² E[ρ²] < 1.
    More features and a smaller ridge have less bias, and more variance and cost.
    """

    revision = 2

    trace: float = 0.5  # halfway: larger values have more variance, smaller ones rely more on the features
    num_features: int = 300
    ridge: float = 1e-3
    value: ValueRule = flow_normalised

    def __post_init__(self) -> None:
        if not 0 <= self.trace <= 1:
            raise SettingError(f"the trace λ must lie between 0 and 1, not {self.trace}.")

    def prepare(self, problem: Problem, *, key: jax.Array) -> Prepared:
        states = LoggedStates.of(problem, self.num_features, key)
        data = problem.dataset
        last = np.zeros(data.num_transitions, bool)
        last[data.starts + data.lengths - 1] = True
        factor = np.ones(data.num_transitions)  # also after a termination, where states.after is zero
        factor[last & ~data.terminated] = 1 / (1 - problem.discount * self.trace)
        held = factor[:, None] * states.after
        gram = RowSums(problem, states.logged, states.logged)

        def solve_for(resample: Resample) -> Fit:
            balanced = problem.ratio / resample.problem.mean_ratio
            known, open_part = labels_after(problem, balanced, states.logged, self.trace)
            times = (resample.counts / resample.num_rows)[problem.episode_index]
            arrived = (times[:, None] * held).T @ np.column_stack([open_part, known])
            first = problem.normaliser * resample.mean_over_episodes(states.start)
            # y₀ = (1 − γ) n/K, and so `known`, is on the scale of the resample
            lengths = resample.num_rows / resample.problem.dataset.num_episodes
            right = first + arrived[:, -1] * lengths
            theta = solve(gram.mean(resample) - arrived[:, :-1] + states.penalty(self.ridge), right)
            ratio = resample.of_rows(states.logged @ theta)
            fit = fit_of_state_ratio(resample.problem, ratio, lambda rows: states(rows) @ theta, self.value)
            return replace(fit, notes=(*fit.notes, *((STAYS,) if resample.problem.misses_rewards else ())))

        return PreparedClosedForm(problem, solve_for)


def labels_after(problem: Problem, ratio: Rows, phi: np.ndarray, trace: float) -> tuple[np.ndarray, np.ndarray]:
    """(e K/n, z) of the label e + zᵀθ that each row passes to the state after it."""
    data, discount = problem.dataset, problem.discount
    known, open_part = np.empty(len(phi)), np.empty_like(phi)
    for step in range(int(data.lengths.max())):
        rows = data.starts[data.lengths > step] + step
        passed = discount * ratio[rows]
        before_known = problem.normaliser if step == 0 else known[rows - 1]
        before_open = 0.0 if step == 0 else open_part[rows - 1]
        known[rows] = passed * trace * before_known
        open_part[rows] = passed[:, None] * ((1 - trace) * phi[rows] + trace * before_open)
    return known, open_part
