"""Stores of made-up results, whose errors are known."""

import json

import numpy as np

from average_dice.experiments.measurements import true_value
from average_dice.experiments.plans import Ablation, Main, Robustness, Tuning
from average_dice.experiments.store import Store
from average_dice.tasks.task import TASKS

PAPER = "average-dice-paper"
METHODS = (PAPER, "td", "cop-td", "best-dice", "sr-dice", "dual-dice", "average-reward", "wpdis")
STEPS = dict.fromkeys(METHODS[:6], 100)
PLANS = {
    "main": Main(tuple(TASKS), METHODS, logs=3, trained_logs=3, seeds=1, every=50, steps=STEPS),
    "robustness": Robustness(("CartPole-v1", "Hopper-v5"), (PAPER, "fqe"), 2, 2, 1, 50, {PAPER: 100}),
    "ablation": Ablation(tuple(TASKS), logs=2, seeds=2, steps=100, every=50),
    "tuning": Tuning(("CartPole-v1", "Hopper-v5"), 2, 1, 100, 50, (0.0, 0.1), (0.5, 2.0), (1e-4, 1e-3)),
}


def curve(method, last, truth, quick):
    """One method is where it ends after 50 of 100 steps, the others only at the end."""
    if method.num_steps is None:
        return {"curve_step": [], "curve_value": []}
    values = [np.nan, last if method.estimator == quick else last + truth, last]
    return {"curve_step": [0, 50, 100], "curve_value": values}


def fill(directory, experiment, error, quick=PAPER, plan=None, loss=lambda unit, method: 1.0, notes=None):
    """A store in which `error(unit, method)` is the error of every run, in units of the truth; None: no value."""
    plan = plan or PLANS[experiment]
    units = list(plan.units(experiment))
    store = Store.open(directory, experiment, plan, {})
    rows = []
    for unit in units:
        for one in unit.each():
            (method,) = one.methods
            truth, _ = true_value(unit.task, unit.setting.discount)
            off = error(unit, method)
            value = None if off is None else truth + truth * off * (-1) ** unit.log
            for seed in range(unit.num_seeds):
                rows.append(
                    {
                        "unit": one.key,
                        "experiment": experiment,
                        "task": unit.task,
                        "estimator": method.estimator,
                        "options": json.dumps(dict(method.options)),
                        "discount": unit.setting.discount,
                        "transitions": unit.setting.transitions,
                        "max_steps": unit.setting.max_steps,
                        "noise": unit.setting.noise,
                        "log": unit.log,
                        "seed": seed,
                        "value": value,
                        "truth": truth,
                        "notes": (notes or {}).get(method.estimator, ""),
                        "diagnostics": json.dumps({"held_out_loss": loss(unit, method)}),
                        **({} if off is None else curve(method, value, truth, quick)),  # null, as of runs that failed
                        "versions": "{}",
                    }
                )
    store.add(units[0], rows)  # all of them at once, which is quicker
    store.gather()
