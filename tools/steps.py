"""From the paper's formula to the recommended estimator, one change at a time: `make steps`.

Writes the table of docs/recommended.md. Each line is a method in closed form, each column a setting of the tasks that
were used for development. All methods are fitted to the same logs.
"""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from average_dice import Estimator, NotApplicable, Problem
from average_dice.estimators import (
    AverageDICE,
    AverageDICELambda,
    Blend,
    FittedQ,
    MarginalisedDoublyRobust,
    flow_normalised,
    label_on_state,
    plain_value,
    product_on_state_and_step,
    ratio_on_state,
)
from average_dice.estimators.blend.row_weights import discounted, evenly
from average_dice.experiments.jobs import Setting
from average_dice.experiments.measurements import log_of
from average_dice.experiments.ranking import UNSEEN_TASKS
from average_dice.labels import HeldAtTruncation, as_logged, plain, self_normalised
from average_dice.models import FourierFeatures
from average_dice.tasks import TASKS, find_task, target_policy, true_value

PAGE = Path(__file__).parents[1] / "docs" / "recommended.md"
LOGS = range(5)
DEVELOPMENT_TASKS = [task for task in TASKS if task not in UNSEEN_TASKS]
FLOOR = 1e-3  # smaller relative errors count as this: the truth is not more precise

closed = AverageDICE(FourierFeatures(), plain, as_logged, label_on_state, value=plain_value)
scaled = replace(closed, regress=ratio_on_state)
normalised = replace(scaled, labels=self_normalised)
valued = replace(normalised, value=flow_normalised)
factored = replace(valued, regress=product_on_state_and_step)
held = replace(factored, completion=HeldAtTruncation())

STEPS: dict[str, Estimator] = {
    "1. the paper's labels on Fourier features, closed form": closed,
    "2. the ratio as target instead of the label": scaled,
    "3. self-normalised products": normalised,
    "4. flow-normalised value": valued,
    "5. the discount factored out": factored,
    "6. the mass after truncation held on the last steps": held,
    "7. rows weighted by γᵗ in the regression (`average-dice-features`)": AverageDICE(),
    "8. doubly robust with a bounded Q (`average-dice-dr`)": MarginalisedDoublyRobust(),
    "9. blended with fitted Q and products of ratios (`average-dice-blend`)": Blend(),
    "*the bounded Q alone (`fqe`)*": FittedQ(),
    "*λ-labels instead of 5 to 7 (`average-dice-lambda`)*": AverageDICELambda(),
    "*9 with critics that weight all rows equally*": Blend(weights=(evenly, evenly)),
    "*9 with critics that weight rows by γᵗ*": Blend(weights=(discounted, discounted)),
    "*9 with a single ridge*": Blend(ridges=(1e-3,)),
    "*9 with one standard error of overlap*": Blend(overlap=1.0),
    "*9 with four standard errors of overlap*": Blend(overlap=4.0),
}


def settings(task: str) -> dict[str, Setting]:
    middle = Setting.of(find_task(task))
    by_discount = {f"γ = {discount}": replace(middle, discount=discount) for discount in (0.8, 0.95, 0.99)}
    return by_discount | {"20 steps": replace(middle, max_steps=20)}


def relative_errors(task: str, setting: Setting) -> dict[str, float]:
    """The root mean squared error of every method over the logs, relative to |J|."""
    truth, _ = true_value(task, setting.discount)
    errors: dict[str, list[float]] = {name: [] for name in STEPS}
    for log in LOGS:
        data = log_of(task, setting.transitions, setting.max_steps, setting.noise, log)
        problem = Problem(data, target_policy(task), setting.discount)
        for name, method in STEPS.items():
            try:
                value = method.fit(problem, key=jax.random.key(log)).value
            except NotApplicable:
                value = 0.0
            errors[name].append((value - truth) / truth)
    return {name: max(float(np.sqrt(np.mean(np.square(found)))), FLOOR) for name, found in errors.items()}


def main() -> None:
    columns = list(settings("CartPole-v1"))
    logs = np.zeros((len(STEPS), len(columns)))
    for task in DEVELOPMENT_TASKS:
        for column, setting in enumerate(settings(task).values()):
            found = relative_errors(task, setting)
            logs[:, column] += [np.log(found[name]) / len(DEVELOPMENT_TASKS) for name in STEPS]
            print(task, setting, {name[:12]: round(error, 4) for name, error in found.items()}, flush=True)
    lines = ["| | " + " | ".join(columns) + " | all |", "| --- |" + " --- |" * (len(columns) + 1)]
    for name, row in zip(STEPS, np.column_stack([logs, logs.mean(axis=1)]), strict=True):
        lines.append(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in np.exp(row)) + " |")
    before, _, rest = PAGE.read_text().partition("<!-- steps -->\n")
    _, _, after = rest.partition("<!-- end of steps -->\n")
    table = "\n".join(lines)
    PAGE.write_text(f"{before}<!-- steps -->\n{table}\n<!-- end of steps -->\n{after}")


if __name__ == "__main__":
    main()
