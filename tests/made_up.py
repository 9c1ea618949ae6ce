"""Result stores of made-up rows with known errors."""

import json

import numpy as np

from average_dice.experiments.ablation import AblationPlan
from average_dice.experiments.main import MainPlan
from average_dice.experiments.registry import EXPERIMENTS
from average_dice.experiments.robustness import RobustnessPlan
from average_dice.experiments.tuning import TuningPlan
from average_dice.inference.diagnostics import Diagnostics, Heavy
from average_dice.tasks import TASKS, true_value

PAPER = "average-dice-paper"
METHODS = (PAPER, "td", "cop-td", "best-dice", "sr-dice", "dual-dice", "average-reward", "wpdis")
STEPS = dict.fromkeys(METHODS[:6], 100)
PLANS = {
    "main": MainPlan(tuple(TASKS), METHODS, logs=3, trained_logs=3, seeds=1, every=50, steps=STEPS),
    "robustness": RobustnessPlan(("CartPole-v1", "Hopper-v5"), (PAPER, "fqe"), 2, 2, 1, 50, {PAPER: 100}),
    "ablation": AblationPlan(tuple(TASKS), logs=2, seeds=2, steps=100, every=50),
    "tuning": TuningPlan(("CartPole-v1", "Hopper-v5"), 2, 1, 100, 50, (0.0, 0.1), (0.5, 2.0), (1e-4, 1e-3)),
}


def as_the_paper_says(job, method):
    """Errors for which every claim of the paper holds."""
    if job.experiment == "ablation":
        return 0.1 if job.task == "CartPole-v1" or method.options["mass_weight"] > 0 else 1.9
    if job.experiment == "robustness" and method.estimator == PAPER:
        return 0.1 * (1 + 5 * (job.setting.discount == 0.8) + (job.setting.max_steps == 200))
    return {PAPER: 0.1, "td": 0.3, "sr-dice": 0.4}.get(method.estimator, 0.9)


def curve(method, last, truth, quick):
    """The quick method has its last value after 50 of 100 steps, the others only at the end."""
    if method.num_steps is None:
        return {"curve_step": [], "curve_value": []}
    values = [np.nan, last if method.estimator == quick else last + truth, last]
    return {"curve_step": [0, 50, 100], "curve_value": values}


def fill(directory, experiment, error, quick=PAPER, plan=None, loss=lambda job, method: 1.0, note_codes=None):
    """A store in which `error(job, method)` is the error of every run, relative to the truth; None: no value."""
    plan = plan or PLANS[experiment]
    jobs = list(EXPERIMENTS[experiment].jobs(plan))
    store = EXPERIMENTS[experiment].store(directory, plan, {})
    rows = []
    for job in jobs:
        for one in job.each():
            (method,) = one.methods
            truth, _ = true_value(job.task, job.setting.discount)
            off = error(job, method)
            value = None if off is None else truth + truth * off * (-1) ** job.log
            for seed in range(job.num_seeds):
                rows.append(
                    {
                        **what_is_run(one, seed),
                        "value": value,
                        "truth": truth,
                        "notes": "",
                        "note_codes": (note_codes or {}).get(method.estimator, []),
                        "diagnostics": json.dumps({"held_out_loss": loss(job, method)}),
                        **({} if off is None else curve(method, value, truth, quick)),  # null, as of runs that failed
                        "versions": "{}",
                    }
                )
    store.add(jobs[0], rows)  # all rows at once, which is quicker
    store.gather()


def what_is_run(job, seed):
    """The columns of a row that say what was run, of a job with one method."""
    (method,) = job.methods
    return {
        "unit": job.key,
        "experiment": job.experiment,
        "task": job.task,
        "estimator": method.estimator,
        "options": json.dumps(dict(method.options)),
        "discount": job.setting.discount,
        "transitions": job.setting.transitions,
        "max_steps": job.setting.max_steps,
        "noise": job.setting.noise,
        "log": job.log,
        "seed": seed,
    }


# Diagnostics of a log that passes all checks.
SOUND = Diagnostics(
    reward_range=1.0,
    largest_reward_share=0.01,
    repeated_episodes=0.0,
    unseen_actions=None,
    beyond_truncation=0.0,
    mean_ratio=1.0,
    mean_ratio_distance=0.1,
    overlap=0.8,
    effective_episodes=20.0,
    pareto_k=0.3,
    heaviest=(Heavy(3, 0.1),),
    mass_found=1.0,
    flow_residual=0.1,
)
