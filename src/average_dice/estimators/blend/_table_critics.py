"""The critics of the blend for states that repeat: tables with shrinkage.

The first has the strengths that predict held-out episodes best. That is too much for a value: a bias that hardly shows
in one step adds up over the steps of an episode. The second has a tenth of these strengths, and the last hardly any:
the blend takes the distance of other candidates from it as their bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from average_dice.estimators._shared.table_td import Strengths, TableSolution, TableTD
from average_dice.estimators.blend._critics import ScoredCritic
from average_dice.problem import Problem
from average_dice.resampling import Resample

SHARES = (1.0, 0.1)  # of the chosen strengths
MOST_UNLOGGED = 0.1  # of π's actions in the states of the log, set by judgement
LEAST = (0.5, 0.1)  # in rows: below one, so that a single row counts more than what it is drawn to


@dataclass(frozen=True, eq=False)
class TableCritics:
    """The equations of the tables of a log, and their strengths."""

    equations: TableTD
    strengths: tuple[Strengths, ...]

    @staticmethod
    def of(problem: Problem) -> "TableCritics":
        """With strengths chosen on this log; made once for each problem."""

        def make() -> TableCritics:
            equations = TableTD.of(problem)
            first, second = equations.choose_strengths()
            shrunk = tuple((share * first, share * second) for share in SHARES)
            return TableCritics(equations, (*shrunk, LEAST))

        return problem.once(TableCritics, make)

    @property
    def are_dense(self) -> bool:
        """Whether the log has nearly all of π's actions in its states. Where one is missing, a table has μ's value."""
        return self.equations.unlogged <= MOST_UNLOGGED

    def learn(self, resamples: Sequence[Resample]) -> list[list[ScoredCritic]]:
        """All tables of each resample."""
        return [
            [_scored(self.equations.solve(strengths, resample)) for strengths in self.strengths]
            for resample in resamples
        ]


def _scored(solution: TableSolution) -> ScoredCritic:
    values, targets = solution.logged(), solution.resample.of_rows(solution.targets)
    return ScoredCritic(values.start, targets - values.q, solution.error())
