"""Why the released code can do well although its label is wrong: `make released-study`.

`average-dice-released` with one thing changed at a time, on the sticky chain and on logs of simulated tasks. The
results go into `results/released_study.parquet`, one row for each case, variant and log; the table goes into
`docs/paper.md`, between its markers. It continues after an interruption.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("NPROC", "1")  # XLA's threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import track

from average_dice.errors import NotApplicable
from average_dice.estimators import AverageDICE, AverageReward, Estimator
from average_dice.experiments.jobs import Setting
from average_dice.experiments.measurements import log_of
from average_dice.experiments.summaries import END
from average_dice.files import write_text_whole, written_whole
from average_dice.labels import plain
from average_dice.models import ReleasedRegression
from average_dice.models.mlp import MLP
from average_dice.problem import Problem, Rows
from average_dice.tasks import find_task, target_policy, true_value
from average_dice.testing.exact_mdps import sticky_chain

STEPS, CHECKPOINTS, LOGS = 1_500, 30, 5
CHAIN, AS_RELEASED = "sticky chain", "Hopper-v5, collected as released"
CASES = (CHAIN, "CartPole-v1", "Hopper-v5", "HalfCheetah-v5", AS_RELEASED)
EPISODES_OF_CHAIN = 80  # of 50 steps: 4,000 transitions, as of the tasks
AVERAGE_REWARD, PAPER, RELEASED = "average reward", "average-dice-paper", "average-dice-released"
NICENESS = 10
ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "released_study.parquet"
PAGE = ROOT / "docs" / "paper.md"
START, FINISH = "<!-- released study -->\n", "<!-- end of released study -->"

SCHEMA = pa.schema(
    [("case", pa.string()), ("variant", pa.string()), ("log", pa.int32())]
    + [(name, pa.float64()) for name in ("truth", "value", "mass", "variation")]  # null where there is no value
    + [("last_values", pa.list_(pa.float64()))]  # at the checkpoints in the last fifth of training
)
Row = dict[str, object]


@dataclass(frozen=True)
class LinearOutput(ReleasedRegression):
    """The released loss with a linear output."""

    def network(self, num_inputs: int, key: jax.Array) -> MLP:
        return MLP(num_inputs, self.hidden, key=key)


def no_product(problem: Problem) -> Rows:
    """A product of 1: the label is the discount alone."""
    return np.zeros(problem.dataset.num_transitions)


def of_mass_one(problem: Problem, log_product: Rows) -> Rows:
    """The same label 1/(L (1 − γ)) for every row: a ratio of 1."""
    scale = float(problem.dataset.lengths.max()) * problem.normaliser
    return np.full(len(log_product), -np.log(scale))


def zero(problem: Problem, log_product: Rows) -> Rows:
    """The label 0 for every row: what is left once all products have vanished."""
    return np.full(len(log_product), -np.inf)


def variants() -> dict[str, Estimator]:
    """The average reward, the paper's method, the released one, and it with one thing changed."""
    released = AverageDICE.released()
    return {
        AVERAGE_REWARD: AverageReward(),
        PAPER: AverageDICE.paper(),
        RELEASED: released,
        "linear output": replace(released, model=LinearOutput()),
        "no pull of the mass": replace(released, model=ReleasedRegression(mass_weight=0.0)),
        "no L1 penalty": replace(released, model=ReleasedRegression(ridge=0.0)),
        "label: γᵗ · prefix product": replace(released, labels=plain),
        "label: γᵗ alone": replace(released, labels=no_product),
        "label: a constant of mass 1": replace(released, labels=no_product, completion=of_mass_one),
        "label: 0": replace(released, labels=no_product, completion=zero),
    }


def problem_of(case: str, log: int) -> tuple[Problem, float]:
    """The log, and the true J(π), rewards after truncation included."""
    if case == CHAIN:
        mdp = sticky_chain()
        return mdp.problem(EPISODES_OF_CHAIN, seed=log), mdp.value
    task = find_task(case.partition(",")[0])
    setting = Setting.as_released(task) if case == AS_RELEASED else Setting.of(task)
    data = log_of(task.name, setting.transitions, setting.max_steps, setting.noise, log, setting.only_full)
    return Problem(data, target_policy(task.name), setting.discount), true_value(task.name, setting.discount)[0]


def result_of(case: str, variant: str, log: int) -> Row:
    """The value, the mean of the ratio (its mass) and its coefficient of variation over the rows of the log."""
    problem, truth = problem_of(case, log)
    method = variants()[variant]
    if method.trains:
        method = method.with_training(num_steps=STEPS, num_checkpoints=CHECKPOINTS)
    row: Row = {"case": case, "variant": variant, "log": log, "truth": truth}
    try:
        fit = method.fit(problem, key=jax.random.key(log))
    except NotApplicable:
        return row
    if fit.history is None:
        return row | {"value": fit.value, "last_values": [fit.value]}
    at_the_end = fit.history.step > (1 - END) * STEPS
    ratio = fit.ratio(problem.dataset.observation)
    mass = float(ratio.mean())
    return row | {
        "value": fit.value,
        "mass": mass,
        "variation": float(ratio.std()) / abs(mass) if mass else None,
        "last_values": fit.history.value[at_the_end].tolist(),
    }


def every_run() -> Iterator[tuple[str, str, int]]:
    for case in CASES:
        for variant in variants():  # logs last: runs that differ in the log alone share their compiled functions
            for log in range(LOGS):
                yield case, variant, log


@dataclass(frozen=True)
class Error:
    """The root mean squared error over logs and the last checkpoints, relative to |J|, with its standard error."""

    rmse: float
    standard_error: float

    @staticmethod
    def of(rows: list[Row]) -> "Error":
        """NaN where a run has no value."""
        squares = np.array(
            [
                np.mean((np.array(row["last_values"] or [np.nan]) / row["truth"] - 1) ** 2)  # type: ignore[operator]
                for row in rows
            ]
        )
        rmse = float(np.sqrt(squares.mean()))
        spread = float(squares.std(ddof=1)) / len(squares) ** 0.5 if len(squares) > 1 else float("nan")
        return Error(rmse, spread / (2 * rmse) if rmse else 0.0)


def table(store: pa.Table) -> str:
    """One line for each case and variant that has all of its logs."""
    lines = [
        "| log | variant | error over \\|J\\| | over that of the average reward | over that of the paper's method | "
        "value over J | mass | variation of the ratio |",
        "| --- " * 8 + "|",
    ]
    for case in CASES:
        of_case = {variant: _rows(store, case, variant) for variant in variants()}
        errors = {variant: Error.of(rows) for variant, rows in of_case.items() if len(rows) == LOGS}
        for variant, error in errors.items():
            rows = of_case[variant]
            over = [_over(error, errors.get(other)) for other in (AVERAGE_REWARD, PAPER)]
            values = float(np.mean([_number(row["value"]) / _number(row["truth"]) for row in rows]))
            shapes = [_mean([row[name] for row in rows]) for name in ("mass", "variation")]
            shown = f"{error.rmse:.3f} ± {error.standard_error:.3f}"
            name = f"`{variant}`" if variant in (PAPER, RELEASED) else variant
            lines.append(f"| {' | '.join([case, name, shown, *over, f'{values:.2f}', *shapes])} |")
    return "\n".join(lines) + "\n"


def _rows(store: pa.Table, case: str, variant: str) -> list[Row]:
    return [row for row in store.to_pylist() if (row["case"], row["variant"]) == (case, variant)]


def _number(value: object) -> float:
    return float(value) if isinstance(value, float) else float("nan")


def _mean(values: list[object]) -> str:
    known = [value for value in values if isinstance(value, float)]
    return f"{np.mean(known):.2f}" if known else "–"


def _over(error: Error, other: Error | None) -> str:
    """The ratio of two errors; a dash where the other is 0, as of the average reward where every reward is 1."""
    return f"{error.rmse / other.rmse:.2f}" if other is not None and other.rmse > 1e-6 else "–"


def with_table(text: str, store: pa.Table) -> str:
    """The page with the table between its markers."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(FINISH)
    return f"{before}{START}{table(store)}{FINISH}{after}"


def main() -> None:
    os.nice(NICENESS)
    store = pq.read_table(STORE, schema=SCHEMA) if STORE.exists() else SCHEMA.empty_table()
    done = set(zip(*(store[name].to_pylist() for name in ("case", "variant", "log")), strict=True))
    for run in track([run for run in every_run() if run not in done], "trainings"):
        store = pa.concat_tables([store, pa.Table.from_pylist([result_of(*run)], SCHEMA)])
        with written_whole(STORE) as temporary:
            pq.write_table(store.combine_chunks(), temporary, compression="zstd")
    write_text_whole(PAGE, with_table(PAGE.read_text(encoding="utf-8"), store))


if __name__ == "__main__":
    main()
