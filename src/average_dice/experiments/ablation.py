"""ablation: the paper's method with and without its regulariser, λ₂ (E[c f] − 1)²/2."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from average_dice.experiments.base import Experiment, Plan
from average_dice.experiments.jobs import PAPER, Job, Row, Setting
from average_dice.experiments.measurements import planned
from average_dice.experiments.summaries import grouped
from average_dice.tasks import find_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class AblationPlan(Plan):
    """The paper's method with several weights λ₂ of the regulariser (`mass_weights`), 0 among them."""

    tasks: tuple[str, ...]
    logs: int
    seeds: int
    steps: int
    every: int
    mass_weights: tuple[float, ...] = (0.0, 0.5)


class Ablation(Experiment[AblationPlan]):
    """The paper's method with several weights of its regulariser."""

    name = "ablation"
    description = "The paper's method with and without its regulariser."
    plan_type = AblationPlan

    def jobs(self, plan: AblationPlan) -> Iterator[Job]:
        methods = [planned(PAPER, plan.steps, plan.every, {"mass_weight": weight}) for weight in plan.mass_weights]
        for log, task, method in product(range(plan.logs), plan.tasks, methods):
            yield self.job(task, Setting.of(find_task(task)), log, plan.seeds, method)

    def figures(self, directory: Path) -> "dict[str, Figure]":
        return {"ablation": error_by_weight(self.results(directory))}


def mass_weight(row: Row) -> float:
    """λ₂ of a run."""
    return json.loads(row["options"])["mass_weight"]


def error_by_weight(rows: list[Row]) -> "Figure":
    """Squared errors against training steps for each λ₂, one panel for each task."""
    from matplotlib import colormaps

    from average_dice.experiments import plotting

    weights = sorted({mass_weight(row) for row in rows})

    def panel(axes: "Axes", rows: list[Row]) -> None:
        for weight, runs in grouped(rows, mass_weight).items():
            colour = colormaps["coolwarm"](weights.index(weight) / max(len(weights) - 1, 1))
            plotting.learning_curve(axes, runs, f"λ₂ = {weight:g}", colour)

    return plotting.panels(rows, panel, "training steps", "squared error of J(π)")


ABLATION = Ablation()
