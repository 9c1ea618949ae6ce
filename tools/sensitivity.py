"""Do bounds at the true Γ contain the truth? `python tools/sensitivity.py` writes the table of docs/sensitivity.md.

For every confounded process of `average_dice.testing.confounded`, 200 logs of 500 episodes with confidence ends, and
200 of 4,000 episodes without (about ten minutes).
"""

from pathlib import Path

import numpy as np
from rich.progress import track

from average_dice.errors import NotApplicable
from average_dice.inference.bootstrap import resampled_episodes
from average_dice.inference.intervals import percentile
from average_dice.inference.sensitivity import LOWER, UPPER, EveryStep, Form, Memoryless, in_odds
from average_dice.problem import Problem
from average_dice.resampling import Resample
from average_dice.testing.confounded import confounded
from average_dice.testing.misleading.log import sample_log

NUM_LOGS, NUM_RESAMPLES, GAMMA = 200, 50, 2.0
FEW, MANY = 500, 4_000  # episodes
PAGE = Path(__file__).parents[1] / "docs" / "sensitivity.md"
BEGIN, END = "<!-- table of tools/sensitivity.py -->", "<!-- end of the table -->"
PROCESSES = {
    "one step": {"steps": False},
    "steps, u drawn anew at each": {"steps": True},
    "steps, u of the episode": {"steps": True, "persistent": True},
}


def forms_of(problem: Problem) -> list[Form]:
    """Those that allow every step to be confounded, as it is here."""
    try:
        return [EveryStep(in_odds, problem.dataset.is_one_step), Memoryless.of(in_odds, problem)]
    except NotApplicable:
        return [EveryStep(in_odds, problem.dataset.is_one_step)]


def in_bounds(form: Form, problem: Problem, truth: float) -> tuple[bool, float]:
    """Whether the truth is within the bounds at the true Γ, and their width."""
    bounds = form.on(Resample.everything(problem))
    lower, upper = (float(bounds(np.array([GAMMA]), side)[0]) for side in (LOWER, UPPER))
    return lower <= truth <= upper, upper - lower


def in_ends(form: Form, problem: Problem, truth: float, seed: int) -> tuple[bool, bool]:
    """Whether the truth is within the interval at Γ = 1, and within the confidence ends at the true Γ."""
    gammas, number = np.array([1.0, GAMMA]), problem.dataset.num_episodes
    again = [form.on(Resample.of(problem, one)) for one in resampled_episodes(number, NUM_RESAMPLES, seed)]
    low = np.array([bounds(gammas, LOWER) for bounds in again])
    high = np.array([bounds(gammas, UPPER) for bounds in again])
    ends = [(percentile(low[:, k], 0.95, number)[0], percentile(high[:, k], 0.95, number)[1]) for k in (0, 1)]
    return ends[0][0] <= truth <= ends[0][1], ends[1][0] <= truth <= ends[1][1]


def sampled(settings: dict[str, bool], num_episodes: int, seed: int) -> tuple[Problem, float]:
    log = sample_log(confounded(GAMMA, **settings), num_episodes, seed)
    return Problem(log.dataset, log.policy, log.discount), log.truth


def table() -> str:
    lines = [
        f"| process | form | 95 % interval at Γ = 1, {FEW:,} episodes | with confidence ends, {FEW:,} | "
        f"bounds, {FEW:,} | bounds, {MANY:,} | mean width, {MANY:,} |",
        "| --- |" + " --- |" * 6,
    ]
    for name, settings in PROCESSES.items():
        found: dict[str, list[tuple[bool, bool, bool, bool, float]]] = {}
        for seed in track(range(NUM_LOGS), name):
            few, truth = sampled(settings, FEW, seed)
            many, _ = sampled(settings, MANY, seed)
            for form, of_many in zip(forms_of(few), forms_of(many), strict=True):
                inside = in_bounds(form, few, truth)[0]
                ends = in_ends(form, few, truth, seed)
                found.setdefault(form.name, []).append((*ends, inside, *in_bounds(of_many, many, truth)))
        for form_name, rows in found.items():
            *counts, width = zip(*rows, strict=True)
            shown = " | ".join(f"{sum(one)} of {len(one)}" for one in counts)
            lines.append(f"| {name} | {form_name} | {shown} | {np.mean(width):.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")
